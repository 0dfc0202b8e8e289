"""A scheduler: finds a node for every pod that has none, the one with the fewest pods first.

It is not kube-scheduler: nothing is preempted, nothing is scored but the number of pods, and pod affinity and topology
spread are ignored.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterable

from kubewright.api.core.v1 import Node, Pod
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import Conflict, NotFound
from kubewright.controller import Channel, Event, Handler, Request, Watched
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.placement import objections, refusal
from kubewright.controlplane.controllers.pod_claims import AwaitedClaims, claims_of
from kubewright.controlplane.controllers.pods import ENDED
from kubewright.controlplane.controllers.runtime import Runtime
from kubewright.controlplane.controllers.volume_scheduling import PodVolumes, Unplaceable, volumes_of
from kubewright.manager.recorder import EventBroadcaster
from kubewright.patterns.conditions import set_condition

_MAX_INSTANCE_LENGTH = 128


class _Occupancy:
    """The pods that occupy nodes: those that were seen there, and those that were just bound."""

    def __init__(self) -> None:
        self._pods: dict[ObjectKey, tuple[str, Pod]] = {}
        self._nodes: dict[str, dict[ObjectKey, Pod]] = {}

    def __contains__(self, pod: Pod) -> bool:
        _, found = self._pods.get(pod.key, ("", None))
        return found is not None and found.metadata.uid == pod.metadata.uid

    def on(self, node: str) -> Collection[Pod]:
        return self._nodes.get(node, {}).values()

    def put(self, pod: Pod, node: str) -> None:
        self.remove(pod.key)
        self._pods[pod.key] = node, pod
        self._nodes.setdefault(node, {})[pod.key] = pod

    def withdraw(self, pod: Pod) -> None:
        """The binding failed, unless the pod was seen on the node meanwhile."""
        if self._pods.get(pod.key, ("", None))[1] is pod:
            self.remove(pod.key)

    def remove(self, key: ObjectKey) -> bool:
        """Remove a pod. True when it was there."""
        node, found = self._pods.pop(key, ("", None))
        if found is not None:
            del self._nodes[node][key]
        return found is not None


class Scheduler:
    """Binds the pods of one scheduler name, and reports on those that fit no node."""

    name = "scheduler"

    def __init__(
        self,
        client: Client,
        *,
        scheduler_name: str = "default-scheduler",
        clock: Clock | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._scheduler_name = scheduler_name
        # Each decision considers all nodes and their pods: they are kept decoded and not read every time.
        self._nodes: dict[str, Node] = {}
        self._occupants = _Occupancy()
        self._waiting: dict[Request, None] = {}
        self._woken = Channel[Request]("claims")
        self._claims = AwaitedClaims(self._runtime.cache, self._woken.send)
        instance = f"{scheduler_name}-{platform.node()}"[:_MAX_INSTANCE_LENGTH]
        self._events = EventBroadcaster(client, instance=instance, now=self._clock.now)
        self._recorder = self._events.recorder(scheduler_name)

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        with self._claims:
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Pod, Handler(self._pod_changed)),
                Watched(cache, Node, Handler(self._node_changed)),
                self._woken,
                # One worker: each decision counts the pods that the one before has placed.
                workers=1,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Find a node for one pod."""
        pod = await self._client.find(Pod, request)
        if pod is None or not self._is_waiting(pod):
            return
        if pod.spec.scheduling_gates:
            message = "Scheduling is blocked due to non-empty scheduling gates"
            await self._say_no(pod, "SchedulingGated", message)
            return
        volumes = PodVolumes()
        if claims_of(pod):
            await self._claims.wait(pod)
            try:
                volumes = await volumes_of(self._client, pod)
            except Unplaceable as why:
                await self._say_no(pod, "Unschedulable", f"0/{len(self._nodes)} nodes are available: {why}.")
                return
        reasons: list[str] = []
        fitting: list[tuple[int, str]] = []
        for name, node in self._nodes.items():
            occupants = self._occupants.on(name)
            if against := objections(pod, node, occupants) or volumes.objections(node):
                reasons += against
            else:
                fitting.append((len(occupants), name))
        if fitting and volumes.unbound:
            # The pod comes again when they are bound.
            await volumes.bind(self._client, self._nodes[min(fitting)[1]])
        elif fitting:
            await self._bind(pod, min(fitting)[1])
        else:
            await self._say_no(pod, "Unschedulable", refusal(len(self._nodes), reasons))

    async def _bind(self, pod: Pod, node: str) -> None:
        # Before the answer, which the watch may overtake.
        self._occupants.put(pod, node)
        try:
            await self._client.bind(pod, node)
        except BaseException as error:
            self._occupants.withdraw(pod)
            # Deleted, or bound by another: the watch reports it.
            if not isinstance(error, (NotFound, Conflict)):
                raise
        else:
            note = f"Successfully assigned {pod.metadata.namespace}/{pod.metadata.name} to {node}"
            self._recorder.normal(pod, "Scheduled", note, action="Binding")

    async def _say_no(self, pod: Pod, reason: str, message: str) -> None:
        if not set_condition(pod, "PodScheduled", False, reason, message, at=self._clock.now()):
            return
        await self._client.status.update(pod)
        if reason == "Unschedulable":
            self._recorder.warning(pod, "FailedScheduling", message, action="Scheduling")

    def _is_waiting(self, pod: Pod) -> bool:
        return (
            not pod.spec.node_name
            and pod not in self._occupants
            and pod.metadata.deletion_timestamp is None
            and pod.status.phase not in ENDED
            and (pod.spec.scheduler_name or "default-scheduler") == self._scheduler_name
        )

    def _pod_changed(self, event: Event[Object]) -> Iterable[Request]:
        key, pod = event.key, event.new_object
        made_room = False
        if not isinstance(pod, Pod) or pod.status.phase in ENDED:
            made_room = self._occupants.remove(key)
        elif pod.spec.node_name:
            self._occupants.put(pod, pod.spec.node_name)
        elif pod not in self._occupants:
            # Another one had its name before.
            made_room = self._occupants.remove(key)
        if isinstance(pod, Pod) and self._is_waiting(pod):
            self._waiting[key] = None
            return self._everyone() if made_room else (key,)
        self._waiting.pop(key, None)
        return self._everyone() if made_room else ()

    def _node_changed(self, event: Event[Object]) -> Iterable[Request]:
        old, new = event.old_object, event.new_object
        if not isinstance(new, Node):
            self._nodes.pop(event.key.name, None)
            return ()
        self._nodes[event.key.name] = new
        return () if isinstance(old, Node) and _placement_of(old) == _placement_of(new) else self._everyone()

    def _everyone(self) -> list[Request]:
        """Capacity became free: all pods that fit no node are enqueued."""
        return list(self._waiting)


def _placement_of(node: Node) -> tuple[object, ...]:
    return (node.spec.unschedulable, node.spec.taints, node.metadata.labels, node.status.allocatable)
