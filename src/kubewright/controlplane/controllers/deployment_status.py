"""The status of a Deployment: its counts, and the conditions Available, Progressing and ReplicaFailure.

Reasons and messages are kube-controller-manager's own: kubectl and operators read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from kubewright.api.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from kubewright.controlplane.controllers.rollout import available, desired_replicas, max_unavailable, size

_NO_DEADLINE = 2**31 - 1
_COMPLETE = "NewReplicaSetAvailable"
_TIMED_OUT = "ProgressDeadlineExceeded"
_PAUSED = "DeploymentPaused"

PROGRESSING = "Progressing"


def condition(status: DeploymentStatus, type_: str) -> DeploymentCondition | None:
    """The condition of that type."""
    return next((found for found in status.conditions if found.type == type_), None)


def set_deployment_condition(
    status: DeploymentStatus, type_: str, value: str, reason: str, message: str, now: datetime
) -> None:
    """Set a condition. One with the same status and reason stays as it is, with its times and its message."""
    present = condition(status, type_)
    if present is not None and present.status == value and present.reason == reason:
        return
    _put(status, type_, value, reason, message, now)


def _put(status: DeploymentStatus, type_: str, value: str, reason: str, message: str, now: datetime) -> None:
    present, now = condition(status, type_), now.replace(microsecond=0)
    turned = now if present is None or present.status != value else present.last_transition_time
    _remove(status, type_)
    status.conditions.append(
        DeploymentCondition(
            type=type_, status=value, reason=reason, message=message, last_update_time=now, last_transition_time=turned
        )
    )


def _remove(status: DeploymentStatus, type_: str) -> None:
    status.conditions = [found for found in status.conditions if found.type != type_]


def deadline(deployment: Deployment) -> int | None:
    """Seconds without progress after which a rollout counts as stuck; None when it never does."""
    seconds = deployment.spec.progress_deadline_seconds
    return None if seconds in (None, _NO_DEADLINE) else seconds


def counted(
    deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime
) -> DeploymentStatus:
    """The numbers, and with them Available. The other conditions are the present ones."""
    everyone = [*old, *([new] if new is not None else [])]
    availables = sum(map(available, everyone))
    terminating = [one.status.terminating_replicas for one in everyone if one.status.observed_generation]
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        # Zero is absent in these, as the server stores them.
        replicas=sum(one.status.replicas for one in everyone) or None,
        updated_replicas=(new.status.replicas if new is not None else 0) or None,
        ready_replicas=sum(one.status.ready_replicas or 0 for one in everyone) or None,
        available_replicas=availables or None,
        unavailable_replicas=max(0, sum(map(size, everyone)) - availables) or None,
        terminating_replicas=None if None in terminating else sum(count or 0 for count in terminating),
        collision_count=deployment.status.collision_count,
        conditions=list(deployment.status.conditions),
    )
    if availables >= desired_replicas(deployment) - max_unavailable(deployment):
        words = "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        words = "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    set_deployment_condition(status, "Available", *words, now)
    return status


def note_pause(deployment: Deployment, status: DeploymentStatus, now: datetime) -> None:
    """Report that a rollout is paused or resumed, so that the pause does not count as lack of progress."""
    present = condition(status, PROGRESSING)
    reason = present.reason if present is not None else None
    if deadline(deployment) is None or reason == _TIMED_OUT:
        return
    if deployment.spec.paused and reason != _PAUSED:
        set_deployment_condition(status, PROGRESSING, "Unknown", _PAUSED, "Deployment is paused", now)
    elif not deployment.spec.paused and reason == _PAUSED:
        set_deployment_condition(status, PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed", now)


def note_progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime
) -> None:
    """Set Progressing from what has changed since `deployment.status`, and ReplicaFailure from the ReplicaSets."""
    present = condition(status, PROGRESSING)
    seconds = deadline(deployment)
    subject = f'ReplicaSet "{new.metadata.name}"' if new is not None else f'Deployment "{deployment.metadata.name}"'
    settled = present is not None and present.reason == _COMPLETE and status.replicas == status.updated_replicas
    if seconds is None:
        _remove(status, PROGRESSING)
    elif settled:
        pass
    elif is_complete(deployment, status):
        set_deployment_condition(status, PROGRESSING, "True", _COMPLETE, f"{subject} has successfully progressed.", now)
    elif _moved(deployment.status, status):
        # Even with the same reason: lastUpdateTime is the time of the last progress.
        _put(status, PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
    elif present is not None and _has_timed_out(present, seconds, now):
        set_deployment_condition(status, PROGRESSING, "False", _TIMED_OUT, f"{subject} has timed out progressing.", now)
    _note_replica_failure(status, new, old)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all pods are of the current template, as many as desired, and available."""
    desired = desired_replicas(deployment)
    return (status.updated_replicas or 0) == (status.replicas or 0) == (status.available_replicas or 0) == desired and (
        status.observed_generation or 0
    ) >= deployment.metadata.generation


def seconds_to_deadline(deployment: Deployment, status: DeploymentStatus, now: datetime) -> float | None:
    """When to check the progress deadline; None when nothing is in progress or it is reported already."""
    present, seconds = condition(status, PROGRESSING), deadline(deployment)
    if seconds is None or present is None or present.last_update_time is None:
        return None
    if is_complete(deployment, status) or present.reason in (_TIMED_OUT, _COMPLETE) or deployment.spec.paused:
        return None
    due = present.last_update_time + timedelta(seconds=seconds)
    # The time in the condition has lost its fraction, so it is over only a second later.
    return max(0.0, (due - now).total_seconds()) + 1.0


def _moved(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    old_before = (before.replicas or 0) - (before.updated_replicas or 0)
    old_after = (after.replicas or 0) - (after.updated_replicas or 0)
    return (
        (after.updated_replicas or 0) > (before.updated_replicas or 0)
        or old_after < old_before
        or (after.ready_replicas or 0) > (before.ready_replicas or 0)
        or (after.available_replicas or 0) > (before.available_replicas or 0)
    )


def _has_timed_out(present: DeploymentCondition, seconds: int, now: datetime) -> bool:
    if present.reason == _COMPLETE or present.last_update_time is None:
        return False
    return present.reason == _TIMED_OUT or present.last_update_time + timedelta(seconds=seconds) < now


def _note_replica_failure(status: DeploymentStatus, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> None:
    for one in [*([new] if new is not None else []), *old]:
        for found in one.status.conditions:
            if found.type == "ReplicaFailure":
                present = condition(status, found.type)
                if present is None or (present.status, present.reason) != (found.status, found.reason):
                    _remove(status, found.type)
                    status.conditions.append(
                        DeploymentCondition(
                            type=found.type,
                            status=found.status,
                            reason=found.reason,
                            message=found.message,
                            last_update_time=found.last_transition_time,
                            last_transition_time=found.last_transition_time,
                        )
                    )
                return
    _remove(status, "ReplicaFailure")
