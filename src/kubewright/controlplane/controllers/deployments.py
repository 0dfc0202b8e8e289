"""Deployments: rolling a pod template out over ReplicaSets, and back.

Each reconcile takes one step and writes the status once. The number of pods of each ReplicaSet is decided in `rollout`,
its revision in `revisions`, the conditions in `deployment_status`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import msgspec

from kubewright.api.apps.v1 import Deployment, DeploymentStatus, ReplicaSet
from kubewright.api.kinds import ObjectKey
from kubewright.api.markers import JSONValue
from kubewright.api.selectors import label_matcher
from kubewright.cache import Cache
from kubewright.client import Client, MergePatch
from kubewright.client.errors import AlreadyExists, APIError, Forbidden
from kubewright.controller import Request, Watched, for_object, for_owner, mapped
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.deployment_status import (
    PROGRESSING,
    condition,
    counted,
    deadline,
    is_complete,
    note_pause,
    note_progress,
    seconds_to_deadline,
    set_deployment_condition,
)
from kubewright.controlplane.controllers.namespaces import is_about_terminating
from kubewright.controlplane.controllers.ownership import Owned, claimed, controller_of, is_new_orphan
from kubewright.controlplane.controllers.revisions import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    current_set,
    has_template_of,
    new_set,
    number,
    revision_annotations,
)
from kubewright.controlplane.controllers.rollout import (
    Sizes,
    desired_replicas,
    first_size,
    max_surge,
    next_sizes,
    recreates,
    scaled_sizes,
    size,
    was_scaled,
)
from kubewright.controlplane.controllers.runtime import Alarms, Runtime
from kubewright.manager.core_event_form import CoreV1
from kubewright.manager.recorder import EventBroadcaster

_UNLIMITED_HISTORY = 2**31 - 1


class Deployments:
    """Rolls out every Deployment, and keeps its status true."""

    name = "deployments"

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._replica_sets: Owned[ReplicaSet]
        self._alarms = Alarms[Request](self._clock)
        self._events = EventBroadcaster(
            client, instance="", now=self._clock.now, form=CoreV1(field_manager="kube-controller-manager")
        )
        self._recorder = self._events.recorder("deployment-controller")

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        with cache.watch(ReplicaSet) as replica_sets:
            self._replica_sets = Owned(cache, replica_sets)
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Deployment, for_object),
                Watched(cache, ReplicaSet, for_owner(Deployment)),
                Watched(cache, ReplicaSet, mapped(self._those_who_may_adopt), where=is_new_orphan),
                self._alarms,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Take the next step of one Deployment."""
        stored = await self._client.find(Deployment, request)
        if stored is None:
            return
        # Metadata and status change on the way; what they were is needed to see what moved.
        deployment = copy.copy(stored)
        deployment.metadata = msgspec.structs.replace(stored.metadata, annotations=dict(stored.metadata.annotations))
        deployment.status = _private(stored.status)
        owned = await self._owned(deployment)
        new = current_set(deployment, owned)
        old = [one for one in owned if new is None or one.metadata.uid != new.metadata.uid]
        if deployment.metadata.deletion_timestamp is not None:
            status = counted(deployment, new, old, self._clock.now())
        else:
            note_pause(deployment, deployment.status, self._clock.now())
            if new is not None:
                new = await self._refreshed(deployment, new, old)
            if deployment.spec.paused or was_scaled(deployment, owned):
                status = await self._rescale(deployment, new, old)
            elif recreates(deployment):
                status = await self._recreate(deployment, new, old)
            else:
                status = await self._roll(deployment, new, old)
        await self._write_status(stored, deployment, status)

    # Rollout steps

    async def _roll(self, deployment: Deployment, new: ReplicaSet | None, old: list[ReplicaSet]) -> DeploymentStatus:
        if new is None:
            new = await self._created(deployment, old)
        sizes = next_sizes(deployment, new, old)
        new, old = await self._resized(deployment, new, old, sizes)
        if not sizes and is_complete(deployment, deployment.status):
            await self._clean_up(deployment, old)
        return self._rollout_status(deployment, new, old)

    async def _recreate(
        self, deployment: Deployment, new: ReplicaSet | None, old: list[ReplicaSet]
    ) -> DeploymentStatus:
        sizes = {one.metadata.name: 0 for one in old if size(one)}
        if sizes or any(_may_have_pods(one) for one in old):
            new, old = await self._resized(deployment, new, old, sizes)
            return self._rollout_status(deployment, new, old)
        if new is None:
            new = await self._created(deployment, old)
        if size(new) != desired_replicas(deployment):
            new = await self._scaled(deployment, new, desired_replicas(deployment))
        if is_complete(deployment, deployment.status):
            await self._clean_up(deployment, old)
        return self._rollout_status(deployment, new, old)

    async def _rescale(self, deployment: Deployment, new: ReplicaSet | None, old: list[ReplicaSet]) -> DeploymentStatus:
        new, old = await self._resized(deployment, new, old, scaled_sizes(deployment, new, old))
        if deployment.spec.paused:
            await self._clean_up(deployment, old)
        return counted(deployment, new, old, self._clock.now())

    # Steps

    async def _owned(self, deployment: Deployment) -> list[ReplicaSet]:
        selector = deployment.spec.selector
        candidates = self._replica_sets.by(deployment)
        candidates += self._replica_sets.orphans(deployment.metadata.namespace, selector)
        return await claimed(self._client, deployment, selector, candidates)

    async def _refreshed(self, deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> ReplicaSet:
        """The present ReplicaSet with the annotations it should have, and the Deployment with its revision."""
        changes: dict[str, JSONValue] = dict(revision_annotations(deployment, new, old))
        spec: dict[str, JSONValue] = {}
        if (new.spec.min_ready_seconds or 0) != (deployment.spec.min_ready_seconds or 0):
            spec["minReadySeconds"] = deployment.spec.min_ready_seconds or 0
        if changes or spec:
            new = await self._patched(new, changes, spec)
        deployment.metadata.annotations[REVISION] = new.metadata.annotations.get(REVISION, "")
        if deadline(deployment) is not None and condition(deployment.status, PROGRESSING) is None:
            message = f'Found new replica set "{new.metadata.name}"'
            set_deployment_condition(
                deployment.status, PROGRESSING, "True", "FoundNewReplicaSet", message, self._clock.now()
            )
        return new

    async def _created(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> ReplicaSet:
        draft = new_set(deployment, old, first_size(deployment, old), _scale_annotations(deployment))
        now = self._clock.now()
        try:
            created = await self._client.create(draft)
        except AlreadyExists:
            found = await self._client.get(ReplicaSet, draft.key, consistency="live")
            controller = controller_of(found)
            if (
                controller is None
                or controller.uid != deployment.metadata.uid
                or not has_template_of(found, deployment)
            ):
                await self._note_collision(deployment)
                raise
            created = found
        except APIError as error:
            if not (isinstance(error, Forbidden) and is_about_terminating(error)):
                message = f'Failed to create new replica set "{draft.metadata.name}": {error.status.message}'
                self._recorder.warning(deployment, "ReplicaSetCreateError", message)
                if deadline(deployment) is not None:
                    set_deployment_condition(
                        deployment.status, PROGRESSING, "False", "ReplicaSetCreateError", message, now
                    )
                    await self._client.status.update(deployment)
            raise
        else:
            if size(created):
                message = f"Scaled up replica set {created.metadata.name} from 0 to {size(created)}"
                self._recorder.normal(deployment, "ScalingReplicaSet", message)
        if deadline(deployment) is not None:
            message = f'Created new replica set "{created.metadata.name}"'
            set_deployment_condition(deployment.status, PROGRESSING, "True", "NewReplicaSetCreated", message, now)
        deployment.metadata.annotations[REVISION] = created.metadata.annotations[REVISION]
        return created

    async def _note_collision(self, deployment: Deployment) -> None:
        """Another ReplicaSet has the name: the next reconcile computes another hash."""
        deployment.status.collision_count = (deployment.status.collision_count or 0) + 1
        await self._client.status.update(deployment)

    async def _resized(
        self, deployment: Deployment, new: ReplicaSet | None, old: list[ReplicaSet], sizes: Sizes
    ) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
        resized = {
            one.metadata.name: await self._scaled(deployment, one, sizes[one.metadata.name])
            for one in [*old, *([new] if new is not None else [])]
            if one.metadata.name in sizes
        }
        if new is not None:
            new = resized.get(new.metadata.name, new)
        return new, [resized.get(one.metadata.name, one) for one in old]

    async def _scaled(self, deployment: Deployment, one: ReplicaSet, replicas: int) -> ReplicaSet:
        noted = _scale_annotations(deployment)
        if size(one) == replicas and noted.items() <= one.metadata.annotations.items():
            return one
        scaled = await self._patched(one, dict(noted), {"replicas": replicas})
        if (before := size(one)) != replicas:
            way = "up" if before < replicas else "down"
            message = f"Scaled {way} replica set {one.metadata.name} from {before} to {replicas}"
            self._recorder.normal(deployment, "ScalingReplicaSet", message)
        return scaled

    async def _patched(
        self, one: ReplicaSet, annotations: dict[str, JSONValue], spec: dict[str, JSONValue]
    ) -> ReplicaSet:
        patch: dict[str, JSONValue] = {"metadata": {"uid": one.metadata.uid, "annotations": annotations}}
        if spec:
            patch["spec"] = spec
        return await self._client.patch(one, MergePatch(patch))

    async def _clean_up(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> None:
        """Forget the oldest revisions beyond the history limit. One that may still have pods is kept."""
        limit = deployment.spec.revision_history_limit
        if limit is None or limit == _UNLIMITED_HISTORY:
            return
        living = [one for one in old if one.metadata.deletion_timestamp is None]
        living.sort(key=lambda one: (number(one, REVISION) or 0, one.metadata.name))
        for one in living[: max(0, len(living) - limit)]:
            if not size(one) and not one.status.replicas and _is_observed(one):
                await self._client.delete(one, uid=one.metadata.uid, missing_ok=True)

    def _rollout_status(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]
    ) -> DeploymentStatus:
        now = self._clock.now()
        status = counted(deployment, new, old, now)
        note_progress(deployment, status, new, old, now)
        return status

    async def _write_status(self, stored: Deployment, deployment: Deployment, status: DeploymentStatus) -> None:
        deployment.status = status
        if status != stored.status or deployment.metadata.annotations != stored.metadata.annotations:
            # The revision is written with the status: this endpoint takes annotations, and one write is enough.
            await self._client.status.update(deployment)
        wait = seconds_to_deadline(deployment, status, self._clock.now())
        if wait is not None:
            self._alarms.set(deployment.key, wait)

    async def _those_who_may_adopt(self, replica_set: ReplicaSet) -> list[ObjectKey]:
        deployments = await self._client.list(Deployment, namespace=replica_set.metadata.namespace)
        return [one.key for one in deployments if label_matcher(one.spec.selector).matches(replica_set.metadata.labels)]


def _private(status: DeploymentStatus) -> DeploymentStatus:
    return msgspec.structs.replace(status, conditions=list(status.conditions))


def _scale_annotations(deployment: Deployment) -> dict[str, str]:
    desired = desired_replicas(deployment)
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + max_surge(deployment))}


def _is_observed(replica_set: ReplicaSet) -> bool:
    return replica_set.metadata.generation <= (replica_set.status.observed_generation or 0)


def _may_have_pods(replica_set: ReplicaSet) -> bool:
    """Whether the ReplicaSet's controller still reports pods, terminating ones included."""
    return (
        not _is_observed(replica_set)
        or replica_set.status.replicas > 0
        or (replica_set.status.terminating_replicas or 0) > 0
    )
