"""Watch: the initial state where it is asked for, then every change, in the order of the store.

Each line is one event. A watcher that is too slow is ended, and begins again from its last revision.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import msgspec

from kubewright.controlplane.embedded.document import JSONObject, copied_object, inside, text
from kubewright.controlplane.embedded.rest.call import Call, Changes
from kubewright.controlplane.embedded.rest.reading import (
    Selection,
    collection_prefix,
    parse_revision,
    selection,
    too_large,
)
from kubewright.controlplane.embedded.status import (
    FieldError,
    StatusError,
    expired,
    forbidden_field,
    invalid,
    not_supported,
)
from kubewright.controlplane.embedded.storage import Change, Entry

BOOKMARK_INTERVAL = 60.0
_SHORTEST_DEFAULT = 1800.0

Rendering = Callable[[Entry], bytes]
"""An object in the form the client wants."""


@dataclass(frozen=True, slots=True)
class _Options:
    after: int | None
    initial: bool
    """Send what exists first."""
    initial_bookmark: bool
    """Say when that is done."""
    bookmarks: bool
    timeout: float


def watch(call: Call, render: Rendering) -> AsyncIterator[bytes]:
    """The lines of a watch. Raises StatusError at once for a watch that makes no sense."""
    options, selected = _options(call), selection(call)
    store = call.services.store
    after = store.revision if options.initial or options.after is None else options.after
    if after > store.revision:
        raise too_large(after, store.revision)
    return _events(call, render, options, selected, after)


async def _events(
    call: Call, render: Rendering, options: _Options, selected: Selection, after: int
) -> AsyncIterator[bytes]:
    prefix, store = collection_prefix(call), call.services.store
    oldest = max(store.compacted, _born(call))
    if after < oldest:
        yield _error_line(expired(f"too old resource version: {after} ({oldest})"))
        return
    subscription = store.watch(prefix, after)
    try:
        if options.initial:
            for entry in store.range(prefix, revision=after).entries:
                if selected.matches(entry.value):
                    yield _line("ADDED", render(entry))
            if options.initial_bookmark:
                yield _line("BOOKMARK", _bookmark(call, after, initial=True))
        async for line in _live(call, subscription, selected, render, options, after):
            yield line
    finally:
        subscription.close()


def _born(call: Call) -> int:
    """The revision a custom kind is served since: nothing is known of it before."""
    return int(text(call.resource.definition, "metadata", "resourceVersion") or "0")


async def _live(
    call: Call, subscription: Changes, selected: Selection, render: Rendering, options: _Options, revision: int
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    end = loop.time() + options.timeout
    bookmark = loop.time() + BOOKMARK_INTERVAL
    while True:
        now = loop.time()
        if now >= end:
            if options.bookmarks:
                yield _line("BOOKMARK", _bookmark(call, max(revision, call.services.store.revision), initial=False))
            return
        if now >= bookmark:
            bookmark = now + BOOKMARK_INTERVAL
            if options.bookmarks:
                yield _line("BOOKMARK", _bookmark(call, max(revision, call.services.store.revision), initial=False))
        try:
            async with asyncio.timeout(max(0.0, min(end, bookmark) - now)):
                changes = await subscription.changes()
        except TimeoutError:
            continue
        if not changes:
            return  # ended: too slow, or nothing of this kind is served any more
        lines = b"".join(filter(None, (_change_line(change, selected, render) for change in changes)))
        revision = changes[-1].entry.revision
        if lines:
            yield lines


def _change_line(change: Change, selected: Selection, render: Rendering) -> bytes:
    """What a change means to somebody who sees only the selected objects."""
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
    return _line("DELETED", render(Entry(change.entry.key, last, change.entry.revision, change.entry.created)))


def _line(event_type: str, rendered: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (event_type.encode(), rendered.rstrip(b"\n"))


def _error_line(error: StatusError) -> bytes:
    return _line("ERROR", msgspec.json.encode(error.body()))


def _bookmark(call: Call, revision: int, *, initial: bool) -> bytes:
    gvk = call.resource.gvk
    metadata: JSONObject = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return msgspec.json.encode({"kind": gvk.kind, "apiVersion": gvk.api_version, "metadata": metadata})


def _options(call: Call) -> _Options:
    query = call.query
    revision, match = query.text("resourceVersion"), query.text("resourceVersionMatch")
    sends = query.text("sendInitialEvents")
    errors: list[FieldError] = []
    if sends and match != "NotOlderThan":
        errors.append(
            forbidden_field(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            )
            if not match
            else not_supported("resourceVersionMatch", match, ["NotOlderThan"])
        )
    if match and not sends:
        errors.append(
            forbidden_field(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        )
    if errors:
        raise invalid("ListOptions", "meta.k8s.io", "", errors)
    number = parse_revision(revision) if revision else 0
    wants_initial = query.flag("sendInitialEvents") if sends else number == 0
    bookmarks = query.flag("allowWatchBookmarks")
    seconds = query.number("timeoutSeconds")
    return _Options(
        after=number or None,
        initial=wants_initial,
        initial_bookmark=bool(sends) and wants_initial and bookmarks,
        bookmarks=bookmarks,
        timeout=float(seconds) if seconds else _SHORTEST_DEFAULT * (1 + random.random()),  # noqa: S311 (spreads load)
    )
