"""How many replicas each ReplicaSet of a Deployment should have next.

Nothing here talks to a server: from a Deployment and its ReplicaSets to the sizes that differ from the present ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.api.apps.v1 import Deployment, ReplicaSet
from kubewright.api.int_or_string import scaled_value
from kubewright.controlplane.controllers.revisions import DESIRED_REPLICAS, MAX_REPLICAS, number

Sizes = dict[str, int]
"""Wanted replicas by the name of the ReplicaSet. Those not in it stay as they are."""


def desired_replicas(deployment: Deployment) -> int:
    """The desired replicas of the Deployment; 1 when not set."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def size(replica_set: ReplicaSet) -> int:
    """The desired replicas of the ReplicaSet."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def available(replica_set: ReplicaSet) -> int:
    """How many of its pods can serve."""
    return replica_set.status.available_replicas or 0


def _lasting(replica_set: ReplicaSet) -> int:
    """How many of its pods are available and stay. While it scales down, its status still counts the others."""
    return min(available(replica_set), size(replica_set))


def recreates(deployment: Deployment) -> bool:
    """Whether all old pods are deleted before the first new one is created."""
    return deployment.spec.strategy.type == "Recreate"


def max_surge(deployment: Deployment) -> int:
    """How many pods there may be beyond the desired number."""
    return 0 if recreates(deployment) else _fenceposts(deployment)[0]


def max_unavailable(deployment: Deployment) -> int:
    """How many of the desired pods may be unavailable."""
    desired = desired_replicas(deployment)
    return 0 if recreates(deployment) or not desired else min(_fenceposts(deployment)[1], desired)


def _fenceposts(deployment: Deployment) -> tuple[int, int]:
    limits, desired = deployment.spec.strategy.rolling_update, desired_replicas(deployment)
    surge = unavailable = 0
    if limits is not None:
        surge = scaled_value(limits.max_surge or 0, desired, round_up=True)
        unavailable = scaled_value(limits.max_unavailable or 0, desired, round_up=False)
    # Both zero, as two small percentages may come to, would allow no step at all.
    return (surge, unavailable) if surge or unavailable else (0, 1)


def first_size(deployment: Deployment, old: Sequence[ReplicaSet]) -> int:
    """With how many replicas a new ReplicaSet begins."""
    return _new_size(deployment, 0, sum(map(size, old)))


def _new_size(deployment: Deployment, current: int, total: int) -> int:
    desired = desired_replicas(deployment)
    if recreates(deployment):
        return desired
    room = desired + max_surge(deployment) - total
    return current + min(room, desired - current) if room > 0 else current


def next_sizes(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    """The next step of a rolling update: the new one up, or, when it is as far up as it may be, the old ones down."""
    desired, current = desired_replicas(deployment), size(new)
    target = desired if current > desired else _new_size(deployment, current, current + sum(map(size, old)))
    return {new.metadata.name: target} if target != current else _old_sizes(deployment, new, old)


def _old_sizes(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    before = {one.metadata.name: size(one) for one in sorted(old, key=_age) if size(one)}
    by_name = {one.metadata.name: one for one in old}
    least = desired_replicas(deployment) - max_unavailable(deployment)
    # Pods of the new template that do not serve yet must not be made up for by old ones that do.
    removable = sum(before.values()) + size(new) - least - (size(new) - _lasting(new))
    if removable <= 0:
        return {}
    after = dict(before)
    # Unavailable replicas are removed first: that costs nothing.
    for name, replicas in before.items():
        unhealthy = min(removable, replicas - _lasting(by_name[name]))
        after[name] -= unhealthy
        removable -= unhealthy
    spare = _lasting(new) + sum(_lasting(by_name[name]) for name in before) - least
    for name, replicas in after.items():
        if spare <= 0:
            break
        removed = min(replicas, spare)
        after[name] -= removed
        spare -= removed
    return {name: replicas for name, replicas in after.items() if replicas != before[name]}


def was_scaled(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> bool:
    """Whether the Deployment's own number has changed since its ReplicaSets were last sized."""
    noted = [number(one, DESIRED_REPLICAS) for one in replica_sets if size(one)]
    return any(replicas is not None and replicas != desired_replicas(deployment) for replicas in noted)


def scaled_sizes(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> Sizes:
    """The sizes after the Deployment's own number has changed: in the middle of a rollout, all in proportion."""
    desired = desired_replicas(deployment)
    everyone = [*old, *([new] if new is not None else [])]
    active = [one for one in everyone if size(one)]
    if len(active) <= 1:
        only = active[0] if active else new or max(old, key=_age, default=None)
        return {} if only is None else {only.metadata.name: desired}
    if new is not None and _is_saturated(deployment, new):
        return {one.metadata.name: 0 for one in old if size(one)}
    return {} if recreates(deployment) else _proportional_sizes(deployment, active)


def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    desired = desired_replicas(deployment)
    return size(new) == desired and number(new, DESIRED_REPLICAS) == desired and available(new) == desired


def _proportional_sizes(deployment: Deployment, active: list[ReplicaSet]) -> Sizes:
    desired = desired_replicas(deployment)
    allowed = desired + max_surge(deployment) if desired else 0
    to_add = allowed - sum(map(size, active))
    # Larger ones first; of equal ones the newer when growing and the older when shrinking.
    active.sort(key=_age, reverse=to_add > 0)
    active.sort(key=size, reverse=True)
    sizes: Sizes = {}
    added = 0
    for one in active:
        share = _share(deployment, one, allowed) if to_add else 0
        share = min(share, to_add - added) if to_add > 0 else max(share, to_add - added)
        sizes[one.metadata.name] = size(one) + share
        added += share
    max_surge_replicas = active[0].metadata.name
    sizes[max_surge_replicas] = max(0, sizes[max_surge_replicas] + to_add - added)
    return sizes


def _share(deployment: Deployment, one: ReplicaSet, allowed: int) -> int:
    if not allowed:
        return -size(one)
    before = number(one, MAX_REPLICAS) or deployment.status.replicas or 0
    # Half away from zero, in whole numbers: (2ab + c) // 2c.
    return (2 * size(one) * allowed + before) // (2 * before) - size(one) if before else 0


def _age(replica_set: ReplicaSet) -> tuple[float, str]:
    created = replica_set.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, replica_set.metadata.name)
