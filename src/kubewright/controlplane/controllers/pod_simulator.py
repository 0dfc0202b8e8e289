"""The kubelet of simulated nodes: takes pods through their lifecycle without running anything.

It touches no pod but those on nodes labelled `kubewright.dev/simulated`, so that it may run against a real cluster too.
A script decides what each pod does (see `pod_script`), by default by the pod's own annotations (see `pod_behaviour`).
The pods of a node that has failed (see `node_script`) stay as they are.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

from kubewright.api.core.v1 import Node, ObjectReference, PersistentVolumeClaim, Pod, PodStatus
from kubewright.api.resources import Object
from kubewright.cache import Cache, CacheEntry, WatchHandle
from kubewright.client import Client
from kubewright.client.errors import NotFound
from kubewright.controller import Event, Handler, Request, Watched
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.node_script import NodeScript
from kubewright.controlplane.controllers.nodes import SIMULATED
from kubewright.controlplane.controllers.pod_addresses import PodAddresses
from kubewright.controlplane.controllers.pod_behaviour import Behaviour
from kubewright.controlplane.controllers.pod_claims import AwaitedClaims, claims_of
from kubewright.controlplane.controllers.pod_events import (
    PodEvent,
    events_of_deletion,
    events_of_eviction,
    events_of_step,
)
from kubewright.controlplane.controllers.pod_life import (
    KILLED,
    TERMINATED,
    Addresses,
    Stage,
    ended,
    entered_at,
    evicted,
    seconds_to_next,
    stage_of,
    step,
)
from kubewright.controlplane.controllers.pod_script import Ending, PodPredicate, PodScript
from kubewright.controlplane.controllers.pods import ENDED
from kubewright.controlplane.controllers.runtime import Alarms, Runtime
from kubewright.controlplane.controllers.volume_matching import is_bound
from kubewright.manager.core_event_form import CoreV1
from kubewright.manager.recorder import EventBroadcaster

_BEFORE_START = ("new", "creating")
_NODE, _ADDRESS = "spec.nodeName", "status.podIP"


class PodSimulator:
    """Runs the pods on simulated nodes: starts them, makes them ready, ends, restarts and removes them."""

    name = "pod-simulator"

    def __init__(
        self,
        client: Client,
        *,
        script: PodScript | None = None,
        nodes: NodeScript | None = None,
        clock: Clock | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._script = script or PodScript()
        self._nodes = nodes
        self._clock = clock or SystemClock()
        self._alarms = Alarms[Request](self._clock)
        self._claims = AwaitedClaims(self._runtime.cache, self._alarms.send)
        self._pods: WatchHandle[Pod]
        self._addresses = PodAddresses(self._is_taken)
        # Times in a status are whole seconds; these are exact, and only as good as the stage they belong to.
        self._entered: dict[str, tuple[Stage, datetime]] = {}
        self._terminating_since: dict[str, datetime] = {}
        self._endings: dict[str, Ending] = {}
        self._simulated: set[str] = set()
        self._events = EventBroadcaster(client, instance="", now=self._clock.now, form=CoreV1(field_manager="kubelet"))

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        cache.index(Pod, _NODE)
        cache.index(Pod, _ADDRESS)
        with contextlib.ExitStack() as stack:
            self._pods = stack.enter_context(cache.watch(Pod))
            stack.enter_context(self._claims)
            stack.enter_context(self._script.followed_by(self))
            if self._nodes is not None:
                stack.callback(self._nodes.subscribe(self._wake_node))
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Node, Handler(self._node_changed)),
                Watched(cache, Pod, Handler(self._pod_changed)),
                self._alarms,
                workers=16,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Move one pod to the stage that it has reached by now."""
        pod = await self._client.find(Pod, request)
        if pod is None or not pod.spec.node_name:
            return
        node = await self._client.find(Node, pod.spec.node_name)
        if node is None or SIMULATED not in node.metadata.labels:
            return
        if self._nodes is not None and self._nodes.failed_at(pod.spec.node_name) is not None:
            return
        behaviour = self._script.behaviour_of(pod)
        if pod.metadata.deletion_timestamp is not None:
            await self._let_go(pod, behaviour)
            return
        if not await self._has_volumes(pod):
            behaviour = replace(behaviour, waiting="ContainerCreating")
        now, ending = self._clock.now(), self._endings.get(pod.metadata.uid)
        if ending is not None and stage_of(pod) == "running":
            if ending.eviction is not None:
                await self._evict(pod, ending.eviction, now)
                return
            behaviour = replace(behaviour, run=0.0, crashes=inf, exit_code=ending.exit_code, reason=ending.reason)
        next_ = step(pod, behaviour, self._where(pod, node), self._entered_at(pod, now), now)
        if next_ is not None:
            status, is_new_stage = next_
            before, pod = pod, await self._write(pod, status)
            self._emit(pod, events_of_step(before, pod, behaviour))
            if is_new_stage:
                self._entered[pod.metadata.uid] = stage_of(pod), now
        if ending is not None:
            self._endings.pop(pod.metadata.uid, None)
            behaviour = self._script.behaviour_of(pod)
        now = self._clock.now()
        wait = seconds_to_next(pod, behaviour, self._entered_at(pod, now), now)
        if wait is not None:
            self._alarms.set(request, wait)

    async def _has_volumes(self, pod: Pod) -> bool:
        """Whether all claims of a pod that is not running yet are bound. A kubelet waits for them."""
        if not pod.spec.volumes or stage_of(pod) not in _BEFORE_START or not (claims := claims_of(pod)):
            return True
        await self._claims.wait(pod)
        found = [await self._client.find(PersistentVolumeClaim, key) for key in claims]
        return all(claim is not None and is_bound(claim) for claim in found)

    async def _let_go(self, pod: Pod, behaviour: Behaviour) -> None:
        grace, now = pod.metadata.deletion_grace_period_seconds, self._clock.now()
        if grace == 0:
            # Its containers have ended; only finalizers keep it.
            return
        if pod.metadata.uid not in self._terminating_since:
            self._emit(pod, events_of_deletion(pod))
        since = self._terminating_since.setdefault(pod.metadata.uid, now)
        allowed = behaviour.stop if grace is None else min(behaviour.stop, grace)
        left = (since + timedelta(seconds=allowed) - now).total_seconds()
        if left > 0:
            self._alarms.set(pod.key, left)
            return
        if pod.status.phase not in ENDED and stage_of(pod) not in _BEFORE_START:
            # All who watch see that it is not ready any more, and that its containers have ended, before it is gone.
            code = KILLED if behaviour.stop > allowed else TERMINATED
            await self._write(pod, ended(pod, code, now, for_good=True))
        with contextlib.suppress(NotFound):
            await self._client.delete(pod, grace_period=0, uid=pod.metadata.uid)

    async def _evict(self, pod: Pod, message: str, now: datetime) -> None:
        self._emit(pod, events_of_eviction(pod, message))
        await self._write(pod, evicted(pod, message, now))
        self._endings.pop(pod.metadata.uid, None)

    def wake(self, selects: PodPredicate) -> None:
        """See `ScriptedSimulator`."""
        for pod in self._pods.list():
            if selects(pod):
                self._alarms.send(pod.key)

    def end(self, selects: PodPredicate, ending: Ending) -> int:
        """See `ScriptedSimulator`."""
        running = [
            pod
            for pod in self._pods.list()
            if stage_of(pod) == "running"
            and pod.metadata.deletion_timestamp is None
            and self._works(pod.spec.node_name or "")
            and selects(pod)
        ]
        for pod in running:
            self._endings[pod.metadata.uid] = ending
            self._alarms.send(pod.key)
        return len(running)

    def _works(self, node: str) -> bool:
        return node in self._simulated and (self._nodes is None or self._nodes.failed_at(node) is None)

    async def _write(self, pod: Pod, status: PodStatus) -> Pod:
        changed = copy.copy(pod)
        changed.status = status
        return await self._client.status.update(changed)

    def _emit(self, pod: Pod, events: Iterable[PodEvent]) -> None:
        recorder = self._events.recorder("kubelet", instance=pod.spec.node_name or "")
        for type_, reason, message, path in events:
            record = recorder.normal if type_ == "Normal" else recorder.warning
            record(_container_of(pod, path), reason, message)

    def _entered_at(self, pod: Pod, now: datetime) -> datetime:
        stage, exact = self._entered.get(pod.metadata.uid, (None, now))
        return exact if stage == stage_of(pod) else entered_at(pod) or now

    def _where(self, pod: Pod, node: Node) -> Addresses:
        host = next((one.address for one in node.status.addresses if one.type == "InternalIP"), "127.0.0.1")
        if pod.spec.host_network:
            return Addresses(host, host)
        return Addresses(host, pod.status.pod_ip or self._addresses.free(node.spec.pod_cidr or ""))

    def _is_taken(self, address: str) -> bool:
        return bool(self._pods.list(index=(_ADDRESS, address)))

    def _wake_node(self, name: str) -> None:
        for pod in self._pods.list(index=(_NODE, name)):
            self._alarms.send(pod.key)

    def _node_changed(self, event: Event[Object]) -> Iterable[Request]:
        """The pods on a node that has just become one of ours."""
        name = event.key.name
        if not _is_simulated(event.new):
            self._simulated.discard(name)
            return ()
        if name in self._simulated:
            return ()
        self._simulated.add(name)
        return [pod.key for pod in self._pods.list(index=(_NODE, name))]

    def _pod_changed(self, event: Event[Object]) -> Iterable[Request]:
        if event.old is not None:
            uid = event.old.header.uid
            if event.new is None or event.new.header.uid != uid:
                self._entered.pop(uid, None)
                self._terminating_since.pop(uid, None)
                self._endings.pop(uid, None)
        return (event.key,)


def _container_of(pod: Pod, field_path: str) -> ObjectReference:
    meta = pod.metadata
    return ObjectReference(
        api_version="v1",
        kind="Pod",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        field_path=field_path or None,
    )


def _is_simulated(node: CacheEntry | None) -> bool:
    return node is not None and SIMULATED in node.label_names
