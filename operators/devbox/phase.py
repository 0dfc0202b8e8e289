"""The step that reports: the phase of a Devbox, and the conditions of its transition, its commit and its pod.

It runs after the pod step, so that it is about what that has left, and it does nothing.
"""

from __future__ import annotations

from kubewright.api.core.v1 import Pod
from kubewright.patterns import Done, remove_condition, set_condition, step

from .context import SYNCED, DevboxContext
from .pod import describe, is_outdated, is_running
from .types import Devbox, Phase

_ON_THE_WAY: dict[str, Phase] = {"Paused": "Pausing", "Stopped": "Stopping", "Shutdown": "Shutting"}


@step("PhaseSynced")
async def phase(context: DevboxContext) -> Done:
    """Report on what this reconcile has made and found."""
    report(context)
    return SYNCED


def report(context: DevboxContext) -> None:
    """Set the phase, the node and the conditions beyond those of the steps."""
    devbox, pod = context.object, context.pod
    devbox.status.phase = phase_of(devbox, pod)
    devbox.status.node = (pod.spec.node_name or "") if pod is not None else ""
    _report_transition(devbox)
    _report_commit(context)
    if pod is not None and is_running(pod) and is_outdated(context, pod):
        message = "the pod was made from an earlier spec: pause the Devbox and run it again to have the present one"
        set_condition(devbox, "PodUpToDate", False, "RestartNeeded", message)
    else:
        remove_condition(devbox, "PodUpToDate")


def phase_of(devbox: Devbox, pod: Pod | None) -> Phase:
    """The phase of a Devbox with this pod."""
    status, state = devbox.status, devbox.spec.state
    if pod is not None and pod.status.phase == "Failed" and pod.metadata.deletion_timestamp is None:
        return "Error"
    if state == "Running":
        return "Running" if is_running(pod) else "Pending"
    if state in ("Paused", "Stopped", "Shutdown"):
        is_over = pod is None and status.state == state and (state == "Paused" or not status.record.node)
        return state if is_over else _ON_THE_WAY[state]
    return "Unknown"


def not_ready_reason(devbox: Devbox, pod: Pod | None) -> str:
    """Why the phase is not that of the state, in a sentence."""
    record = devbox.status.record
    if record.commit_status == "Failed":
        return f"the content could not be committed: {record.message}"
    if record.commit_status == "Committing":
        return f"the content is being committed to {record.commit_image}: {record.message}"
    if pod is None:
        return "there is no pod yet" if devbox.spec.state == "Running" else "the content is being released"
    if pod.metadata.deletion_timestamp is not None:
        return f"the pod on {pod.spec.node_name or 'no node'} is terminating"
    return f"the pod does not run: {describe(pod)}"


def _report_transition(devbox: Devbox) -> None:
    wanted, reached = devbox.spec.state, devbox.status.state
    if wanted == reached:
        set_condition(devbox, "StateTransitionPending", False, "StateTransitionSynced")
    else:
        message = f"the Devbox is {reached} and is to be {wanted}"
        set_condition(devbox, "StateTransitionPending", True, "SpecStateChanged", message)


def _report_commit(context: DevboxContext) -> None:
    devbox, record = context.object, context.object.status.record
    if record.commit_status == "Committing":
        message = f"the content is committed to {record.commit_image}, attempt {record.attempts}: {record.message}"
        set_condition(devbox, "CommitInProgress", True, "CommitStarted", message)
    elif record.commit_status == "Failed":
        message = f"attempt {record.attempts} failed: {record.message}"
        if record.attempts >= context.options.commit_tries:
            message += "; it was the last one: set the state to Running or Paused, and back to try again"
        set_condition(devbox, "CommitInProgress", False, "CommitFailed", message)
    elif context.committer.is_commit(devbox, record.base_image):
        set_condition(devbox, "CommitInProgress", False, "CommitSucceeded", f"committed to {record.base_image}")
    else:
        set_condition(devbox, "CommitInProgress", False, "CommitNotInProgress")
