"""Garbage collection of pods: of a node that is gone, and of one that a user has declared out of service.

No kubelet will ever confirm that their containers have ended, so they are deleted by force.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from kubewright.api.core.v1 import Node, Pod
from kubewright.api.resources import Object
from kubewright.cache import Cache, CacheEntry, WatchHandle
from kubewright.client import Client
from kubewright.client.errors import NotFound
from kubewright.controller import Event, Handler, Request, Watched
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.pods import ENDED
from kubewright.controlplane.controllers.runtime import Alarms, Runtime
from kubewright.patterns.conditions import is_true, set_condition

_QUARANTINE = timedelta(seconds=40)
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class PodGarbageCollector:
    """Deletes the pods of nodes that have been gone for 40 seconds, and terminating ones of nodes out of service."""

    name = "pod-garbage-collector"

    _pods: WatchHandle[Pod]

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        self._live = client
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._alarms = Alarms[Request](self._clock)
        # The nodes whose pods need no attention.
        self._in_service: set[str] = set()
        self._missing: dict[str, datetime] = {}

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        cache.index(Pod, "spec.nodeName")
        with cache.watch(Pod) as self._pods:
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Node, Handler(self._node_changed)),
                Watched(cache, Pod, Handler(self._pod_changed)),
                self._alarms,
            )

    async def reconcile(self, request: Request) -> None:
        """Delete the pods of one node that no kubelet will let go."""
        name = request.name
        node = await self._client.find(Node, name)
        if node is not None:
            self._missing.pop(name, None)
            if _is_out_of_service(node):
                for pod in self._pods.list(index=("spec.nodeName", name)):
                    if pod.metadata.deletion_timestamp is not None:
                        await self._delete(pod)
            return
        pods = self._pods.list(index=("spec.nodeName", name))
        if not pods:
            self._missing.pop(name, None)
            return
        now = self._clock.now()
        due = self._missing.setdefault(name, now) + _QUARANTINE
        if due > now:
            self._alarms.set(request, (due - now).total_seconds())
        elif await self._live.find(Node, name) is None:
            for pod in pods:
                set_condition(pod, "DisruptionTarget", True, "DeletionByPodGC", "PodGC: node no longer exists", at=now)
                await self._delete(pod)

    async def _delete(self, pod: Pod) -> None:
        with suppress(NotFound):
            if pod.status.phase not in ENDED:
                pod.status.phase = "Failed"
                pod.status.observed_generation = pod.metadata.generation or None
                pod = await self._client.status.patch(pod)
            await self._client.delete(pod, grace_period=0, uid=pod.metadata.uid)

    def _node_changed(self, event: Event[Object]) -> Iterable[Request]:
        node = event.new_object
        if isinstance(node, Node) and not _is_out_of_service(node):
            self._in_service.add(event.key.name)
            return ()
        self._in_service.discard(event.key.name)
        return (event.key,)

    def _pod_changed(self, event: Event[Object]) -> Iterable[Request]:
        name = _node_of(event.new) if event.new is not None else ""
        return (Request("", name),) if name and name not in self._in_service else ()


def _is_out_of_service(node: Node) -> bool:
    return any(one.key == _OUT_OF_SERVICE for one in node.spec.taints) and not is_true(node, "Ready")


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Bound(msgspec.Struct):
    """All of a pod that is read at every change of it."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


def _node_of(pod: CacheEntry) -> str:
    return msgspec.json.decode(pod.body, type=_Bound).spec.node_name
