"""The state of a pod as controllers need it: active, ready, and since when."""

from __future__ import annotations

from datetime import datetime, timedelta

from kubewright.api.core.v1 import Pod
from kubewright.patterns.conditions import get_condition

ENDED = ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """True while the pod counts as a replica: it has not ended and is not being deleted."""
    return pod.status.phase not in ENDED and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """True while the pod is being deleted and may still be running."""
    return pod.status.phase not in ENDED and pod.metadata.deletion_timestamp is not None


def is_ready(pod: Pod) -> bool:
    """Whether the pod has the condition Ready."""
    ready = get_condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def available_in(pod: Pod, min_ready_seconds: int, now: datetime) -> float | None:
    """Seconds until the pod has been ready for long enough, 0 when it has; None while it is not ready at all."""
    ready = get_condition(pod, "Ready")
    if ready is None or ready.status != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    if ready.last_transition_time is None:
        return None
    due = ready.last_transition_time + timedelta(seconds=min_ready_seconds)
    return max(0.0, (due - now).total_seconds())
