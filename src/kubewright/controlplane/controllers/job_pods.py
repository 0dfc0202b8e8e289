"""Which pods a Job needs next: how many, for which indexes, and which of the present ones are too many.

Nothing here talks to a server.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from kubewright.api.batch.v1 import Job
from kubewright.api.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod
from kubewright.controlplane.controllers.job_backoff import finished_at, remaining
from kubewright.controlplane.controllers.job_indexes import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    all_failures_of,
    failures_of,
    index_of,
)
from kubewright.controlplane.controllers.job_policies import has_failed, only_failed_are_replaced, verdict
from kubewright.controlplane.controllers.job_state import TRACKING, JobState, is_indexed, is_suspended
from kubewright.controlplane.controllers.pod_control import BURST, pod_from
from kubewright.controlplane.controllers.pod_ranking import in_order_of_deletion
from kubewright.controlplane.controllers.pods import is_terminating

_ENVIRONMENT = "JOB_COMPLETION_INDEX"
_MAX_GENERATED_NAME = 58


def desired_active(state: JobState) -> int:
    """How many pods should run at the moment."""
    job = state.job
    if is_suspended(job):
        return 0
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    if job.spec.completions is None:
        # Once one has succeeded, the others are left to end by themselves.
        return len(state.active) if state.succeeded else parallelism
    return max(0, min(job.spec.completions - state.succeeded, parallelism))


def surplus(state: JobState, desired: int) -> list[Pod]:
    """The pods to delete: several for one index, those without one, and then those that are the least loss."""
    pods, doomed = in_order_of_deletion(state.active), list[Pod]()
    if is_indexed(state.job):
        kept: dict[int, Pod] = {}
        for pod in pods:
            index = index_of(pod)
            if index is None or index >= (state.job.spec.completions or 0):
                doomed.append(pod)
            else:
                if index in kept:
                    doomed.append(kept[index])
                kept[index] = pod
        pods = [pod for pod in pods if pod not in doomed]
    too_many = len(state.active) - desired - len(doomed)
    return (doomed + pods[: max(0, too_many)])[:BURST]


def missing(state: JobState, desired: int) -> int:
    """How many pods to create."""
    ending = state.terminating if only_failed_are_replaced(state.job) else 0
    return min(desired - ending - len(state.active), BURST)


def pending_indexes(state: JobState, count: int) -> list[int]:
    """The first indexes for which no pod runs, has succeeded or may be tried again."""
    taken = state.succeeded_indexes | (state.failed_indexes or set())
    taken |= {index for pod in state.active if (index := index_of(pod)) is not None}
    if only_failed_are_replaced(state.job):
        taken |= {index for pod in state.pods if is_terminating(pod) and (index := index_of(pod)) is not None}
    found: list[int] = []
    for index in range(state.job.spec.completions or 0):
        if len(found) == count:
            break
        if index not in taken:
            found.append(index)
    return found


def failed_before(state: JobState) -> dict[int, Pod]:
    """By index, the failed pod that is still to be replaced: it knows how often its index has failed."""
    if state.job.spec.backoff_limit_per_index is None:
        return {}
    active = {index_of(pod) for pod in state.active}
    found: dict[int, Pod] = {}
    for pod in state.pods:
        index = index_of(pod)
        if index is None or TRACKING not in pod.metadata.finalizers or not has_failed(pod, state.job):
            continue
        if index in active or index in state.succeeded_indexes or index in (state.failed_indexes or ()):
            continue
        if index not in found or all_failures_of(pod) >= all_failures_of(found[index]):
            found[index] = pod
    return found


def ready_indexes(indexes: list[int], failed: dict[int, Pod], now: datetime) -> tuple[list[int], float]:
    """Those whose back-off is over, and the seconds until that of the next one is when there are none."""
    waits = {
        index: remaining(all_failures_of(failed[index]) + 1, finished_at(failed[index]), now)
        if index in failed
        else 0.0
        for index in indexes
    }
    due = [index for index in indexes if not waits[index]]
    return due, 0.0 if due else min(waits.values(), default=0.0)


def new_pod(job: Job, index: int | None, replaced: Pod | None) -> Pod:
    """A pod of the Job, for an index if it has them; `replaced` is the one that failed before it."""
    pod = pod_from(job.spec.template, job)
    if TRACKING not in pod.metadata.finalizers:
        pod.metadata.finalizers.append(TRACKING)
    if index is None:
        return pod
    suffix = f"-{index}-"
    pod.metadata.generate_name = f"{job.metadata.name[: _MAX_GENERATED_NAME - len(suffix)]}{suffix}"
    pod.metadata.labels[INDEX] = pod.metadata.annotations[INDEX] = str(index)
    pod.spec.hostname = f"{job.metadata.name}-{index}"
    pod.spec.containers = [_with_index(one) for one in pod.spec.containers]
    pod.spec.init_containers = [_with_index(one) for one in pod.spec.init_containers]
    if job.spec.backoff_limit_per_index is not None:
        counts = replaced is not None and verdict(job, replaced).action != "Ignore"
        ignored = replaced is not None and not counts
        failures = failures_of(replaced) if replaced is not None else 0
        pod.metadata.annotations[FAILURES] = str(failures + counts)
        all_ignored = (all_failures_of(replaced) - failures if replaced is not None else 0) + ignored
        if all_ignored:
            pod.metadata.annotations[IGNORED_FAILURES] = str(all_ignored)
    return pod


def _with_index(container: Container) -> Container:
    if any(one.name == _ENVIRONMENT for one in container.env):
        return container
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']"))
    return msgspec.structs.replace(container, env=[*container.env, EnvVar(name=_ENVIRONMENT, value_from=source)])
