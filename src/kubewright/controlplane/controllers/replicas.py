"""A number of live pods of one template, for a ReplicaSet or a ReplicationController, which differ in little.

What was created or deleted here counts at once, before the watch shows it: the client reads its own writes. So no pod
is created or deleted twice because the cache is behind.
"""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from msgspec.structs import asdict

from kubewright.api.apps.v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from kubewright.api.core.v1 import Pod, PodSpec, PodTemplateSpec, ReplicationController
from kubewright.api.core.v1.replication_controller import ReplicationControllerCondition, ReplicationControllerStatus
from kubewright.api.errors import KubernetesError
from kubewright.api.meta import LabelSelector
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Request, Watched, for_object
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.owned_pods import OwnedPods, watched_pods
from kubewright.controlplane.controllers.pod_control import BURST, PodControl, pod_from
from kubewright.controlplane.controllers.pod_ranking import in_order_of_deletion
from kubewright.controlplane.controllers.pods import available_in, is_active, is_ready, is_terminating
from kubewright.controlplane.controllers.reporting import ReportingController, message_of

Owner = TypeVar("Owner", ReplicaSet, ReplicationController)


class Replicas(ReportingController, Generic[Owner]):
    """Keeps the pods of every object of a kind at their number, and its status true."""

    name: str
    kind: type[Owner]

    _pods: OwnedPods

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        super().__init__(client, clock=clock, cache=cache)
        self._control = PodControl(self._client, self._recorder)

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        with cache.watch(Pod) as pods:
            self._pods = OwnedPods(self._client, cache, pods)
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, self.kind, for_object),
                *watched_pods(self._client, cache, self.kind, _selector),
                self._alarms,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Create or delete pods of one object and write its status."""
        owner = await self._client.find(self.kind, request)
        if owner is None:
            return
        # Only live pods are adopted or released; terminating ones keep their owner.
        pods = await self._pods.claimed(owner, _selector(owner), is_active)
        desired = owner.spec.replicas if owner.spec.replicas is not None else 1
        missing = desired - sum(is_active(pod) for pod in pods)
        failure: KubernetesError | None = None
        if owner.metadata.deletion_timestamp is None and missing:
            try:
                if missing > 0:
                    new = [pod_from(_template(owner), owner) for _ in range(min(missing, BURST))]
                    await self._control.create_all(owner, new)
                else:
                    doomed = in_order_of_deletion(filter(is_active, pods))[: min(-missing, BURST)]
                    await self._control.delete_all(owner, doomed)
            except KubernetesError as error:
                failure = error
            pods = self._pods.by(owner, _selector(owner))
        await self._write_status(owner, pods, missing, failure)
        if failure is not None:
            raise failure

    async def _write_status(self, owner: Owner, pods: list[Pod], missing: int, failure: KubernetesError | None) -> None:
        now = self._clock.now()
        status = _status(owner, pods, now)
        _note_failure(status, missing, failure, now)
        if isinstance(owner, ReplicationController):
            changed = _converted(status)
            if changed != owner.status:
                owner.status = changed
                await self._client.status.update(owner)
        elif status != owner.status:
            owner.status = status
            await self._client.status.update(owner)
        # Those not available at `now`, even if they are by now: the status does not count them yet.
        waits = [available_in(pod, owner.spec.min_ready_seconds or 0, now) for pod in pods if is_active(pod)]
        if pending := [wait for wait in waits if wait]:
            self._alarms.set(owner.key, min(pending))


def _selector(owner: ReplicaSet | ReplicationController) -> LabelSelector:
    if isinstance(owner, ReplicationController):
        return LabelSelector(match_labels=owner.spec.selector)
    return owner.spec.selector


def _template(owner: ReplicaSet | ReplicationController) -> PodTemplateSpec:
    return owner.spec.template or PodTemplateSpec(spec=PodSpec(containers=[]))


def _status(owner: ReplicaSet | ReplicationController, pods: list[Pod], now: datetime) -> ReplicaSetStatus:
    active = [pod for pod in pods if is_active(pod)]
    template_labels = _template(owner).metadata.labels.items()
    min_ready_seconds = owner.spec.min_ready_seconds or 0
    # Zero is absent in these, as the server stores them; only terminatingReplicas distinguishes 0 from unknown.
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(template_labels <= pod.metadata.labels.items() for pod in active) or None,
        ready_replicas=sum(is_ready(pod) for pod in active) or None,
        available_replicas=sum(available_in(pod, min_ready_seconds, now) == 0 for pod in active) or None,
        terminating_replicas=sum(is_terminating(pod) for pod in pods),
        observed_generation=owner.metadata.generation,
        conditions=[ReplicaSetCondition(**asdict(one)) for one in owner.status.conditions],
    )


def _converted(status: ReplicaSetStatus) -> ReplicationControllerStatus:
    return ReplicationControllerStatus(
        replicas=status.replicas,
        fully_labeled_replicas=status.fully_labeled_replicas,
        ready_replicas=status.ready_replicas,
        available_replicas=status.available_replicas,
        observed_generation=status.observed_generation,
        conditions=[ReplicationControllerCondition(**asdict(one)) for one in status.conditions],
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
                message=message_of(failure),
                last_transition_time=now.replace(microsecond=0),
            )
        )
    elif failure is None and known:
        status.conditions = [condition for condition in status.conditions if condition.type != "ReplicaFailure"]
