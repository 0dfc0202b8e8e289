"""What a Job's pods say: how many have ended and how, and whether that is the end of the Job.

Nothing here talks to a server. A pod is counted while it has the tracking finalizer and its uid is not in the status;
taking off the finalizer after that makes it count exactly once, whatever is interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import msgspec

from kubewright.api.batch.v1 import Job, JobCondition, JobStatus, UncountedTerminatedPods
from kubewright.api.core.v1 import Pod
from kubewright.controlplane.controllers.job_indexes import failures_of, index_of, parsed
from kubewright.controlplane.controllers.job_policies import has_failed, matched_success, verdict
from kubewright.controlplane.controllers.pods import is_active, is_ready, is_terminating

TRACKING = "batch.kubernetes.io/job-tracking"


def is_indexed(job: Job) -> bool:
    """Whether each pod of the Job has an index."""
    return job.spec.completion_mode == "Indexed"


def is_finished(job: Job) -> bool:
    """Whether the Job is over."""
    return any(one.type in ("Complete", "Failed") and one.status == "True" for one in job.status.conditions)


def is_suspended(job: Job) -> bool:
    """Whether the Job should run nothing at the moment."""
    return bool(job.spec.suspend)


@dataclass(slots=True)
class JobState:
    """A Job with a status of its own that may be changed, and its pods."""

    job: Job
    status: JobStatus
    uncounted: UncountedTerminatedPods
    pods: list[Pod]
    active: list[Pod]
    terminating: int
    new_succeeded: list[Pod]
    new_failed: list[Pod]
    succeeded_before: set[int]
    succeeded_indexes: set[int]
    failed_indexes: set[int] | None
    finished: JobCondition | None = None
    """The condition with which the Job ends, once that is decided."""

    @property
    def succeeded(self) -> int:
        """How many have succeeded, those included that are not in the status yet."""
        if is_indexed(self.job):
            return len(self.succeeded_indexes)
        return (self.job.status.succeeded or 0) + len(self.new_succeeded) + len(self.uncounted.succeeded)

    @property
    def failed(self) -> int:
        """How many have failed, as far as their failure counts."""
        new = sum(verdict(self.job, pod).action != "Ignore" for pod in self.new_failed)
        return (self.job.status.failed or 0) + new + len(self.uncounted.failed)


def state_of(job: Job, pods: list[Pod]) -> JobState:
    """The state of a Job that has not ended, from its pods."""
    stored = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
    uncounted = UncountedTerminatedPods(succeeded=list(stored.succeeded), failed=list(stored.failed))
    status = msgspec.structs.replace(
        job.status, conditions=list(job.status.conditions), uncounted_terminated_pods=uncounted
    )
    completions = job.spec.completions or 0
    valid = [
        pod
        for pod in pods
        if TRACKING in pod.metadata.finalizers
        and (not is_indexed(job) or ((index := index_of(pod)) is not None and index < completions))
    ]
    new_succeeded = [
        pod for pod in valid if pod.status.phase == "Succeeded" and pod.metadata.uid not in uncounted.succeeded
    ]
    new_failed = [pod for pod in valid if has_failed(pod, job) and pod.metadata.uid not in uncounted.failed]
    before, failed_indexes = set[int](), None
    if is_indexed(job):
        before = parsed(status.completed_indexes, completions)
        if job.spec.backoff_limit_per_index is not None:
            failed_indexes = parsed(status.failed_indexes, completions) | _indexes(
                pod for pod in valid if _index_has_failed(job, pod)
            )
    return JobState(
        job,
        status,
        uncounted,
        sorted(pods, key=lambda pod: (index_of(pod) or 0, pod.metadata.name)) if is_indexed(job) else pods,
        [pod for pod in pods if is_active(pod)],
        sum(map(is_terminating, pods)),
        new_succeeded,
        new_failed,
        before,
        before | _indexes(pod for pod in valid if pod.status.phase == "Succeeded") if is_indexed(job) else set(),
        failed_indexes,
    )


def _indexes(pods: Iterable[Pod]) -> set[int]:
    return {index for pod in pods if (index := index_of(pod)) is not None}


def _index_has_failed(job: Job, pod: Pod) -> bool:
    if not has_failed(pod, job):
        return False
    action = verdict(job, pod).action
    if action == "FailIndex":
        return True
    return action != "Ignore" and failures_of(pod) >= (job.spec.backoff_limit_per_index or 0)


def ending(state: JobState, now: datetime) -> JobCondition | None:
    """The condition with which the Job should end now, other than by enough completions."""
    job, status = state.job, state.status
    for type_ in ("SuccessCriteriaMet", "FailureTarget"):
        present = condition(status, type_)
        if present is not None and present.status == "True":
            return present
    for pod in state.pods:
        if has_failed(pod, job) and (found := verdict(job, pod)).action == "FailJob":
            return new_condition("FailureTarget", "PodFailurePolicy", found.message, now)
    limit = job.spec.backoff_limit if job.spec.backoff_limit is not None else 6
    if state.failed > limit or _restarts_exceed(job, state.pods, limit):
        message = "Job has reached the specified backoff limit"
        return new_condition("FailureTarget", "BackoffLimitExceeded", message, now)
    if (left := seconds_to_deadline(state, now)) is not None and left <= 0:
        message = "Job was active longer than specified deadline"
        return new_condition("FailureTarget", "DeadlineExceeded", message, now)
    if state.failed_indexes is not None:
        most = job.spec.max_failed_indexes
        if most is not None and len(state.failed_indexes) > most:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return new_condition("FailureTarget", "MaxFailedIndexesExceeded", message, now)
        if state.failed_indexes and len(state.failed_indexes | state.succeeded_indexes) >= (job.spec.completions or 0):
            return new_condition("FailureTarget", "FailedIndexes", "Job has failed indexes", now)
    if is_indexed(job) and (matched := matched_success(job, state.succeeded_indexes)) is not None:
        return new_condition("SuccessCriteriaMet", "SuccessPolicy", matched, now)
    return None


def seconds_to_deadline(state: JobState, now: datetime) -> float | None:
    """How long the Job may still be active; None when for ever."""
    limit, started = state.job.spec.active_deadline_seconds, state.status.start_time
    if limit is None or started is None or is_suspended(state.job):
        return None
    return limit - (now - started).total_seconds()


def _restarts_exceed(job: Job, pods: Iterable[Pod], limit: int) -> bool:
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = sum(
        status.restart_count
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def counted(state: JobState, active: int, ready: int, terminating: int) -> None:
    """Put the numbers of pods into the status."""
    state.status.active = active or None
    state.status.ready = ready
    state.status.terminating = terminating


def ready_pods(pods: Iterable[Pod]) -> int:
    """How many of the pods are ready."""
    return sum(map(is_ready, pods))


def condition(status: JobStatus, type_: str) -> JobCondition | None:
    """The condition of a type."""
    return next((one for one in status.conditions if one.type == type_), None)


def new_condition(type_: str, reason: str, message: str, now: datetime, *, status: str = "True") -> JobCondition:
    """A condition that begins now."""
    whole = now.replace(microsecond=0)
    return JobCondition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_probe_time=whole,
        last_transition_time=whole,
    )
