"""Namespace deletion: everything in it is deleted, pods first, then the namespace is finalized.

While something remains (finalizers, pods within their grace period) the status says what, and the namespace is
reconciled again as soon as all of that has gone, or after a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.core.v1 import Namespace, Pod
from kubewright.api.dynamic import PartialObject
from kubewright.api.errors import KubernetesError
from kubewright.api.resources import Object
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import Forbidden, MethodNotAllowed, NotFound
from kubewright.controller import Channel, Event, Handler, Request, Watched, for_object, predicate
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.namespace_conditions import DeletionFindings, message_of
from kubewright.controlplane.controllers.runtime import Alarms, Runtime
from kubewright.controlplane.controllers.served import Discovered, ServedKind, defined_by, discover

_FINALIZER = "kubernetes"
_FINALIZERS_TAKE = 15
"""Seconds, estimated as kube-controller-manager does."""

_log = logging.getLogger(__name__)


class _NotEmptied(KubernetesError):
    temporary = True


@dataclass(frozen=True, slots=True)
class _Remains:
    """The objects of one kind that a namespace still has, and the revision at which it had them."""

    kind: ServedKind
    objects: tuple[PartialObject, ...]
    revision: str
    seconds: int

    @property
    def finalizers(self) -> Counter[str]:
        return Counter(finalizer for obj in self.objects for finalizer in obj.metadata.finalizers)


class Namespaces:
    """Finalizes namespaces that are being deleted. The server marks a namespace as terminating."""

    name = "namespaces"

    def __init__(self, client: Client, clock: Clock | None = None, *, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._alarms = Alarms[Request](self._clock)
        self._emptied = Channel[Request]("content")
        self._discovered: Discovered | None = None
        self._defined: dict[str, ServedKind] = {}
        self._tasks = asyncio.TaskGroup()
        self._waiting: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch and finalize until cancelled."""
        cache = self._runtime.cache
        async with self._tasks:
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Namespace, for_object, where=_is_going),
                Watched(cache, CustomResourceDefinition, Handler(self._note_kind)),
                self._alarms,
                self._emptied,
            )

    async def reconcile(self, request: Request) -> None:
        """Delete the content of one namespace and finalize it, as far as that is possible now."""
        name = request.name
        if (waiting := self._waiting.pop(name, None)) is not None:
            waiting.cancel()
        namespace = await self._client.find(Namespace, request)
        if namespace is None or namespace.metadata.deletion_timestamp is None or not namespace.spec.finalizers:
            return
        findings = DeletionFindings()
        remains = await self._empty(namespace, findings)
        try:
            namespace = await self._report(namespace, findings)
            if not remains and not findings.failed:
                await self._let_go(namespace)
        except NotFound:
            return
        if findings.failed:
            raise _NotEmptied(f"the namespace {name} could not be emptied; its status says why")
        if remains:
            self._waiting[name] = self._tasks.create_task(self._until_gone(request, remains))
            self._alarms.set(request, max(one.seconds for one in remains) // 2 + 1)

    async def _empty(self, namespace: Namespace, findings: DeletionFindings) -> list[_Remains]:
        """Delete all content; what remains after that, as far as it is known."""
        pods, others = await self._kinds(findings)
        remains = await self._empty_kinds(pods, namespace, findings)
        # Whatever else is there may still be needed by the pods: secrets by their containers, a service by the others.
        if not remains:
            remains = await self._empty_kinds(others, namespace, findings)
            findings.remaining(
                {f"{one.kind.plural}.{one.kind.group}": len(one.objects) for one in remains},
                sum((one.finalizers for one in remains), Counter[str]()),
            )
        return remains

    async def _kinds(self, findings: DeletionFindings) -> tuple[list[ServedKind], list[ServedKind]]:
        """Pods, if there is such a kind, and all other kinds that a namespace may contain."""
        if self._discovered is None or self._discovered.failures:
            self._discovered = await discover(self._client)
        if self._discovered.failures:
            findings.discovery_failed(self._discovered.failures)
        kinds = [
            kind
            for kind in (*self._discovered.kinds, *self._defined.values())
            if kind.namespaced and "delete" in kind.verbs
        ]
        return [kind for kind in kinds if _is_pod(kind)], [kind for kind in kinds if not _is_pod(kind)]

    async def _empty_kinds(
        self, kinds: Iterable[ServedKind], namespace: Namespace, findings: DeletionFindings
    ) -> list[_Remains]:
        remains: list[_Remains] = []
        for kind in kinds:
            try:
                found = await self._empty_kind(kind, namespace)
            except (NotFound, MethodNotAllowed):
                continue  # a kind that went meanwhile, or that cannot be listed
            except KubernetesError as error:
                findings.deletion_failed(message_of(error))
                continue
            if found is None:
                continue
            remains.append(found)
            if not found.seconds:
                name = namespace.metadata.name
                findings.deletion_failed(f"unexpected items still remain in namespace: {name} for gvr: {kind}")
        return remains

    async def _empty_kind(self, kind: ServedKind, namespace: Namespace) -> _Remains | None:
        name = namespace.metadata.name
        objects, _ = await self._list(kind, name)
        if not objects:
            return None
        seconds = await self._grace_period(namespace) if _is_pod(kind) else 0
        # Nothing is orphaned: the content is deleted with the namespace.
        if "deletecollection" in kind.verbs:
            await self._client.delete_all(kind.view, namespace=name, propagation="Background")
        else:
            for obj in objects:
                await self._client.delete(obj, propagation="Background", missing_ok=True)
        objects, revision = await self._list(kind, name)
        if not objects:
            return None
        if not seconds and any(obj.metadata.finalizers for obj in objects):
            seconds = _FINALIZERS_TAKE
        return _Remains(kind, tuple(objects), revision, seconds)

    async def _list(self, kind: ServedKind, namespace: str) -> tuple[list[PartialObject], str]:
        objects: list[PartialObject] = []
        revision = ""
        listing = self._client.list(kind.view, namespace=namespace, consistency="live")
        async with aclosing(listing.pages()) as pages:
            async for page in pages:
                objects += page.items
                revision = page.metadata.resource_version
        return objects, revision

    async def _grace_period(self, namespace: Namespace) -> int:
        """The longest remaining grace period of a pod; 0 when all have passed."""
        max_delay = 0
        async for pod in self._client.list(Pod, namespace=namespace.metadata.name, consistency="live"):
            if pod.status.phase not in ("Succeeded", "Failed"):
                max_delay = max(max_delay, pod.spec.termination_grace_period_seconds or 0)
        began = namespace.metadata.deletion_timestamp
        passed = 0.0 if began is None else (self._clock.now() - began).total_seconds()
        return max_delay if passed < max_delay else 0

    async def _report(self, namespace: Namespace, findings: DeletionFindings) -> Namespace:
        """Write the status if it has changed; returns the newest version of the namespace."""
        if not findings.report(namespace, self._clock.now()) and namespace.status.phase == "Terminating":
            return namespace
        namespace.status.phase = "Terminating"
        return await self._client.status.update(namespace)

    async def _let_go(self, namespace: Namespace) -> None:
        namespace.spec.finalizers = [name for name in namespace.spec.finalizers if name != _FINALIZER]
        await self._client.subresource("finalize").update(namespace)

    async def _until_gone(self, request: Request, remains: Sequence[_Remains]) -> None:
        if all(await asyncio.gather(*(self._gone(request.name, one) for one in remains))):
            self._emptied.send(request)

    async def _gone(self, name: str, remains: _Remains) -> bool:
        """True when all objects have been seen to go; False when that could not be followed to the end."""
        left = {obj.metadata.uid for obj in remains.objects}
        watch = self._client.watch(remains.kind.view, namespace=name, resource_version=remains.revision)
        try:
            async with watch as events:
                async for event in events:
                    if event.type == "DELETED":
                        left.discard(event.header.uid)
                    if not left:
                        return True
        except KubernetesError as error:
            _log.debug("watching what remains in the namespace %s: %s", name, error)
        return False

    def _note_kind(self, event: Event[Object]) -> Iterable[Request]:
        """Track which kinds are defined. No namespace is enqueued because of it."""
        definition = event.new_object
        kind = defined_by(definition) if isinstance(definition, CustomResourceDefinition) else None
        if kind is not None:
            self._defined[event.key.name] = kind
        else:
            self._defined.pop(event.key.name, None)
        return ()


@predicate
def _is_going(old: Namespace | None, new: Namespace | None) -> bool:
    changed = new or old
    if changed is None or changed.metadata.deletion_timestamp is None:
        return False
    # Our own conditions are no reason to reconcile again.
    return old is None or new is None or _state(old) != _state(new)


@Handler
def for_its_namespace(event: Event[Object]) -> Iterable[Request]:
    """A handler: the namespace that the object is in."""
    return (Request("", event.key.namespace),)


def is_about_terminating(error: Forbidden) -> bool:
    """True when something was refused because its namespace is being deleted."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.status.causes)


def _is_pod(kind: ServedKind) -> bool:
    return (kind.group, kind.plural) == ("", "pods")


def _state(namespace: Namespace) -> tuple[str, bool, list[str]]:
    metadata = namespace.metadata
    return metadata.uid, metadata.deletion_timestamp is not None, namespace.spec.finalizers
