"""A scheduler: finds a node for every pod that has none, the one with the fewest pods first.

It is not kube-scheduler: nothing is preempted, nothing is scored but the number of pods, and pod affinity, topology
spread and volumes are not looked at.
"""

from __future__ import annotations

import copy

import msgspec

from kubewright.api.core.v1 import Node, Pod, PodCondition
from kubewright.api.kinds import ObjectKey
from kubewright.client import Client
from kubewright.client.errors import Conflict, NotFound
from kubewright.controlplane.controllers import loop
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.loop import Mirror, Queue
from kubewright.controlplane.controllers.placement import objections, refusal
from kubewright.controlplane.controllers.pods import ENDED, condition

_NOWHERE = ""


class Scheduler:
    """Binds the pods of one scheduler name, and tells those it cannot place why."""

    name = "scheduler"

    def __init__(
        self, client: Client, *, scheduler_name: str = "default-scheduler", clock: Clock | None = None
    ) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._scheduler_name = scheduler_name
        self._queue = Queue[ObjectKey](self._clock)
        self._pods = Mirror(client, Pod, changed=self._pod_changed, index=lambda pod: (pod.spec.node_name or _NOWHERE,))
        self._nodes = Mirror(client, Node, changed=self._node_changed)
        # What the watch has not confirmed yet, by uid.
        self._bound: dict[str, tuple[str, Pod]] = {}

    async def run(self) -> None:
        """Watch and act until cancelled."""
        # One worker: each decision counts the pods that the one before has placed.
        await loop.run(self._pods, self._nodes, queue=self._queue, reconcile=self.reconcile, workers=1)

    async def reconcile(self, key: ObjectKey) -> None:
        """Find a node for one pod."""
        pod = self._pods.get(key)
        if pod is None or not self._is_waiting(pod):
            return
        if pod.spec.scheduling_gates:
            message = "Scheduling is blocked due to non-empty scheduling gates"
            await self._say_no(pod, "SchedulingGated", message)
            return
        occupants = {node.metadata.name: self._occupants(node.metadata.name) for node in self._nodes}
        reasons: list[str] = []
        fitting: list[tuple[int, str]] = []
        for node in self._nodes:
            name = node.metadata.name
            if against := objections(pod, node, occupants[name]):
                reasons += against
            else:
                fitting.append((len(occupants[name]), name))
        if fitting:
            await self._bind(pod, min(fitting)[1])
        else:
            await self._say_no(pod, "Unschedulable", refusal(len(self._nodes), reasons))

    async def _bind(self, pod: Pod, node: str) -> None:
        # Before the answer, which the watch may overtake.
        self._bound[pod.metadata.uid] = node, pod
        try:
            await self._client.bind(pod, node)
        except BaseException as error:
            self._bound.pop(pod.metadata.uid, None)
            # When it has gone, or somebody else was quicker, the watch will tell.
            if not isinstance(error, (NotFound, Conflict)):
                raise

    async def _say_no(self, pod: Pod, reason: str, message: str) -> None:
        present = condition(pod, "PodScheduled")
        if present is not None and (present.status, present.reason, present.message) == ("False", reason, message):
            return
        now = self._clock.now().replace(microsecond=0)
        since = present.last_transition_time if present is not None and present.status == "False" else now
        refused = PodCondition(
            type="PodScheduled",
            status="False",
            reason=reason,
            message=message,
            last_transition_time=since,
            observed_generation=pod.metadata.generation or None,
        )
        changed = copy.copy(pod)
        others = [found for found in pod.status.conditions if found.type != "PodScheduled"]
        changed.status = msgspec.structs.replace(pod.status, conditions=[*others, refused])
        self._pods.record(await self._client.status.update(changed))

    def _occupants(self, node: str) -> list[Pod]:
        placed = [pod for where, pod in self._bound.values() if where == node]
        return [pod for pod in (*self._pods.indexed(node), *placed) if pod.status.phase not in ENDED]

    def _is_waiting(self, pod: Pod) -> bool:
        return (
            not pod.spec.node_name
            and pod.metadata.uid not in self._bound
            and pod.metadata.deletion_timestamp is None
            and pod.status.phase not in ENDED
            and (pod.spec.scheduler_name or "default-scheduler") == self._scheduler_name
        )

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and self._is_waiting(new):
            self._queue.add(new.key)
        if old is not None and (new is None or new.spec.node_name):
            self._bound.pop(old.metadata.uid, None)
        if old is not None and old.spec.node_name and (new is None or new.status.phase in ENDED):
            self._retry_all()

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None and (old is None or _placement_of(old) != _placement_of(new)):
            self._retry_all()

    def _retry_all(self) -> None:
        """Room has been made somewhere: those who found none look again."""
        for pod in self._pods.indexed(_NOWHERE):
            if self._is_waiting(pod):
                self._queue.add(pod.key)


def _placement_of(node: Node) -> tuple[object, ...]:
    return (node.spec.unschedulable, node.spec.taints, node.metadata.labels, node.status.allocatable)
