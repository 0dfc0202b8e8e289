"""The step that has a Devbox run, or not: its content volume, its pod, and the commit of what it leaves.

A pod that has ended is replaced, ever later while that repeats. A pod on a node that is lost is waited for: nothing
else may use its content. There is no finalizer on pods: all that is read from them is a status, and a pod that cannot
go while the operator is down would block its node.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kubewright import now, set_controller_reference
from kubewright.api.core.v1 import ContainerStatus, Pod
from kubewright.patterns import Done, step

from .commit import discard_commits, is_open, sync_commit
from .content import cached_claim, ensure_content, sync_volumes
from .context import SYNCED, DevboxContext
from .names import CONTENT_ID, SPEC_HASH
from .parts import find_part, is_part, is_watched, take_over
from .pod_metadata import follow
from .pod_spec import pod_of
from .types import Devbox

RESTART = timedelta(seconds=10)
MAX_RESTART = timedelta(minutes=5)
STABLE = timedelta(minutes=10)
"""A pod that ran so long before it ended is replaced as if it were the first one."""

_MAX_DOUBLINGS = 10
_HIDDEN = 10.0


@step("PodSynced")
async def pod(context: DevboxContext) -> Done:
    """Remove what is committed, have the pod there or not, and commit its content when it is gone."""
    await sync_volumes(context)
    await discard_commits(context)
    await sync_pod(context)
    await sync_commit(context)
    claim = await cached_claim(context)
    if context.pod is None or claim is None or claim.metadata.deletion_timestamp is None:
        return SYNCED
    message = (
        f"another client has deleted the volume {claim.metadata.name}: it goes when the pod does, and cannot be "
        "committed. Copy what is needed of the content"
    )
    return context.degraded("PodSynced", "ContentDeleted", message)


async def sync_pod(context: DevboxContext) -> None:
    """Create, keep, replace or delete the pod."""
    devbox = context.object
    found = await _find_pod(context)
    if found is not None:
        observe(devbox, found)
    if devbox.spec.state != "Running":
        devbox.status.restarts = 0
    if found is None:
        if is_open(devbox) and devbox.spec.state == "Running":
            await _create(context)
    elif found.metadata.deletion_timestamp is None:
        await _keep(context, found)
    context.pod = await _find_pod(context)
    _follow_end(context, context.pod)


async def _keep(context: DevboxContext, found: Pod) -> None:
    devbox, state = context.object, context.object.spec.state
    if state in ("Paused", "Stopped", "Shutdown"):
        await _delete(context, found, f"the Devbox is to be {state}")
    elif state == "Running" and is_finished(found):
        delay = restart_delay(devbox, found)
        if (left := (ended_at(found) + delay - now()).total_seconds()) > 0:
            context.reconcile_after(left)
            return
        await _delete(context, found, f"it has ended: {describe(found)}")
        devbox.status.restarts = 0 if _was_stable(found) else devbox.status.restarts + 1
    elif state == "Running" and found.status.phase != "Running" and is_outdated(context, found):
        await _delete(context, found, "it has not started, and the Devbox has changed")
    else:
        follow(found.metadata, pod_of(devbox, context.committer, context.options).metadata)
        await take_over(context, found)
        await context.client.patch(found)
        if not found.spec.node_name:
            await ensure_content(context)  # a claim is not protected before the pod that mounts it has a node


async def _create(context: DevboxContext) -> None:
    devbox = context.object
    # It may be there although the cache does not show it: without its labels, or just created.
    if (hidden := await find_part(context, Pod, devbox.metadata.name)) is not None:
        if hidden.metadata.deletion_timestamp is None:
            await _keep(context, hidden)
        _follow_end(context, hidden)
        return
    await ensure_content(context)
    made = pod_of(devbox, context.committer, context.options)
    set_controller_reference(devbox, made)
    await context.client.create(made)
    context.events.normal(devbox, "Created", f"Created pod {made.metadata.name}")


async def _delete(context: DevboxContext, found: Pod, why: str) -> None:
    await context.client.delete(found, uid=found.metadata.uid, missing_ok=True)
    context.events.normal(context.object, "Deleted", f"Deleted pod {found.metadata.name}: {why}")
    _follow_end(context, found)


def _follow_end(context: DevboxContext, found: Pod | None) -> None:
    """Nothing tells when a pod is gone that has lost its labels or its owner."""
    if found is not None and not is_watched(context.object, found):
        context.reconcile_after(_HIDDEN)


async def read_pod(context: DevboxContext) -> Pod | None:
    """The pod as this reconcile has left it. One of another owner is none, until its name is needed."""
    devbox = context.object
    found = await context.client.find(Pod, devbox.metadata.name, namespace=devbox.metadata.namespace)
    return found if found is not None and is_part(devbox, found) else None


async def _find_pod(context: DevboxContext) -> Pod | None:
    """The pod, also one that the cache does not show as it has lost its labels, while there is one to remove."""
    devbox = context.object
    found = await read_pod(context)
    if found is None and devbox.status.state != devbox.spec.state != "Running":
        found = await context.live.find(Pod, devbox.metadata.name, namespace=devbox.metadata.namespace)
        if found is None or not is_part(devbox, found):
            return None
    return found


def observe(devbox: Devbox, pod: Pod) -> None:
    """Put into the status what the pod shows: its node, and how its container ended."""
    record, node = devbox.status.record, pod.spec.node_name or ""
    if node and record.node != node:
        record.node, record.schedule_time, record.update_time = node, now(), now()
    is_of_content = pod.metadata.annotations.get(CONTENT_ID) == devbox.status.content_id
    if pod.status.phase == "Running" and is_of_content and record.start_time is None:
        record.start_time = now()
    if ended := _terminated(pod):
        devbox.status.last_container_status = ended[0]


def is_finished(pod: Pod) -> bool:
    """Whether its container has ended, and will not be started again."""
    return pod.status.phase in ("Failed", "Succeeded")


def is_running(pod: Pod | None) -> bool:
    """Whether its container runs, and it is not being deleted."""
    return pod is not None and pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None


def is_outdated(context: DevboxContext, pod: Pod) -> bool:
    """Whether it was made from an earlier spec."""
    wanted = pod_of(context.object, context.committer, context.options)
    return pod.metadata.annotations.get(SPEC_HASH) != wanted.metadata.annotations[SPEC_HASH]


def restart_delay(devbox: Devbox, pod: Pod) -> timedelta:
    """How long a pod that has ended stays before it is replaced."""
    doublings = 0 if _was_stable(pod) else min(devbox.status.restarts, _MAX_DOUBLINGS)
    return min(RESTART * (1 << doublings), MAX_RESTART)


def ended_at(pod: Pod) -> datetime:
    """When a finished pod ended, as far as its status shows."""
    times = [each.state.terminated.finished_at for each in _terminated(pod) if each.state.terminated is not None]
    times = times or [each.last_transition_time for each in pod.status.conditions]
    known = [time for time in times if time is not None]
    return max(known) if known else pod.metadata.creation_timestamp or now()


def describe(pod: Pod) -> str:
    """Why a pod does not run, in a few words."""
    for status in _terminated(pod):
        if (terminated := status.state.terminated) is not None:
            reason = terminated.reason or "its container ended"
            return f"{pod.status.reason or reason}, exit code {terminated.exit_code}"
    waiting = [each.state.waiting for each in _statuses(pod) if each.state.waiting is not None]
    for each in sorted(waiting, key=lambda one: one.reason == "PodInitializing"):  # which is to wait for another one
        if each.reason:
            return f"{each.reason} {each.message or ''}".strip()
    unscheduled = [each for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False"]
    if unscheduled:
        return f"{unscheduled[0].reason} {unscheduled[0].message or ''}".strip()
    return pod.status.reason or pod.status.phase or "Pending"


def _was_stable(pod: Pod) -> bool:
    started = [each.state.terminated.started_at for each in _terminated(pod) if each.state.terminated is not None]
    known = [time for time in started if time is not None]
    return bool(known) and ended_at(pod) - min(known) >= STABLE


def _terminated(pod: Pod) -> list[ContainerStatus]:
    return [each for each in _statuses(pod) if each.state.terminated is not None]


def _statuses(pod: Pod) -> list[ContainerStatus]:
    """Of the containers that fill the volume, unless they have succeeded, and of the container."""
    filling = [
        each
        for each in pod.status.init_container_statuses
        if each.state.terminated is None or each.state.terminated.exit_code != 0
    ]
    return [*filling, *pod.status.container_statuses]
