"""PodDisruptionBudgets: how many of the selected pods may be evicted at the moment.

The server takes one off for each eviction and notes the pod; here the number is made true again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from kubewright.api.apps.v1 import Deployment, ReplicaSet, StatefulSet
from kubewright.api.core.v1 import Pod, ReplicationController
from kubewright.api.int_or_string import scaled_value
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetStatus
from kubewright.api.resources import Object
from kubewright.api.selectors import label_matcher
from kubewright.controller import Event, Handler, Request, Watched, for_object
from kubewright.controlplane.controllers.decoded import Decoded
from kubewright.controlplane.controllers.ownership import controller_of
from kubewright.controlplane.controllers.pods import is_ready
from kubewright.controlplane.controllers.reporting import ReportingController
from kubewright.patterns.conditions import set_condition

_DELETION_TIMEOUT = timedelta(minutes=2)


class DisruptionBudgets(ReportingController):
    """Keeps the status of every PodDisruptionBudget true."""

    name = "disruption"
    component = "controllermanager"

    _pods: Decoded[Pod]
    _budgets: Decoded[PodDisruptionBudget]

    async def run(self) -> None:
        """Watch and count until cancelled."""
        cache = self._runtime.cache
        with cache.watch(Pod) as pods, cache.watch(PodDisruptionBudget) as budgets:
            self._pods, self._budgets = Decoded(pods), Decoded(budgets)
            scaled = (
                Watched(cache, kind, Handler(self._namespace_changed))
                for kind in (Deployment, ReplicaSet, StatefulSet, ReplicationController)
            )
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, PodDisruptionBudget, for_object),
                Watched(cache, Pod, Handler(self._pod_changed)),
                *scaled,
                self._alarms,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Count the pods of one budget."""
        budget = await self._client.find(PodDisruptionBudget, request)
        if budget is None:
            return
        selector = budget.spec.selector
        pods = self._pods.list(namespace=request.namespace, labels=selector) if selector is not None else []
        if not pods:
            self._recorder.normal(budget, "NoPods", "No matching pods found")
        try:
            expected, desired = await self._expected(budget, pods)
        except _Uncountable as error:
            await self._fail(budget, str(error))
            return
        now = self._clock.now()
        disrupted = self._disrupted(budget, pods, now)
        healthy = sum(
            pod.metadata.deletion_timestamp is None and pod.metadata.name not in disrupted and is_ready(pod)
            for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status = PodDisruptionBudgetStatus(
            current_healthy=healthy,
            desired_healthy=desired,
            expected_pods=expected,
            disruptions_allowed=allowed,
            disrupted_pods=disrupted,
            observed_generation=budget.metadata.generation,
            conditions=[msgspec.structs.replace(one) for one in budget.status.conditions],
        )
        await self._write(budget, status, allowed > 0, "SufficientPods" if allowed else "InsufficientPods", "")
        if disrupted:
            due = min(disrupted.values()) + _DELETION_TIMEOUT
            self._alarms.set(request, max(0.0, (due - now).total_seconds()) + 1)

    async def _expected(self, budget: PodDisruptionBudget, pods: list[Pod]) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy."""
        least, most = budget.spec.min_available, budget.spec.max_unavailable
        if most is not None:
            expected = await self._scale(budget, pods)
            return expected, max(0, expected - scaled_value(most, expected, round_up=True))
        if least is None:
            return 0, 0
        if isinstance(least, int):
            return len(pods), least
        expected = await self._scale(budget, pods)
        return expected, scaled_value(least, expected, round_up=True)

    async def _scale(self, budget: PodDisruptionBudget, pods: Iterable[Pod]) -> int:
        """The desired replicas of all workloads that the pods belong to."""
        scales: dict[str, int] = {}
        unmanaged = False
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                unmanaged = True
            elif reference.uid not in scales:
                uid, scale = await self._scale_of(reference, pod.metadata)
                scales[uid] = scale
        if unmanaged:
            shown = label_matcher(budget.spec.selector) if budget.spec.selector is not None else ""
            note = (
                f"Pods selected by this PodDisruptionBudget (selector: &LabelSelector{{{shown}}}) were found to be "
                "unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in "
                'undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
                "integer value."
            )
            self._recorder.warning(budget, "UnmanagedPods", note)
        return sum(scales.values())

    async def _scale_of(self, reference: OwnerReference, pod: ObjectMeta) -> tuple[str, int]:
        key = ObjectKey(pod.namespace, reference.name)
        found: ReplicaSet | StatefulSet | ReplicationController | None = None
        match reference.kind:
            case "ReplicaSet":
                found = await self._client.find(ReplicaSet, key)
            case "StatefulSet":
                found = await self._client.find(StatefulSet, key)
            case "ReplicationController":
                found = await self._client.find(ReplicationController, key)
        if found is None or found.metadata.uid != reference.uid:
            raise _Uncountable(f'found no controllers for pod "{pod.name}"')
        owner = controller_of(found)
        if isinstance(found, ReplicaSet) and owner is not None and owner.kind == "Deployment":
            deployment = await self._client.find(Deployment, ObjectKey(pod.namespace, owner.name))
            if deployment is not None and deployment.metadata.uid == owner.uid:
                return owner.uid, _replicas(deployment)
        return reference.uid, _replicas(found)

    def _disrupted(self, budget: PodDisruptionBudget, pods: Iterable[Pod], now: datetime) -> dict[str, datetime]:
        """The evicted pods whose deletion has not begun, as long as that may still be expected."""
        noted = budget.status.disrupted_pods
        kept = {}
        for pod in pods:
            name = pod.metadata.name
            if name in noted and pod.metadata.deletion_timestamp is None:
                if noted[name] + _DELETION_TIMEOUT < now:
                    where = f"{budget.metadata.namespace}/{budget.metadata.namespace}"
                    note = f"Pod was expected by PDB {where} to be deleted but it wasn't"
                    self._recorder.warning(pod, "NotDeleted", note)
                else:
                    kept[name] = noted[name]
        return kept

    async def _fail(self, budget: PodDisruptionBudget, why: str) -> None:
        note = f"Failed to calculate the number of expected pods: {why}"
        self._recorder.warning(budget, "CalculateExpectedPodCountFailed", note)
        # Nothing is evicted while the number is not known.
        status = msgspec.structs.replace(
            budget.status,
            disruptions_allowed=0,
            observed_generation=budget.metadata.generation,
            conditions=[msgspec.structs.replace(one) for one in budget.status.conditions],
        )
        await self._write(budget, status, False, "SyncFailed", why)

    async def _write(
        self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus, verdict: bool, reason: str, message: str
    ) -> None:
        changed = copy.copy(budget)
        changed.status = status
        set_condition(changed, "DisruptionAllowed", verdict, reason, message, at=self._clock.now())
        if changed.status != budget.status:
            await self._client.status.update(changed)

    def _pod_changed(self, event: Event[Object]) -> Iterable[Request]:
        labels = [entry.labels for entry in (event.old, event.new) if entry is not None]
        return [
            budget.key
            for budget in self._budgets.list(namespace=event.key.namespace)
            if budget.spec.selector is not None and any(map(label_matcher(budget.spec.selector).matches, labels))
        ]

    def _namespace_changed(self, event: Event[Object]) -> Iterable[Request]:
        if event.initial or (
            event.old is not None and event.new is not None and event.old.generation == event.new.generation
        ):
            return ()
        return [budget.key for budget in self._budgets.list(namespace=event.key.namespace)]


class _Uncountable(Exception):
    """A pod whose workload has no number of replicas."""


def _replicas(workload: Deployment | ReplicaSet | StatefulSet | ReplicationController) -> int:
    return 1 if workload.spec.replicas is None else workload.spec.replicas
