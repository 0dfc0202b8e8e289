"""Keeps the certificates of a Service: in a Secret that all replicas share, and trusted by the API server.

Every replica serves with what the Secret has, repairs it, takes the next step of a rotation when that is due, and puts
the authorities into the registrations: no leader is needed. Each write is guarded by the revision it is based on, so
that of several replicas one succeeds, and the others go on with what it has written. A set that was in use is restored
when the Secret is deleted or damaged. What cannot be written is tried again; meanwhile serving goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import ExitStack
from datetime import datetime
from typing import NamedTuple

from kubewright.api.core.v1 import Secret
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.api.time import exact_now
from kubewright.cache import Cache, CachedClient
from kubewright.cache.cache import WatchHandle
from kubewright.certificates.issuing import KeyPair
from kubewright.certificates.registrations import Registration, entries_of, inject, secret_of
from kubewright.certificates.rotation import CertificateSet, DamagedCertificates, Lifetimes, Rotation
from kubewright.client import Client
from kubewright.client.backoff import Backoff
from kubewright.client.errors import AlreadyExists, Conflict
from kubewright.client.token_bucket import TokenBucket

CHECK_INTERVAL = 3600.0
"""Seconds after which the time is compared with what certificates say, if nothing else happens."""

_RETRY = Backoff(1.0, 60.0, jitter=0.3)
# Two that put back what the other has written would do nothing else.
_WRITES_PER_SECOND, _WRITES_AT_ONCE = 0.2, 20

_log = logging.getLogger(__name__)


class _Outdated(KubernetesError):
    """What was to be acted upon is not the present state."""


class _Trust(NamedTuple):
    """Since when all registrations have had a bundle."""

    bundle: str
    since: datetime


class CertificateKeeper:
    """The certificates of one Service, while `run` does. `serve` is called with each that is to be served with."""

    def __init__(
        self,
        client: Client,
        service: ObjectKey,
        registrations: Collection[Registration],
        serve: Callable[[KeyPair], None],
        lifetimes: Lifetimes | None = None,
    ) -> None:
        self.serves = asyncio.Event()
        """Set once there is a certificate to serve with."""
        self._service = service
        self._key = secret_of(service)
        self._registrations = dict.fromkeys(registrations)
        self._serve = serve
        self._rotation = Rotation(service, lifetimes)
        self._cache = Cache(client)
        self._client = CachedClient(client, self._cache)
        self._secret: WatchHandle[Secret] | None = None
        self._watched: dict[Registration, WatchHandle[Object]] = {}
        self._changed = asyncio.Event()
        self._held: CertificateSet | None = None
        self._trust: _Trust | None = None
        self._writes = TokenBucket(_WRITES_PER_SECOND, _WRITES_AT_ONCE)
        self._error = ""

    @property
    def not_ready_reason(self) -> str | None:
        """Why there is no certificate yet; None once there is."""
        if self.serves.is_set():
            return None
        blocked = (
            next((each.blocked for each in self._secret.informers if each.blocked), None) if self._secret else None
        )
        reason = str(blocked) if blocked is not None else self._error
        waiting = f"waiting for the certificate in the Secret {self._key}"
        return f"{waiting}: {reason}" if reason else waiting

    async def run(self) -> None:
        """Keep them until cancelled."""
        with ExitStack() as watches:
            self._secret = watches.enter_context(
                self._cache.watch(Secret, namespace=self._key.namespace, fields={"metadata.name": self._key.name})
            )
            for registration in self._registrations:
                kind: type[Object] = registration.kind
                fields = {"metadata.name": registration.name}
                self._watched[registration] = watches.enter_context(self._cache.watch(kind, fields=fields))
            self._secret.subscribe(lambda *_: self._changed.set())
            for handle in self._watched.values():
                handle.subscribe(lambda *_: self._changed.set())
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._cache.run(), name="watches of certificates")
                for handle in self._watched.values():
                    tasks.create_task(self._synced(handle), name="watches of certificates")
                await self._secret.synced()
                await self._keep(self._secret)

    async def _synced(self, handle: WatchHandle[Object]) -> None:
        """That an object does not exist is no event."""
        await handle.synced()
        self._changed.set()

    async def _keep(self, secret: WatchHandle[Secret]) -> None:
        failures = 0
        while True:
            self._changed.clear()
            pause = CHECK_INTERVAL
            try:
                await self._converge(secret)
                if self._trust is not None and self._held is not None and self._held.is_served_by_older:
                    ready_at = self._trust.since + self._rotation.lifetimes.propagation
                    pause = min(pause, max(0.0, (ready_at - exact_now()).total_seconds()))
                failures, self._error = 0, ""
            except (_Outdated, Conflict, AlreadyExists) as error:
                # Another replica was faster, and its write is on its way to us.
                failures += 1
                pause = _RETRY.delay(failures)
                _log.debug("certificates of %s: %s", self._service, error)
            except KubernetesError as error:
                failures += 1
                pause = _RETRY.delay(failures)
                if str(error) != self._error:
                    _log.warning("cannot keep the certificates of %s: %s", self._service, error)
                self._error = str(error)
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _converge(self, watched: WatchHandle[Secret]) -> None:
        """Come to the set that there should be now, and have all registrations trust its authorities."""
        secret = watched.find(self._key)
        found = self._read(secret)
        if found is not None:
            self._hold(found)
        now = exact_now()
        step = self._rotation.next(self._held, now, is_trusted=self._is_trusted(now))
        wanted = step.result if step is not None else self._held
        unwritten: KubernetesError | None = None
        if wanted is not None and (step is not None or found is None):
            try:
                await self._write(secret, wanted)
                reason = step.reason if step is not None else "it was deleted or damaged"
                _log.info("the certificates in the Secret %s were replaced: %s", self._key, reason)
                self._hold(wanted)
            except KubernetesError as error:
                unwritten = error
        if self._held is not None:  # what is served with is to be trusted, though it cannot be stored or replaced
            await self._inject(watched, self._held)
            self._is_trusted(now)
        if unwritten is not None:
            raise unwritten

    def _read(self, secret: Secret | None) -> CertificateSet | None:
        if secret is None or not any(secret.data.values()):  # one that a manifest has made for us to fill
            return None
        try:
            found = CertificateSet.of_secret(secret.data)
        except DamagedCertificates as error:
            _log.warning("the Secret %s is damaged: %s", self._key, error)
            return None
        if found.serving is None and self._held is not None:
            _log.warning("the Secret %s is damaged: its serving certificate cannot be used", self._key)
            return None
        return found

    def _hold(self, found: CertificateSet) -> None:
        """Serve with it, and restore it from now on."""
        if found.serving is not None and (self._held is None or self._held.serving != found.serving):
            self._serve(found.serving)
            self.serves.set()
        self._held = found

    async def _write(self, secret: Secret | None, wanted: CertificateSet) -> None:
        await self._writes.acquire()
        if secret is None:
            metadata = ObjectMeta(namespace=self._key.namespace, name=self._key.name)
            await self._client.create(Secret(metadata=metadata, type="kubernetes.io/tls", data=wanted.to_secret()))
        else:
            secret.data = {**secret.data, **wanted.to_secret()}
            await self._client.patch(secret, lock=True)

    # Trust

    async def _inject(self, watched: WatchHandle[Secret], held: CertificateSet) -> None:
        outdated = [
            (registration, obj) for registration, obj in self._registered() if inject(obj, self._service, held.bundle)
        ]
        if not outdated:
            return
        # What this replica has seen of the Secret may be old, and older authorities must not replace newer ones.
        seen, present = watched.find(self._key), await self._client.find(Secret, self._key, consistency="live")
        if (seen and seen.data) != (present and present.data):
            raise _Outdated(f"the Secret {self._key} has changed")
        failed: list[KubernetesError] = []
        for registration, obj in outdated:
            await self._writes.acquire()
            try:
                await self._client.patch(obj, lock=True)
                _log.info("the %s trusts the present authorities of %s", registration, self._service)
            except KubernetesError as error:  # the others do not have to wait for this one
                failed.append(error)
        if failed:
            raise failed[0]

    def _registered(self) -> list[tuple[Registration, Object]]:
        found = ((each, handle.find(ObjectKey("", each.name))) for each, handle in self._watched.items())
        return [(registration, obj) for registration, obj in found if obj is not None]

    def _is_trusted(self, now: datetime) -> bool:
        """Whether all registrations have had the present authorities for long enough."""
        held = self._held
        is_complete = held is not None and all(each.is_synced for each in self._watched.values())
        if held is None or not is_complete or not all(self._trusts(obj, held) for _, obj in self._registered()):
            self._trust = None
            return False
        if self._trust is None or self._trust.bundle != held.bundle:
            self._trust = _Trust(held.bundle, now)
        return now >= self._trust.since + self._rotation.lifetimes.propagation

    def _trusts(self, obj: Object, held: CertificateSet) -> bool:
        return all(each.client_config.ca_bundle == held.bundle for each in entries_of(obj, self._service))
