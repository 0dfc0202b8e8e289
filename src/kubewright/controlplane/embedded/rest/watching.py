"""Watch: the initial state if requested, then every change, in the order of the store.

Each line is one event. A watcher that is too slow is ended, and begins again from its last revision.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    StatusError,
    expired,
    forbidden_field,
    invalid,
    not_supported,
)
from kubewright.controlplane.embedded.rest.call import Call, ChangeSubscription
from kubewright.controlplane.embedded.rest.freshness import NotReached, awaited, must_be_listable, reached
from kubewright.controlplane.embedded.rest.reading import (
    ObjectSelection,
    collection_prefix,
    parse_revision,
    selection,
)
from kubewright.controlplane.embedded.storage.store import StoreChange, StoredObject

BOOKMARK_INTERVAL = 60.0
_MIN_DEFAULT_TIMEOUT = 1800.0

Rendering = Callable[[StoredObject], bytes]
"""Renders an object in the representation that was negotiated."""


@dataclass(frozen=True, slots=True)
class _Options:
    after: int | None
    initial: bool
    """Send what exists first."""
    bookmarks: bool
    """Say when that is done, and from time to time how far this is."""
    timeout: float


def watch(call: Call, render: Rendering) -> AsyncIterator[bytes]:
    """The lines of a watch. Raises StatusError at once for invalid options."""
    options, selected = _options(call), selection(call)
    must_be_listable(call)
    return _events(call, render, options, selected, call.services.store.revision)


async def _events(
    call: Call, render: Rendering, options: _Options, selected: ObjectSelection, now: int
) -> AsyncIterator[bytes]:
    prefix, store = collection_prefix(call), call.services.store
    wanted = options.after or 0
    if options.initial and wanted > store.revision and not await _comes(call, wanted):
        yield _error_line(NotReached(wanted, store.revision))
        return
    after = store.revision if options.initial else now if options.after is None else options.after
    oldest = max(store.compacted, _born(call))
    if after < oldest:
        yield _error_line(expired(f"too old resource version: {after} ({oldest})"))
        return
    # From a revision that is still to come, a watch starts without events: earlier changes are not sent.
    subscription = store.watch(prefix, min(after, store.revision))
    try:
        if options.initial:
            for entry in store.range(prefix, revision=after).entries:
                if selected.matches(entry.value):
                    yield _line("ADDED", render(entry))
            if options.bookmarks:
                yield _line("BOOKMARK", render(_bookmark(after, initial=True)))
        async for line in _live(call, subscription, selected, render, options, after):
            yield line
    finally:
        subscription.close()


async def _comes(call: Call, revision: int) -> bool:
    """Whether a revision is reached within the time that reads wait."""
    return awaited(call) and await reached(call.services.store, revision, call.services.patience)


def _born(call: Call) -> int:
    """The revision a custom kind is served since: nothing is known of it before."""
    return int(text(call.resource.definition, "metadata", "resourceVersion") or "0")


async def _live(
    call: Call,
    subscription: ChangeSubscription,
    selected: ObjectSelection,
    render: Rendering,
    options: _Options,
    start: int,
) -> AsyncIterator[bytes]:
    loop, store = asyncio.get_running_loop(), call.services.store
    end = loop.time() + options.timeout
    # Without bookmarks there is no wake-up for them.
    interval = BOOKMARK_INTERVAL if options.bookmarks else math.inf
    bookmark = loop.time() + interval
    while True:
        # Read before the changes are: a bookmark must not be ahead of a change that is still to be sent.
        revision, now, due = store.revision, loop.time(), min(end, bookmark)
        try:
            async with asyncio.timeout(max(0.0, due - now)):
                changes = await subscription.changes()
        except TimeoutError:
            if now < due:
                continue  # once more, without waiting: then all up to `revision` has been sent
            if options.bookmarks and revision > start:
                yield _line("BOOKMARK", render(_bookmark(revision)))
            if now >= end:
                return
            bookmark = now + interval
            continue
        if not changes:
            return  # ended: too slow, or nothing of this kind is served any more
        if changes[0].revision <= start:
            changes = [change for change in changes if change.revision > start]
        lines = b"".join(filter(None, (_change_line(change, selected, render) for change in changes)))
        if lines:
            yield lines
        if now >= end:
            return


def _change_line(change: StoreChange, selected: ObjectSelection, render: Rendering) -> bytes:
    """What a change means to a watcher that sees only the selected objects."""
    before = change.previous is not None and selected.matches(change.previous.value)
    after = change.kind == "put" and selected.matches(change.entry.value)
    if after:
        return _line("MODIFIED" if before else "ADDED", render(change.entry))
    if not before or change.previous is None:
        return b""
    if change.kind == "delete":
        return _line("DELETED", render(change.entry))
    # It is still there, but no longer among the selected: they see it go as they knew it, at this revision.
    last = copied_object(change.previous.value)
    inside(last, "metadata")["resourceVersion"] = str(change.entry.revision)
    return _line("DELETED", render(StoredObject(change.entry.key, last, change.entry.revision, change.entry.created)))


def _line(event_type: str, rendered: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (event_type.encode(), rendered.rstrip(b"\n"))


def _error_line(error: StatusError) -> bytes:
    return _line("ERROR", msgspec.json.encode(error.body()))


def _bookmark(revision: int, *, initial: bool = False) -> StoredObject:
    """An object that has only a revision."""
    metadata: JSONObject = {"resourceVersion": str(revision)}
    if initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return StoredObject("", {"metadata": metadata}, revision, revision)


def _options(call: Call) -> _Options:
    query = call.query
    revision, match = query.text("resourceVersion"), query.text("resourceVersionMatch")
    sends = query.text("sendInitialEvents")
    errors: list[FieldError] = []
    if sends and match != "NotOlderThan":
        errors.append(
            _not_with_match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        )
    if match and not sends:
        errors.append(
            _not_with_match("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
        )
    if match not in ("", "NotOlderThan"):
        errors.append(not_supported("resourceVersionMatch", match, ["NotOlderThan"]))
    # A watch from the beginning is one with a match, explicit or implied.
    if query.text("continue") and (match or (not sends and revision in ("", "0"))):
        errors.append(_not_with_match("resourceVersionMatch is forbidden when continue is provided"))
    if errors:
        raise invalid("ListOptions", "meta.k8s.io", "", errors)
    number = parse_revision(revision) if revision else 0
    wants_initial = query.flag("sendInitialEvents") if sends else number == 0
    seconds = query.number("timeoutSeconds")
    return _Options(
        after=number or None,
        initial=wants_initial,
        bookmarks=query.flag("allowWatchBookmarks"),
        timeout=float(seconds) if seconds else _MIN_DEFAULT_TIMEOUT * (1 + random.random()),  # noqa: S311 (spreads load)
    )


def _not_with_match(why: str) -> FieldError:
    return forbidden_field("resourceVersionMatch", why)
