"""ReplicaSets: as many live pods of a template as are wanted.

What was created or deleted here counts at once, before the watch shows it, so that no pod is created or deleted twice
because the local copy is behind.
"""

from __future__ import annotations

import asyncio
import copy
from datetime import datetime

from kubewright.api.apps.v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from kubewright.api.core.v1 import Pod
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import APIError, Forbidden, NotFound
from kubewright.controlplane.controllers import loop
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.loop import Mirror, Queue
from kubewright.controlplane.controllers.namespaces import is_about_terminating
from kubewright.controlplane.controllers.ownership import (
    claimed,
    controller_of,
    controller_reference,
    orphans_of,
    owner_index,
    selects,
)
from kubewright.controlplane.controllers.pods import available_in, condition, is_active, is_ready, is_terminating

_BURST = 500
"""No more pods than this are created or deleted in one pass."""

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets:
    """Keeps the pods of every ReplicaSet at their number, and its status true."""

    name = "replicasets"

    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._queue = Queue[ObjectKey](self._clock)
        self._replica_sets = Mirror(client, ReplicaSet, changed=self._set_changed)
        self._pods = Mirror(client, Pod, changed=self._pod_changed, index=owner_index)
        self._deleted: set[str] = set()

    async def run(self) -> None:
        """Watch and act until cancelled."""
        await loop.run(self._replica_sets, self._pods, queue=self._queue, reconcile=self.reconcile)

    async def reconcile(self, key: ObjectKey) -> None:
        """Bring one ReplicaSet's pods to their number and write down what there is."""
        replica_set = self._replica_sets.get(key)
        if replica_set is None:
            return
        pods = await self._claimed_pods(replica_set)
        wanted = replica_set.spec.replicas if replica_set.spec.replicas is not None else 1
        missing = wanted - sum(is_active(pod) for pod in pods)
        failure: KubernetesError | None = None
        if replica_set.metadata.deletion_timestamp is None and missing:
            try:
                await self._create(replica_set, missing) if missing > 0 else await self._delete(pods, -missing)
            except KubernetesError as error:
                failure = error
            pods = self._own_pods(replica_set)
        await self._write_status(replica_set, pods, missing, failure)
        if failure is not None:
            raise failure

    # What there is

    def _own_pods(self, replica_set: ReplicaSet) -> list[Pod]:
        return [
            pod
            for pod in self._pods.indexed(replica_set.metadata.uid)
            if pod.metadata.uid not in self._deleted and selects(replica_set.spec.selector, pod.metadata.labels)
        ]

    async def _claimed_pods(self, replica_set: ReplicaSet) -> list[Pod]:
        candidates = self._pods.indexed(replica_set.metadata.uid)
        candidates += self._pods.indexed(orphans_of(replica_set.metadata.namespace))
        # Only live pods are adopted or released; what is ending belongs to whom it belonged.
        await claimed(self._client, replica_set, replica_set.spec.selector, filter(is_active, candidates), self._pods)
        return self._own_pods(replica_set)

    def _set_changed(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        if new is not None:
            self._queue.add(new.key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.metadata.deletion_timestamp is not None):
            self._deleted.discard(old.metadata.uid)
        for pod in (old, new):
            if pod is None:
                continue
            controller = controller_of(pod)
            if controller is not None:
                if controller.kind == "ReplicaSet":
                    self._queue.add(ObjectKey(pod.metadata.namespace, controller.name))
            elif pod is new:
                self._tell_those_who_may_adopt(pod)

    def _tell_those_who_may_adopt(self, pod: Pod) -> None:
        for replica_set in self._replica_sets:
            if replica_set.metadata.namespace == pod.metadata.namespace and selects(
                replica_set.spec.selector, pod.metadata.labels
            ):
                self._queue.add(replica_set.key)

    # What is done

    async def _create(self, replica_set: ReplicaSet, count: int) -> None:
        # In batches of 1, 2, 4 …: when a quota or a webhook refuses them all, only one request is wasted.
        remaining, batch = min(count, _BURST), 1
        while remaining:
            batch = min(batch, remaining)
            answers = await asyncio.gather(
                *(self._client.create(_new_pod(replica_set)) for _ in range(batch)), return_exceptions=True
            )
            failures = [answer for answer in answers if isinstance(answer, BaseException)]
            for answer in answers:
                if isinstance(answer, Pod):
                    self._pods.record(answer)
            if failures:
                if isinstance(failures[0], Forbidden) and is_about_terminating(failures[0]):
                    return
                raise failures[0]
            remaining -= batch
            batch *= 2

    async def _delete(self, pods: list[Pod], count: int) -> None:
        active = [pod for pod in pods if is_active(pod)]
        doomed = _in_order_of_deletion(active)[: min(count, _BURST)]
        answers = await asyncio.gather(*(self._delete_pod(pod) for pod in doomed), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _delete_pod(self, pod: Pod) -> None:
        self._deleted.add(pod.metadata.uid)
        try:
            await self._client.delete(pod, uid=pod.metadata.uid)
        except NotFound:
            # The watch may have told of it before it was asked for, and will not tell again.
            if self._pods.get(pod.key) is None:
                self._deleted.discard(pod.metadata.uid)
        except BaseException:
            self._deleted.discard(pod.metadata.uid)
            raise

    async def _write_status(
        self, replica_set: ReplicaSet, pods: list[Pod], missing: int, failure: KubernetesError | None
    ) -> None:
        now = self._clock.now()
        status = _status(replica_set, pods, now)
        _note_failure(status, missing, failure, now)
        if status != replica_set.status:
            changed = copy.copy(replica_set)
            changed.status = status
            self._replica_sets.record(await self._client.status.update(changed))
        # Those not available at `now`, even if they are by now: the status does not count them yet.
        waits = [available_in(pod, replica_set.spec.min_ready_seconds or 0, now) for pod in pods if is_active(pod)]
        if pending := [wait for wait in waits if wait]:
            self._queue.add_after(replica_set.key, min(pending))


def _new_pod(replica_set: ReplicaSet) -> Pod:
    template = replica_set.spec.template
    return Pod(
        metadata=ObjectMeta(
            generate_name=f"{replica_set.metadata.name}-",
            namespace=replica_set.metadata.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            finalizers=template.metadata.finalizers,
            owner_references=[controller_reference(replica_set)],
        ),
        spec=template.spec,
    )


def _in_order_of_deletion(pods: list[Pod]) -> list[Pod]:
    """The least missed first: unscheduled, pending, not ready, cheap, crowded, ready or created last."""
    neighbours: dict[str, int] = {}
    for pod in pods:
        neighbours[pod.spec.node_name or ""] = neighbours.get(pod.spec.node_name or "", 0) + 1

    def key(pod: Pod) -> tuple[bool, int, bool, int, int, float, int, float]:
        ready = condition(pod, "Ready")
        return (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase or "Pending", 0),
            is_ready(pod),
            _deletion_cost(pod),
            -neighbours[pod.spec.node_name or ""],
            -_seconds(ready.last_transition_time if ready is not None and is_ready(pod) else None),
            -max((status.restart_count for status in pod.status.container_statuses), default=0),
            -_seconds(pod.metadata.creation_timestamp),
        )

    return sorted(pods, key=key)


def _deletion_cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        return 0


def _seconds(time: datetime | None) -> float:
    return time.timestamp() if time is not None else float("inf")


def _status(replica_set: ReplicaSet, pods: list[Pod], now: datetime) -> ReplicaSetStatus:
    active = [pod for pod in pods if is_active(pod)]
    template_labels = replica_set.spec.template.metadata.labels.items()
    min_ready_seconds = replica_set.spec.min_ready_seconds or 0
    # Zero is absent in these, as the server stores them; only terminatingReplicas tells 0 from unknown.
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(template_labels <= pod.metadata.labels.items() for pod in active) or None,
        ready_replicas=sum(is_ready(pod) for pod in active) or None,
        available_replicas=sum(available_in(pod, min_ready_seconds, now) == 0 for pod in active) or None,
        terminating_replicas=sum(is_terminating(pod) for pod in pods),
        observed_generation=replica_set.metadata.generation,
        conditions=list(replica_set.status.conditions),
    )


def _note_failure(status: ReplicaSetStatus, missing: int, failure: KubernetesError | None, now: datetime) -> None:
    """The condition ReplicaFailure, there as long as pods cannot be created or deleted."""
    known = any(condition.type == "ReplicaFailure" for condition in status.conditions)
    if failure is not None and not known:
        status.conditions.append(
            ReplicaSetCondition(
                type="ReplicaFailure",
                status="True",
                reason="FailedCreate" if missing > 0 else "FailedDelete",
                message=failure.status.message if isinstance(failure, APIError) else str(failure),
                last_transition_time=now.replace(microsecond=0),
            )
        )
    elif failure is None and known:
        status.conditions = [condition for condition in status.conditions if condition.type != "ReplicaFailure"]
