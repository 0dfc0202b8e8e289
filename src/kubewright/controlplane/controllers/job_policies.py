"""What a failed pod, or some indexes that succeeded, mean for a Job: its podFailurePolicy and successPolicy."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kubewright.api.batch.v1 import Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule
from kubewright.api.core.v1 import ContainerStatus, Pod
from kubewright.controlplane.controllers.job_indexes import parsed


class Verdict(NamedTuple):
    """What follows from a failed pod; with FailJob why."""

    action: Literal["Count", "FailIndex", "FailJob", "Ignore"]
    message: str = ""


def only_failed_are_replaced(job: Job) -> bool:
    """Whether a pod that is being deleted counts as failed only once it has ended."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def has_failed(pod: Pod, job: Job) -> bool:
    """Whether the pod has failed. One that is being deleted has, as it may never report its end."""
    if pod.status.phase == "Failed":
        return True
    deleted = pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"
    return deleted and not only_failed_are_replaced(job)


def verdict(job: Job, pod: Pod) -> Verdict:
    """What the first rule that matches the failed pod says."""
    policy = job.spec.pod_failure_policy
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        reason = _match(rule, pod)
        if reason:
            message = f"{reason} matching {rule.action} rule at index {number}" if rule.action == "FailJob" else ""
            return Verdict(rule.action, message)
    return Verdict("Count")


def _match(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """How the rule matches the pod; empty when it does not."""
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
            code = _exit_code(status, rule.on_exit_codes)
            if code is not None:
                return f"Container {status.name} for pod {name} failed with exit code {code}"
        return ""
    for condition in pod.status.conditions:
        if any(
            (one.type, one.status or "True") == (condition.type, condition.status) for one in rule.on_pod_conditions
        ):
            return f"Pod {name} has condition {condition.type}"
    return ""


def _exit_code(status: ContainerStatus, required: PodFailurePolicyOnExitCodesRequirement) -> int | None:
    ended = status.state.terminated
    if ended is None or not ended.exit_code or required.container_name not in (None, status.name):
        return None
    return ended.exit_code if (ended.exit_code in required.values) == (required.operator == "In") else None


def matched_success(job: Job, succeeded: set[int]) -> str | None:
    """The message when a rule of the successPolicy is met."""
    policy, completions = job.spec.success_policy, job.spec.completions or 0
    if policy is None or not succeeded:
        return None
    for number, rule in enumerate(policy.rules):
        required = parsed(rule.succeeded_indexes, completions)
        if rule.succeeded_indexes is not None and not required:
            continue
        counted = succeeded & required if required else succeeded
        enough = rule.succeeded_count is not None and len(counted) >= rule.succeeded_count
        if enough or (required and counted == required):
            return f"Matched rules at index {number}"
    return None
