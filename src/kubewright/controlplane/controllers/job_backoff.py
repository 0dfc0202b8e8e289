"""How long a Job waits before it replaces failed pods: 10 s, 20 s … 10 min after the last failure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from kubewright.api.core.v1 import Pod
from kubewright.patterns.conditions import get_condition

_FIRST, _MAX = 10.0, 600.0


class JobBackoff(NamedTuple):
    """The failures since the last success, and when the last one was."""

    failures: int = 0
    last: datetime | None = None

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> JobBackoff:
        """With the pods that have ended since."""
        ends = sorted(finished_at(pod) for pod in failed)
        if not succeeded:
            return JobBackoff(self.failures + len(ends), ends[-1]) if ends else self
        success = max(finished_at(pod) for pod in succeeded)
        later = [end for end in ends if end > success]
        return JobBackoff(len(later), later[-1]) if later else JobBackoff()

    def remaining(self, now: datetime) -> float:
        """Seconds until a failed pod may be replaced."""
        return remaining(self.failures, self.last, now)


def remaining(failures: int, last: datetime | None, now: datetime) -> float:
    """Seconds until one may be replaced after so many failures."""
    if not failures or last is None:
        return 0.0
    pause = min(_FIRST * (1 << min(failures - 1, 10)), _MAX)
    return max(0.0, pause - (now - last).total_seconds())


def finished_at(pod: Pod) -> datetime:
    """When the pod ended, as far as it is known."""
    ends = [one.state.terminated for one in pod.status.container_statuses]
    times = [end.finished_at for end in ends if end is not None and end.finished_at is not None]
    if times and len(times) == len(ends):
        return max(times)
    ready = get_condition(pod, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    meta = pod.metadata
    if meta.deletion_timestamp is not None:
        return meta.deletion_timestamp - timedelta(seconds=meta.deletion_grace_period_seconds or 0)
    if meta.creation_timestamp is None:
        raise ValueError(f"pod {pod.key} was never created")
    return meta.creation_timestamp
