"""Watch: the initial state if requested, then every change, in the order of the store.

Each line is one event. A watcher that is too slow is ended, and begins again from its last revision.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

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
from kubewright.controlplane.embedded.rest.presentation import WatchPresentation
from kubewright.controlplane.embedded.rest.reading import (
    ObjectSelection,
    collection_prefix,
    parse_revision,
    selection,
)
from kubewright.controlplane.embedded.rest.suspension import completed
from kubewright.controlplane.embedded.storage.store import StoreChange, StoredObject

BOOKMARK_INTERVAL = 60.0
_MIN_DEFAULT_TIMEOUT = 1800.0
_MAX_PIECE = 64 * 1024
"""Bytes of events that are sent at once: so much is held for a watcher that does not read, or a single event."""


@dataclass(frozen=True, slots=True)
class _Options:
    after: int | None
    initial: bool
    """Send what exists first."""
    bookmarks: bool
    """Say when that is done, and from time to time how far this is."""
    timeout: float


def watch(call: Call, presentation: WatchPresentation) -> AsyncIterator[bytes]:
    """The lines of a watch. Raises StatusError at once for invalid options."""
    options, selected = _options(call), selection(call)
    must_be_listable(call)
    return _events(call, _Lines(call, selected, presentation), options, call.services.store.revision)


async def _events(call: Call, lines: _Lines, options: _Options, now: int) -> AsyncIterator[bytes]:
    prefix, store = collection_prefix(call), call.services.store
    wanted = options.after or 0
    if options.initial and wanted > store.revision and not await _comes(call, wanted):
        yield lines.of_error(NotReached(wanted, store.revision))
        return
    after = store.revision if options.initial else now if options.after is None else options.after
    oldest = max(store.compacted, _born(call))
    if after < oldest:
        yield lines.of_error(expired(f"too old resource version: {after} ({oldest})"))
        return
    # From a revision that is still to come, a watch starts without events: earlier changes are not sent.
    subscription = store.watch(prefix, min(after, store.revision))
    try:
        if options.initial:
            try:
                settled = {} if call.settled is None else call.settled
                found = await completed(lambda: store.range(prefix, revision=after), settled)
            except StatusError:
                # The real server's cache does not get so far while objects cannot be converted.
                yield lines.of_error(NotReached(after, after - 1))
                return
            for entry in found.entries:
                if line := lines.of_initial(entry):
                    yield line
            if options.bookmarks:
                yield lines.of_bookmark(after, initial=True)
        async for piece in _live(call, subscription, lines, options, after):
            yield piece
    finally:
        subscription.close()


async def _comes(call: Call, revision: int) -> bool:
    """Whether a revision is reached within the time that reads wait."""
    return awaited(call) and await reached(call.services.store, revision, call.services.patience)


def _born(call: Call) -> int:
    """The revision a custom kind is served since: nothing is known of it before."""
    return int(text(call.resource.definition, "metadata", "resourceVersion") or "0")


async def _live(
    call: Call, subscription: ChangeSubscription, lines: _Lines, options: _Options, start: int
) -> AsyncIterator[bytes]:
    loop, store = asyncio.get_running_loop(), call.services.store
    end = loop.time() + options.timeout
    # Without bookmarks there is no wake-up for them.
    interval = BOOKMARK_INTERVAL if options.bookmarks else math.inf
    # One timer for each of these moments, not for each event.
    timer = loop.call_at(min(end, loop.time() + interval), subscription.interrupt)
    try:
        while True:
            changes = await subscription.changes()
            if changes:
                piece = b""
                for change in changes:
                    if change.revision > start:
                        piece += lines.of_change(change)
                        if len(piece) > _MAX_PIECE:
                            yield piece
                            piece = b""
                if piece:
                    yield piece
                if loop.time() >= end:
                    return
                continue
            if subscription.closed:
                return  # too slow, or nothing of this kind is served any more
            # Read where nothing is left to be sent: a bookmark must not be ahead of a change.
            revision, now = store.revision, loop.time()
            if options.bookmarks and revision > start:
                yield lines.of_bookmark(revision)
            if now >= end:
                return
            timer = loop.call_at(min(end, now + interval), subscription.interrupt)
    finally:
        timer.cancel()


class _Lines:
    """What one watcher is sent: events of what it has selected, in the representation that it has negotiated."""

    __slots__ = ("_known", "_presentation", "_selected")

    def __init__(self, call: Call, selected: ObjectSelection, presentation: WatchPresentation) -> None:
        self._known = call.services.event_lines
        self._selected = None if selected.selects_all else selected
        self._presentation = presentation

    def of_initial(self, entry: StoredObject) -> bytes:
        """An object that is there already; nothing when it is not selected."""
        return self._own(b"ADDED", entry) if self._selects(entry) else b""

    def of_change(self, change: StoreChange) -> bytes:
        """What a change means to a watcher that sees only the selected objects."""
        entry, previous = change.entry, change.previous
        before = previous is not None and self._selects(previous)
        if change.kind == "put" and self._selects(entry):
            return self._shared(b"MODIFIED" if before else b"ADDED", entry)
        if not before or previous is None:
            return b""
        if change.kind == "delete":
            return self._shared(b"DELETED", entry)
        # It is still there, but no longer among the selected: they see it go as they knew it, at this revision.
        last = copied_object(previous.value)
        inside(last, "metadata")["resourceVersion"] = str(entry.revision)
        return self._shared(b"DELETED", StoredObject(entry.key, last, entry.revision, entry.created))

    def of_bookmark(self, revision: int, *, initial: bool = False) -> bytes:
        """How far the watch is."""
        return self._own(b"BOOKMARK", _bookmark(revision, initial=initial))

    def of_error(self, error: StatusError) -> bytes:
        """Why the watch ends."""
        return self._presentation.line(b"ERROR", msgspec.json.encode(error.body()))

    def _selects(self, entry: StoredObject) -> bool:
        return self._selected is None or self._selected.matches(entry.value)

    def _shared(self, event_type: bytes, entry: StoredObject) -> bytes:
        if self._presentation.first is not None:
            return self._own(event_type, entry)
        return self._known.line(event_type, entry, self._presentation)

    def _own(self, event_type: bytes, entry: StoredObject) -> bytes:
        presentation = self._presentation
        if presentation.first is None:
            return presentation.line(event_type, presentation.render(entry))
        self._presentation = replace(presentation, first=None)
        return presentation.line(event_type, presentation.first(entry))


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
