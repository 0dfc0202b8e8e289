"""The heartbeats of simulated nodes: a Lease that is renewed every 10 s, and the times in the status every 5 minutes.

Beside an embedded server they are written only when a client can see them: before it reads, and as long as it watches.
A control plane that is at rest for a day would do little else otherwise. To any other server they are always sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol

from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import Node
from kubewright.api.errors import KubernetesError
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.api.time import MicroTime
from kubewright.client import Client
from kubewright.controlplane.controllers.clock import Clock, Timer
from kubewright.controlplane.controllers.node_script import NodeScript

NAMESPACE = "kube-node-lease"

_LEASE_SECONDS, _RENEWAL_SECONDS = 40, 10.0
_STATUS_SECONDS = 300.0


class Readers(Protocol):
    """The clients of a server that are not part of the control plane."""

    def before_read(self, resource: str, namespace: str, refresh: Callable[[], Awaitable[None]]) -> None:
        """Call `refresh` before a client gets, lists or watches objects of a resource in a namespace, or in all."""

    def is_watched(self, resource: str) -> bool:
        """Whether a client watches these objects now."""


class Heartbeats:
    """Keeps the Leases and the statuses of nodes fresh, except of those that have failed."""

    def __init__(self, client: Client, script: NodeScript, clock: Clock, readers: Readers | None) -> None:
        self._client = client
        self._script = script
        self._clock = clock
        self._uids: dict[str, str] = {}
        self._leases: dict[str, Lease] = {}
        self._reported: dict[str, datetime] = {}
        self._renewals = _Rhythm("leases", NAMESPACE, _RENEWAL_SECONDS, self.renew, clock, readers)
        self._reports = _Rhythm("nodes", "", _STATUS_SECONDS, self.report, clock, readers)

    def add(self, node: Node) -> None:
        """A node that was just registered, or has just reported its status."""
        name = node.metadata.name
        if self._uids.get(name) != node.metadata.uid:
            self._leases.pop(name, None)
        self._uids[name] = node.metadata.uid
        self._reported[name] = self._clock.now()
        self._renewals.begin()
        self._reports.begin()

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renewals.run())
            tasks.create_task(self._reports.run())

    async def renew(self) -> None:
        """Renew the Leases that are older than 10 s."""
        for name in self._alive():
            lease, now = self._leases.get(name), self._clock.now()
            if lease is None or lease.spec.renew_time is None or _is_past(lease.spec.renew_time, _RENEWAL_SECONDS, now):
                try:
                    await self._renew(name, lease, now)
                except KubernetesError:
                    # As for a kubelet: the next one may succeed.
                    self._leases.pop(name, None)

    async def report(self) -> None:
        """Renew the times in statuses that are older than 5 minutes."""
        for name in self._alive():
            now = self._clock.now()
            if not _is_past(self._reported[name], _STATUS_SECONDS, now):
                continue
            with suppress(KubernetesError):
                node = await self._client.find(Node, name)
                if node is not None and node.metadata.uid == self._uids[name]:
                    for condition in node.status.conditions:
                        condition.last_heartbeat_time = now.replace(microsecond=0)
                    await self._client.status.patch(node)
                    self._reported[name] = now

    def _alive(self) -> list[str]:
        return [name for name in self._uids if self._script.failed_at(name) is None]

    async def _renew(self, name: str, lease: Lease | None, now: datetime) -> None:
        lease = lease or await self._client.find(Lease, name, namespace=NAMESPACE)
        is_new = lease is None
        if lease is None:
            if await self._client.find(Node, name) is None:
                return
            lease = Lease(metadata=ObjectMeta(name=name, namespace=NAMESPACE))
        # One that an earlier node of this name has left is about to be deleted with its owner.
        owner = OwnerReference(api_version="v1", kind="Node", name=name, uid=self._uids[name])
        lease.metadata.owner_references = [owner]
        lease.spec.holder_identity, lease.spec.lease_duration_seconds = name, _LEASE_SECONDS
        lease.spec.renew_time = MicroTime.from_datetime(now)
        self._leases[name] = await (self._client.create(lease) if is_new else self._client.update(lease))


class _Rhythm:
    """Has something written every so many seconds, for as long as a client watches it, and before one reads it."""

    def __init__(
        self,
        resource: str,
        namespace: str,
        seconds: float,
        write: Callable[[], Awaitable[None]],
        clock: Clock,
        readers: Readers | None,
    ) -> None:
        self._resource = resource
        self._namespace = namespace
        self._seconds = seconds
        self._write = write
        self._clock = clock
        self._readers = readers
        # Of two clients that read at the same time, both are to see what the first one causes to be written.
        self._lock = asyncio.Lock()
        self._due = asyncio.Event()
        self._timer: Timer | None = None

    def begin(self) -> None:
        """There is something to write, which a server of others gets at once."""
        if self._readers is None:
            self._due.set()

    async def run(self) -> None:
        """Write until cancelled."""
        if self._readers is not None:
            self._readers.before_read(self._resource, self._namespace, self._before_read)
        try:
            while True:
                await self._due.wait()
                self._due.clear()
                if self._readers is None or self._readers.is_watched(self._resource):
                    await self._before_read()
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _before_read(self) -> None:
        async with self._lock:
            await self._write()
        # Again if this is the beginning of a watch, which is known when it has begun.
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(self._seconds, self._due.set)


def _is_past(since: datetime, seconds: float, now: datetime) -> bool:
    return since + timedelta(seconds=seconds) <= now
