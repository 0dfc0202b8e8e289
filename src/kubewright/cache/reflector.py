"""List, then watch, until cancelled.

A state machine (`reflector_state`). Empty: nothing is known. Listing: the objects that exist arrive, streamed by a
watch (WatchList) or, from servers that cannot stream, page by page. Watching: changes arrive. It emits five events:

    init            the objects that exist follow
    init_apply      one of them
    init_done       the list is complete; what was known before and was not in it is gone
    apply           an object is new or has changed
    delete          an object is gone

No error and no object ends it. A broken watch is resumed where it was; an expired one starts over with init. Why it
makes no progress is in `blocked`, until it does; a kind that does not exist (yet) and a permission that is not granted
are waited for. A kind is gone, and its objects with it, only when discovery confirms it: a 404 alone may be that of a
proxy, and changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Protocol

from kubewright.api.errors import DecodeError, KubernetesError
from kubewright.api.header import Header
from kubewright.api.resources import Object, resource_info
from kubewright.cache.entry import CacheEntry, entry_of, parse_header
from kubewright.cache.reflector_state import (
    Blocked,
    BlockedReason,
    Empty,
    ListCompleted,
    Listing,
    ListStarted,
    Resumed,
    RevisionLost,
    State,
    Transition,
    Watching,
    after,
)
from kubewright.client import Client, Watch, WatchEvent
from kubewright.client.backoff import Backoff
from kubewright.client.errors import (
    APIError,
    BadRequest,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    NoSuchKind,
    NotFound,
    ProtocolError,
    RequestTimeout,
    Unauthorized,
)
from kubewright.client.reader import WATCH_TIMEOUT

RESTART = Backoff(0.1, 30.0, jitter=0.5)
"""Before another attempt; the failures are counted until an event arrives."""

ABSENT = Backoff(0.1, 5.0, jitter=0.5)
"""The same while the kind is absent or a permission is not granted: it may just be being installed."""

SHORTEST_WATCH = 1.0
"""A watch that lasted at least these seconds and ended normally does not count as failed. As with client-go."""

LIST_PROGRESS = (100, 10.0)
"""Objects of a streamed list that must arrive in how many seconds; with fewer, the server does not stream it."""

_log = logging.getLogger(__name__)


class Sink(Protocol):
    """Receives the events. All calls are synchronous: a slow sink delays the watch, and loses nothing."""

    def init(self) -> None:
        """The objects that exist follow."""

    def init_apply(self, entry: CacheEntry) -> None:
        """One of them."""

    def init_done(self, revision: int) -> None:
        """The list is complete, as of `revision`."""

    def apply(self, entry: CacheEntry) -> None:
        """An object is new or has changed."""

    def delete(self, entry: CacheEntry) -> None:
        """An object is gone; `entry` is its last state, at the revision of the deletion."""

    def progress(self, revision: int) -> None:
        """Nothing happened up to `revision`."""

    def gone(self) -> None:
        """The kind itself does not exist, and so none of its objects does."""


class Reflector:
    """Follows the objects of one kind, in one namespace or in all, as far as selectors match."""

    def __init__(
        self,
        client: Client,
        kind: type[Object],
        sink: Sink,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        stream: bool = True,
        quiet: bool = False,
        applied: bytes = b"",
    ) -> None:
        """With `applied`, a marker, what this program owns by apply is kept of each object (see `entry_of`)."""
        self._client = client
        self._applied = applied
        self._quiet = quiet
        self._kind = kind
        self._sink = sink
        self._namespace = namespace or None
        self._labels = labels or None
        self._fields = fields or None
        self._streams = stream
        self._failures = 0
        self._changed = asyncio.Event()
        self.state: State = Empty()
        self.lists = 0
        self.restarts = 0

    @property
    def blocked(self) -> Blocked | None:
        """Why it makes no progress; None while it does."""
        return None if isinstance(self.state, Listing) else self.state.blocked

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._attempt()
            except Exception as error:
                # Unexpected, and the next attempt may succeed.
                self._block("failed", error)
            self.restarts += 1
            await asyncio.sleep(self._next_pause())

    async def changed(self) -> None:
        """Wait until `state` is another one than now."""
        await self._changed.wait()

    async def _attempt(self) -> None:
        try:
            match self.state:
                case Watching(revision):
                    await self._watch(revision)
                case _ if self._streams:
                    await self._stream()
                case _:
                    await self._watch(await self._list())
        except Expired as error:
            _log.debug("%s: %s; relisting", self._what, error)
            self._enter(RevisionLost())
        except NotFound as error:
            await self._note_not_found(error)
        except (Forbidden, Unauthorized) as error:
            self._block("forbidden", error)
        except KubernetesError as error:
            self._block("unreachable", error)

    async def _watch(self, revision: int) -> None:
        """Receive the changes after a revision, until the connection ends."""
        await self._take_all(self._open(resource_version=str(revision)), Resumed(), self._take)

    async def _stream(self) -> None:
        """Receive a list and the changes after it from one watch. A server that cannot stream it is listed in pages."""
        try:
            await self._take_all(self._open(initial_events=True), ListStarted(), self._take_streamed)
        except TimeoutError:
            self._stop_streaming("its events do not end the list")
        except (BadRequest, Invalid, InternalError) as error:
            if isinstance(self.state, Watching):
                raise
            self._stop_streaming(str(error))
        else:
            if isinstance(self.state, Listing):
                self._stop_streaming("the watch ended before its initial list did")

    async def _take_all(
        self,
        watch: Watch[Object],
        opened: ListStarted | Resumed,
        take: Callable[[AsyncIterator[WatchEvent[Object]]], Awaitable[None]],
    ) -> None:
        """One connection, until it ends."""
        loop = asyncio.get_running_loop()
        try:
            async with watch as events:
                since = loop.time()
                self._enter(opened)
                async with aclosing(aiter(events)) as stream:
                    await take(stream)
        except RequestTimeout:
            await self._check_revision()
            raise
        if loop.time() - since >= SHORTEST_WATCH:
            self._failures = 0
        await self._check_revision()

    def _open(self, *, resource_version: str | None = None, initial_events: bool = False) -> Watch[Object]:
        return self._client.watch(
            self._kind,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            resource_version=resource_version,
            initial_events=initial_events,
            timeout=WATCH_TIMEOUT * random.uniform(0.9, 1.0),  # noqa: S311  # spreads the watches; not a secret
        )

    async def _check_revision(self) -> None:
        """After a watch that brought nothing, not even a bookmark: check that the server's revisions did not go back.

        A server that was restored from a backup continues from there, and a watch from a revision in its future is
        silent until then.
        """
        match self.state:
            case Watching(revision, is_silent=True):
                listing = self._client.raw_pages(self._kind, namespace=self._namespace, page_size=1)
                async with aclosing(listing) as pages:
                    metadata, _ = await anext(pages)
                if revision_number(metadata.resource_version) < revision:
                    _log.warning("%s: the server's revisions went back; relisting", self._what)
                    self._enter(RevisionLost())

    async def _take_streamed(self, events: AsyncIterator[WatchEvent[Object]]) -> None:
        """Receive a list and what follows. Raises TimeoutError when no list is streamed.

        A server that does not know `sendInitialEvents` sends what exists, and then changes as any watch does.
        """
        async with asyncio.timeout(None) as deadline:
            self._check_progress(deadline)
            try:
                await self._take(events)
            finally:
                self._progress_check.cancel()

    def _check_progress(self, deadline: asyncio.Timeout, before: int | None = None) -> None:
        least, seconds = LIST_PROGRESS
        loop = asyncio.get_running_loop()
        match self.state:
            case Listing(count) if before is None or count - before >= least:
                self._progress_check = loop.call_later(seconds, self._check_progress, deadline, count)
            case Listing():
                deadline.reschedule(loop.time())

    async def _take(self, events: AsyncIterator[WatchEvent[Object]]) -> None:
        sink = self._sink
        async for event in events:
            self._failures = 0
            header = event.header
            try:
                match self.state:
                    case Watching() as watching:
                        watching.is_silent = False
                        if event.type == "BOOKMARK":
                            watching.revision = revision_number(header.resource_version)
                            sink.progress(watching.revision)
                        else:
                            entry = self._entry(header, event.raw)
                            watching.revision = entry.revision
                            if event.type == "DELETED":
                                sink.delete(entry)
                            else:
                                sink.apply(entry)
                    case Listing() as listing:
                        if event.type == "DELETED":
                            sink.delete(self._entry(header, event.raw))
                        elif event.type != "BOOKMARK":
                            listing.count += 1
                            sink.init_apply(self._entry(header, event.raw))
                        elif event.ends_initial_list:
                            self._enter(ListCompleted(revision_number(header.resource_version)))
            except Exception as error:
                self._skip(header, error)

    def _entry(self, header: Header, raw: bytes) -> CacheEntry:
        if type(header) is not Header:  # a damaged one; the object is kept as far as possible
            if not header.name:
                raise ProtocolError("the name of an object cannot be read")
            self._client.skipped.note(self._undecodable(header, "it cannot be decoded"))
        return entry_of(header, raw, self._applied)

    def _skip(self, header: Header, error: Exception) -> None:
        """Skip an object that cannot be handled, and go on with the next."""
        is_news = self._client.skipped.note(self._undecodable(header, str(error) or type(error).__name__))
        if is_news and not isinstance(error, KubernetesError):
            _log.error("%s: %s was not expected", self._what, type(error).__name__, exc_info=error)

    def _undecodable(self, header: Header, reason: str) -> DecodeError:
        kind = resource_info(self._kind).gvk.kind
        return DecodeError(f'{kind} "{header.key}": {reason}', kind=kind, key=header.key)

    async def _list(self) -> int:
        """Read what exists in pages. Returns the revision of the list."""
        listing = self._client.raw_pages(
            self._kind, namespace=self._namespace, labels=self._labels, fields=self._fields
        )
        revision = ""
        async with aclosing(listing) as pages:
            async for metadata, items in pages:
                if not revision:
                    self._enter(ListStarted())
                revision = metadata.resource_version
                for number, item in enumerate(items):
                    self._list_one(bytes(item))
                    if number % 100 == 99:
                        await asyncio.sleep(0)  # a page takes milliseconds; other tasks must not wait for all of it
        completed = ListCompleted(revision_number(revision))
        self._enter(completed)
        return completed.revision

    def _list_one(self, raw: bytes) -> None:
        header = Header()
        try:
            header = parse_header(raw)
            self._sink.init_apply(self._entry(header, raw))
        except Exception as error:
            self._skip(header, error)

    def _enter(self, transition: Transition) -> None:
        was_blocked = self.blocked is not None
        if isinstance(transition, ListCompleted):
            self._sink.init_done(transition.revision)
        self.state = after(self.state, transition)
        if was_blocked and self.blocked is None:
            _log.log(logging.DEBUG if self._quiet else logging.INFO, "%s: no longer blocked", self._what)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        if isinstance(transition, ListStarted):
            self.lists += 1
            self._sink.init()

    def _stop_streaming(self, why: str) -> None:
        _log.debug("%s: the server does not stream its initial list (%s); reading it in pages", self._what, why)
        self._streams = False
        self._failures = -1  # no failure: the pages are read at once
        self._enter(RevisionLost())

    async def _note_not_found(self, error: NotFound) -> None:
        """The kind is gone when discovery confirms it. Any other 404 says nothing about any object."""
        try:
            is_served = not isinstance(error, NoSuchKind) and await self._client.serves(self._kind)
        except KubernetesError as doubt:
            self._block("unreachable", error, f"whether the kind is gone is not known ({doubt})")
            return
        if is_served:
            self._block("unreachable", error, "yet discovery has the kind")
            return
        self._block("absent", error)
        # After the state has changed: subscribers that are notified of the deletions can see why.
        self._sink.gone()

    def _block(self, reason: BlockedReason, error: Exception, note: str = "") -> None:
        before = self.blocked
        since = asyncio.get_running_loop().time() if before is None else before.since
        blocked = Blocked(reason, error, since, note)
        if before is None or (before.reason, type(before.error)) != (reason, type(error)):
            if reason == "failed":
                _log.error("%s: %s; trying again", self._what, blocked, exc_info=error)
            else:
                # Whether an absent kind is a problem is known to its watchers, who log it.
                is_refused = isinstance(error, APIError | ProtocolError) and reason != "absent"
                level = logging.WARNING if is_refused else logging.INFO
                _log.log(logging.DEBUG if self._quiet else level, "%s: %s; trying again", self._what, blocked)
        self._enter(blocked)

    def _next_pause(self) -> float:
        self._failures += 1
        is_absent = self.blocked is not None and self.blocked.reason != "unreachable"
        return (ABSENT if is_absent else RESTART).delay(self._failures)

    @property
    def _what(self) -> str:
        where = f" in {self._namespace}" if self._namespace else ""
        return f"watching {resource_info(self._kind).plural}{where}"


def revision_number(revision: str) -> int:
    """A resourceVersion as a number, which can be compared."""
    try:
        return int(revision)
    except ValueError:
        raise ProtocolError(f'the server sent the resourceVersion "{revision}": expected an integer') from None
