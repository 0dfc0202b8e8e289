"""From one state of a Devbox to another: what is done once the pod is as the state wants it.

Where a transition is follows from the status alone, which is written before each next part of it: a restart goes on
from there. A content is committed by these changes of its record, each in a reconcile of its own:

    Pending --the pod is gone--> Committing --the commit is made--> Success, and there is a new content
                                 Committing --the attempt failed--> Failed --a while later--> Committing
                                 Committing or Failed --Running or Paused is wanted again--> Pending
                                 Failed --the content is gone--> Pending

Rules of the kind keep users from changing the state while it is Committing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from kubewright import now
from kubewright.patterns import NotYet

from .committer import CommitFailed, Committed, Committing
from .content import (
    add_record,
    cached_claim,
    check_content,
    find_content,
    forget_lost_base,
    is_gone,
    pods_using_content,
    presence,
    report_loss,
    stored_claim,
)
from .context import DevboxContext
from .names import claim_of
from .types import Devbox, State

MAX_RECORDS: Final = 10
_PAUSE: Final = 10.0
_SLACK: Final = timedelta(minutes=1)
"""What commits may end an attempt that takes too long by itself, and knows best why it does."""


def is_open(devbox: Devbox) -> bool:
    """Whether a pod may use the present content."""
    return devbox.status.record.commit_status == "Pending"


async def sync_commit(context: DevboxContext) -> None:
    """Do the next part of the transition to the state that is wanted."""
    devbox = context.object
    state = devbox.spec.state
    if state in ("Running", "Paused"):
        if not is_open(devbox):
            await _reopen(context)
        elif state == "Running" or context.pod is None:
            _reach(context, state)
            await check_content(context)
    elif state in ("Stopped", "Shutdown") and context.pod is None:
        status = devbox.status.record.commit_status
        if status == "Committing":
            await _commit(context)
        elif status == "Failed":
            await _retry(context)
        elif devbox.status.state != state or devbox.status.record.node or await cached_claim(context) is not None:
            await _begin(context)
        else:
            await check_content(context)


async def _begin(context: DevboxContext) -> None:
    devbox, record = context.object, context.object.status.record
    # What they write now would not be committed.
    if found := await pods_using_content(context):
        volume = claim_of(devbox, devbox.status.content_id)
        raise NotYet(f"the volume {volume} is still used by the pod {', '.join(found)}", after=_PAUSE)
    match await presence(context):
        case "present":
            await forget_lost_base(context)
            record.commit_image = context.committer.reference(devbox, devbox.status.content_id)
            _attempt(context)
        case "absent":
            if await find_content(context):
                return
            await forget_lost_base(context)
            if record.schedule_time is not None:
                report_loss(context)
            _reach(context, devbox.spec.state)
        case "going":
            context.reconcile_after(_PAUSE)


def _attempt(context: DevboxContext) -> None:
    """Claim the content for the commit; that begins when the claim is stored."""
    record = context.object.status.record
    record.commit_status, record.update_time, record.message = "Committing", now(), "it begins"
    record.attempts += 1
    number = f", attempt {record.attempts}" if record.attempts > 1 else ""
    context.events.normal(context.object, "CommitStarted", f"Committing the content to {record.commit_image}{number}")
    context.reconcile_after(0)


async def _commit(context: DevboxContext) -> None:
    devbox, record = context.object, context.object.status.record
    match await context.committer.commit(devbox):
        case Committing(message, after):
            record.message = message
            left = ((record.update_time or now()) + context.options.commit_timeout + _SLACK - now()).total_seconds()
            if await is_gone(context):
                await _fail(context, message)
            elif left > 0:
                context.reconcile_after(left if after is None else min(after, left))
            else:  # its users can do nothing before it has ended
                await _fail(context, f"it takes longer than {context.options.commit_timeout}: {message}")
        case CommitFailed(message):
            await _fail(context, message)
        case Committed():
            _succeed(context)


async def _fail(context: DevboxContext, message: str) -> None:
    """The attempt has failed. The content is intact, unless another client has deleted its volume."""
    devbox, record = context.object, context.object.status.record
    is_lost = await is_gone(context)
    content = f"the volume {claim_of(devbox, devbox.status.content_id)} is gone" if is_lost else "the content is intact"
    record.commit_status, record.update_time, record.message = "Failed", now(), f"{message}; {content}"
    context.events.warning(devbox, "CommitFailed", f"Attempt {record.attempts} failed: {record.message}")
    context.reconcile_after(0)


def _succeed(context: DevboxContext) -> None:
    """The content is committed, and there is a new one that begins from the commit: in one write of the status."""
    devbox, record = context.object, context.object.status.record
    record.commit_status, record.commit_time, record.update_time, record.message = "Success", now(), now(), ""
    add_record(devbox, record.commit_image)
    context.events.normal(devbox, "CommitSucceeded", f"Committed the content to {record.commit_image}")
    _reach(context, devbox.spec.state)
    context.reconcile_after(0)


async def _retry(context: DevboxContext) -> None:
    """Remove the attempt that has failed, and try again after a while."""
    record, options = context.object.status.record, context.options
    is_over = await context.committer.cancel(context.object)
    if not is_over:
        context.reconcile_after(_PAUSE)
        return
    if await presence(context) != "present":
        await _give_up(context)  # what is gone cannot be committed
        return
    if record.attempts >= options.commit_tries:
        await _discard_attempt(context)
        return
    since = record.update_time or now()
    left = (since + options.commit_retry - now()).total_seconds()
    if left > 0:
        context.reconcile_after(left)
    else:
        await forget_lost_base(context)
        _attempt(context)


async def _reopen(context: DevboxContext) -> None:
    """The content is wanted again: give up committing it, and let pods use it when nothing reads it any more."""
    if await context.committer.cancel(context.object):
        await _give_up(context)
    else:
        context.reconcile_after(_PAUSE)


async def _give_up(context: DevboxContext) -> None:
    """Begin the transition anew, with a content of which no commit was tried."""
    record = context.object.status.record
    await _discard_attempt(context)
    record.commit_status, record.update_time, record.attempts, record.message = "Pending", now(), 0, ""
    context.reconcile_after(0)


async def _discard_attempt(context: DevboxContext) -> None:
    """Remove what an attempt that was given up has left, while the content that it was made from is there."""
    devbox, record = context.object, context.object.status.record
    is_base = any(each.base_image == record.commit_image for each in devbox.status.commit_records.values())
    if record.commit_image and not is_base:
        content = await stored_claim(context)
        if content is not None and content.metadata.deletion_timestamp is None:
            await context.committer.discard(devbox, record.commit_image)
    record.commit_image = ""


def _reach(context: DevboxContext, state: State) -> None:
    """The Devbox is in that state."""
    devbox = context.object
    if state in ("Stopped", "Shutdown"):
        devbox.status.record.node = ""
    if devbox.status.state != state:
        context.events.normal(devbox, "StateChanged", f"The Devbox was {devbox.status.state} and is {state}")
        devbox.status.state = state


async def discard_commits(context: DevboxContext) -> None:
    """Remove the commits that the present content does not begin from, and the oldest records of them."""
    devbox = context.object
    status, base = devbox.status, devbox.status.record.base_image
    if is_open(devbox):
        await context.committer.cancel(devbox)  # the attempt that succeeded is of no use any more
    superseded = {
        content_id: record
        for content_id, record in status.commit_records.items()
        if content_id != status.content_id and record.commit_image != base
    }
    for record in superseded.values():
        if record.commit_image:
            await context.committer.discard(devbox, record.commit_image)
            record.commit_image = ""
    by_age = sorted(superseded, key=lambda content_id: superseded[content_id].generate_time or now())
    for content_id in by_age[: max(0, len(status.commit_records) - MAX_RECORDS)]:
        del status.commit_records[content_id]
