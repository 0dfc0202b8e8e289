"""ReplicaSets: keeps the desired number of live pods of a template.

What was created or deleted here counts at once, before the watch shows it: the client reads its own writes. So no pod
is created or deleted twice because the cache is behind.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from kubewright.api.apps.v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from kubewright.api.core.v1 import Pod
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.selectors import label_matcher
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import APIError, Forbidden, NotFound
from kubewright.controller import Request, Watched, for_object, for_owner, mapped
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.namespaces import is_about_terminating
from kubewright.controlplane.controllers.ownership import (
    Owned,
    claimed,
    is_new_orphan,
)
from kubewright.controlplane.controllers.pods import available_in, is_active, is_ready, is_terminating
from kubewright.controlplane.controllers.runtime import Alarms, Runtime
from kubewright.manager.core_event_form import CoreV1
from kubewright.manager.recorder import EventBroadcaster
from kubewright.patterns.conditions import get_condition

_BURST = 500
"""The maximum number of pods that one reconcile creates or deletes."""

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets:
    """Keeps the pods of every ReplicaSet at their number, and its status true."""

    name = "replicasets"

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._pods: Owned[Pod]
        self._alarms = Alarms[Request](self._clock)
        self._events = EventBroadcaster(
            client, instance="", now=self._clock.now, form=CoreV1(field_manager="kube-controller-manager")
        )
        self._recorder = self._events.recorder("replicaset-controller")

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        with cache.watch(Pod) as pods:
            self._pods = Owned(cache, pods)
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, ReplicaSet, for_object),
                Watched(cache, Pod, for_owner(ReplicaSet)),
                Watched(cache, Pod, mapped(self._those_who_may_adopt), where=is_new_orphan),
                self._alarms,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Create or delete pods of one ReplicaSet and write its status."""
        replica_set = await self._client.find(ReplicaSet, request)
        if replica_set is None:
            return
        pods = await self._claimed_pods(replica_set)
        desired = replica_set.spec.replicas if replica_set.spec.replicas is not None else 1
        missing = desired - sum(is_active(pod) for pod in pods)
        failure: KubernetesError | None = None
        if replica_set.metadata.deletion_timestamp is None and missing:
            try:
                if missing > 0:
                    await self._create(replica_set, missing)
                else:
                    await self._delete(replica_set, pods, -missing)
            except KubernetesError as error:
                failure = error
            pods = self._own_pods(replica_set)
        await self._write_status(replica_set, pods, missing, failure)
        if failure is not None:
            raise failure

    # What there is

    def _own_pods(self, replica_set: ReplicaSet) -> list[Pod]:
        selector = label_matcher(replica_set.spec.selector)
        return [pod for pod in self._pods.by(replica_set) if selector.matches(pod.metadata.labels)]

    async def _claimed_pods(self, replica_set: ReplicaSet) -> list[Pod]:
        selector = replica_set.spec.selector
        own = self._pods.by(replica_set)
        candidates = [*own, *self._pods.orphans(replica_set.metadata.namespace, selector)]
        # Only live pods are adopted or released; terminating ones keep their owner.
        live = await claimed(self._client, replica_set, selector, filter(is_active, candidates))
        matcher = label_matcher(selector)
        return live + [pod for pod in own if not is_active(pod) and matcher.matches(pod.metadata.labels)]

    async def _those_who_may_adopt(self, pod: Pod) -> list[ObjectKey]:
        replica_sets = await self._client.list(ReplicaSet, namespace=pod.metadata.namespace)
        return [one.key for one in replica_sets if label_matcher(one.spec.selector).matches(pod.metadata.labels)]

    # What is done

    async def _create(self, replica_set: ReplicaSet, count: int) -> None:
        # In batches of 1, 2, 4 …: when a quota or a webhook refuses them all, only one request is wasted.
        remaining, batch = min(count, _BURST), 1
        while remaining:
            batch = min(batch, remaining)
            answers = await asyncio.gather(
                *(self._create_pod(replica_set) for _ in range(batch)), return_exceptions=True
            )
            failures = [answer for answer in answers if isinstance(answer, BaseException)]
            if failures:
                if isinstance(failures[0], Forbidden) and is_about_terminating(failures[0]):
                    return
                raise failures[0]
            remaining -= batch
            batch *= 2

    async def _create_pod(self, replica_set: ReplicaSet) -> None:
        try:
            created = await self._client.create(_new_pod(replica_set))
        except KubernetesError as error:
            if not (isinstance(error, Forbidden) and is_about_terminating(error)):
                self._recorder.warning(replica_set, "FailedCreate", f"Error creating: {_message_of(error)}")
            raise
        self._recorder.normal(replica_set, "SuccessfulCreate", f"Created pod: {created.metadata.name}")

    async def _delete(self, replica_set: ReplicaSet, pods: list[Pod], count: int) -> None:
        active = [pod for pod in pods if is_active(pod)]
        doomed = _in_order_of_deletion(active)[: min(count, _BURST)]
        answers = await asyncio.gather(*(self._delete_pod(replica_set, pod) for pod in doomed), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _delete_pod(self, replica_set: ReplicaSet, pod: Pod) -> None:
        try:
            await self._client.delete(pod, uid=pod.metadata.uid)
        except NotFound:
            return
        except KubernetesError as error:
            self._recorder.warning(replica_set, "FailedDelete", f"Error deleting: {_message_of(error)}")
            raise
        self._recorder.normal(replica_set, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")

    async def _write_status(
        self, replica_set: ReplicaSet, pods: list[Pod], missing: int, failure: KubernetesError | None
    ) -> None:
        now = self._clock.now()
        status = _status(replica_set, pods, now)
        _note_failure(status, missing, failure, now)
        if status != replica_set.status:
            replica_set.status = status
            await self._client.status.update(replica_set)
        # Those not available at `now`, even if they are by now: the status does not count them yet.
        waits = [available_in(pod, replica_set.spec.min_ready_seconds or 0, now) for pod in pods if is_active(pod)]
        if pending := [wait for wait in waits if wait]:
            self._alarms.set(replica_set.key, min(pending))


def _new_pod(replica_set: ReplicaSet) -> Pod:
    template = replica_set.spec.template
    return Pod(
        metadata=ObjectMeta(
            generate_name=f"{replica_set.metadata.name}-",
            namespace=replica_set.metadata.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            finalizers=template.metadata.finalizers,
            owner_references=[replica_set.as_owner()],
        ),
        spec=template.spec,
    )


def _in_order_of_deletion(pods: list[Pod]) -> list[Pod]:
    """The pods in the order of deletion: unscheduled, pending, not ready, cheap, crowded, ready or created last."""
    neighbours: dict[str, int] = {}
    for pod in pods:
        neighbours[pod.spec.node_name or ""] = neighbours.get(pod.spec.node_name or "", 0) + 1

    def key(pod: Pod) -> tuple[bool, int, bool, int, int, float, int, float]:
        ready = get_condition(pod, "Ready")
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
    # Zero is absent in these, as the server stores them; only terminatingReplicas distinguishes 0 from unknown.
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
    """Set the condition ReplicaFailure while pods cannot be created or deleted."""
    known = any(condition.type == "ReplicaFailure" for condition in status.conditions)
    if failure is not None and not known:
        status.conditions.append(
            ReplicaSetCondition(
                type="ReplicaFailure",
                status="True",
                reason="FailedCreate" if missing > 0 else "FailedDelete",
                message=_message_of(failure),
                last_transition_time=now.replace(microsecond=0),
            )
        )
    elif failure is None and known:
        status.conditions = [condition for condition in status.conditions if condition.type != "ReplicaFailure"]


def _message_of(error: KubernetesError) -> str:
    """The server's message, if the error is a response of the server."""
    return error.status.message if isinstance(error, APIError) else str(error)
