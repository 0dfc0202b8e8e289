"""StatefulSets: pods with an identity, created, updated and deleted one by one, each with claims of its own."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import datetime

import msgspec

from kubewright.api.apps.v1 import ControllerRevision, StatefulSet, StatefulSetStatus
from kubewright.api.core.v1 import PersistentVolumeClaim, Pod
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.client.errors import NotFound
from kubewright.controller import Request, Watched, for_object, for_owner
from kubewright.controlplane.controllers.controller_revisions import History, Present
from kubewright.controlplane.controllers.owned_pods import OwnedPods, watched_pods
from kubewright.controlplane.controllers.pods import ENDED, available_in
from kubewright.controlplane.controllers.reporting import ReportingController, is_refused_by_deletion, message_of
from kubewright.controlplane.controllers.stateful_pods import (
    claim_name,
    claim_owners,
    is_available,
    is_running,
    new_claim,
    new_pod,
    ordinal,
    ordinals,
    revision_of,
)


class StatefulSets(ReportingController):
    """Keeps the pods and claims of every StatefulSet, and its status true."""

    name = "statefulsets"
    component = "statefulset-controller"

    _pods: OwnedPods
    _history: History

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        with (
            cache.watch(Pod) as pods,
            cache.watch(ControllerRevision) as revisions,
            cache.watch(PersistentVolumeClaim),
        ):
            self._pods = OwnedPods(self._client, cache, pods)
            self._history = History(self._client, cache, revisions)
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, StatefulSet, for_object),
                Watched(cache, ControllerRevision, for_owner(StatefulSet)),
                *watched_pods(self._client, cache, StatefulSet, lambda set_: set_.spec.selector),
                self._alarms,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Take the next step of one StatefulSet."""
        set_ = await self._client.find(StatefulSet, request)
        if set_ is None:
            return
        pods = await self._pods.claimed(set_, set_.spec.selector, lambda pod: ordinal(pod, set_) is not None)
        present = await self._history.present(set_)
        names = {one.metadata.name: one for one in present.all}
        current = names.get(set_.status.current_revision or "", present.newest)
        failure: KubernetesError | None = None
        if set_.metadata.deletion_timestamp is None:
            try:
                await self._step(
                    set_,
                    {number: pod for pod in pods if (number := ordinal(pod, set_)) is not None},
                    current,
                    present.newest,
                )
            except KubernetesError as error:
                failure = error
        await self._write_status(set_, current, present)
        pods = self._pods.by(set_, set_.spec.selector)
        used = {current.metadata.name, present.newest.metadata.name, *map(revision_of, pods)}
        await self._history.truncate(set_, present, used)
        if failure is not None and not is_refused_by_deletion(failure):
            raise failure

    # The next step

    async def _step(
        self, set_: StatefulSet, pods: dict[int, Pod], current: ControllerRevision, update: ControllerRevision
    ) -> None:
        """Create what is missing, delete what is too much, and replace what is old, one by one if it is ordered."""
        now, ordered = self._clock.now(), set_.spec.pod_management_policy != "Parallel"
        for number in ordinals(set_):
            if await self._is_blocked(set_, number, pods, current, update, now) and ordered:
                return
        if any(number not in pods or pods[number].status.phase in ENDED for number in ordinals(set_)):
            return
        surplus = sorted((number for number in pods if number not in ordinals(set_)), reverse=True)
        for number in surplus:
            await self._fix_claims(set_, pods[number])
        unhealthy = [
            number for number in (*ordinals(set_), *reversed(surplus)) if not is_available(pods[number], set_, now)
        ]
        for number in surplus:
            pod = pods[number]
            if pod.metadata.deletion_timestamp is not None:
                if ordered:
                    return
                continue
            if ordered and not is_available(pod, set_, now) and number != unhealthy[0]:
                return
            await self._delete(set_, pod)
            if ordered:
                return
        if surplus or set_.spec.update_strategy.type == "OnDelete":
            return
        rolling = set_.spec.update_strategy.rolling_update
        first = ordinals(set_).start + ((rolling.partition or 0) if rolling is not None else 0)
        for number in reversed(ordinals(set_)):
            if number < first:
                return
            pod = pods[number]
            if revision_of(pod) != update.metadata.name and pod.metadata.deletion_timestamp is None:
                await self._delete(set_, pod)
                return
            if not is_available(pod, set_, now):
                return

    async def _is_blocked(
        self,
        set_: StatefulSet,
        number: int,
        pods: dict[int, Pod],
        current: ControllerRevision,
        update: ControllerRevision,
        now: datetime,
    ) -> bool:
        """Bring one replica forward. True when the next one has to wait for it."""
        pod = pods.get(number)
        if pod is None:
            await self._create(set_, new_pod(set_, number, current, update), number)
            return True
        if pod.status.phase in ENDED:
            if pod.metadata.deletion_timestamp is None:
                await self._delete(set_, pod)
            return True
        if pod.status.phase == "Pending":
            await self._create_claims(set_, pod.metadata.name, number)
        if pod.metadata.deletion_timestamp is None and is_available(pod, set_, now):
            await self._fix_claims(set_, pod)
            return False
        return True

    async def _create(self, set_: StatefulSet, pod: Pod, number: int) -> None:
        await self._create_claims(set_, pod.metadata.name, number)
        try:
            await self._client.create(pod)
        except KubernetesError as error:
            self._report(set_, "create", f"Pod {pod.metadata.name}", error)
            raise
        self._report(set_, "create", f"Pod {pod.metadata.name}")

    async def _delete(self, set_: StatefulSet, pod: Pod) -> None:
        try:
            await self._client.delete(pod, uid=pod.metadata.uid)
        except NotFound:
            return
        except KubernetesError as error:
            self._report(set_, "delete", f"Pod {pod.metadata.name}", error)
            raise
        self._report(set_, "delete", f"Pod {pod.metadata.name}")

    async def _create_claims(self, set_: StatefulSet, pod: str, number: int) -> None:
        for template in set_.spec.volume_claim_templates:
            claim = new_claim(set_, template, number)
            if await self._client.find(PersistentVolumeClaim, claim.key) is not None:
                continue
            try:
                await self._client.create(claim)
            except KubernetesError as error:
                self._report(set_, "create", f"Claim {claim.metadata.name} for Pod {pod}", error)
                raise
            note = f"Create Claim {claim.metadata.name} Pod {pod} in StatefulSet {set_.metadata.name} success"
            self._recorder.normal(set_, "SuccessfulCreate", note)

    async def _fix_claims(self, set_: StatefulSet, pod: Pod) -> None:
        """Let the claims of a pod be owned by what they are to be deleted with."""
        number = ordinal(pod, set_)
        if number is None or set_.spec.persistent_volume_claim_retention_policy is None:
            return
        owners = claim_owners(set_, None if number in ordinals(set_) else pod)
        for template in set_.spec.volume_claim_templates:
            key = ObjectKey(set_.metadata.namespace, claim_name(set_, template, number))
            claim = await self._client.find(PersistentVolumeClaim, key)
            if claim is None:
                continue
            wanted = [*(one for one in claim.metadata.owner_references if not _is_ours(one.uid, set_, pod)), *owners]
            if {one.uid for one in wanted} != {one.uid for one in claim.metadata.owner_references}:
                claim.metadata.owner_references = wanted
                await self._client.patch(claim)

    def _report(self, set_: StatefulSet, verb: str, what: str, error: KubernetesError | None = None) -> None:
        title, where = verb.capitalize(), f"in StatefulSet {set_.metadata.name}"
        if error is None:
            self._recorder.normal(set_, f"Successful{title}", f"{title} {what} {where} successful")
        elif not is_refused_by_deletion(error):
            note = f"{title} {what} {where} failed error: {message_of(error)}"
            self._recorder.warning(set_, f"Failed{title}", note)

    # Status

    async def _write_status(self, set_: StatefulSet, current: ControllerRevision, present: Present) -> None:
        now, pods = self._clock.now(), self._pods.by(set_, set_.spec.selector)
        status = _status(set_, pods, current.metadata.name, present, now)
        if status != set_.status:
            changed = copy.copy(set_)
            changed.status = status
            await self._client.status.update(changed)
        waits = [available_in(pod, set_.spec.min_ready_seconds or 0, now) for pod in pods]
        if pending := [wait for wait in waits if wait]:
            self._alarms.set(set_.key, min(pending))


def _is_ours(uid: str, set_: StatefulSet, pod: Pod) -> bool:
    return uid in (set_.metadata.uid, pod.metadata.uid)


def _status(set_: StatefulSet, pods: Iterable[Pod], current: str, present: Present, now: datetime) -> StatefulSetStatus:
    pods, update = list(pods), present.newest.metadata.name
    live = [revision_of(pod) for pod in pods if pod.metadata.deletion_timestamp is None]
    status = StatefulSetStatus(
        observed_generation=set_.metadata.generation,
        replicas=len(pods),
        ready_replicas=sum(map(is_running, pods)) or None,
        available_replicas=sum(is_available(pod, set_, now) for pod in pods),
        current_replicas=live.count(current) or None,
        updated_replicas=live.count(update) or None,
        current_revision=current,
        update_revision=update,
        collision_count=present.collisions,
        conditions=list(set_.status.conditions),
    )
    desired = len(ordinals(set_))
    is_rolled_out = (status.updated_replicas or 0, status.ready_replicas or 0, status.replicas) == (desired,) * 3
    if set_.spec.update_strategy.type != "OnDelete" and is_rolled_out:
        status = msgspec.structs.replace(status, current_replicas=status.updated_replicas, current_revision=update)
    return status
