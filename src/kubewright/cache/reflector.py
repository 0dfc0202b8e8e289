"""Following the server: list, then watch, for ever.

A state machine. EMPTY: nothing is known. LISTING: the objects that exist arrive, streamed by a watch (WatchList) or, on
servers that cannot, page by page. WATCHING: changes arrive. It tells what happens in five events:

    init            the objects that exist are going to be told
    init_apply      one of them
    init_done       that was all; whatever was known before and was not told is gone
    apply           an object is new or has changed
    delete          an object is gone

No error and no object ends it. A watch that broke is resumed where it was; an expired one begins anew with init.
The error that stops it is in `blocked` until it is over; a kind that does not exist (yet) and a missing permission are
waited for. That a kind is gone, and its objects with it, is for discovery to say: a 404 alone may be that of a proxy,
and changes nothing.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Literal, Protocol, TypeAlias

from kubewright.api.errors import DecodeError, KubernetesError
from kubewright.api.header import Header
from kubewright.api.resources import Object, resource_info
from kubewright.cache.entry import CacheEntry, entry_of, parse_header
from kubewright.client import Client, WatchEvent
from kubewright.client.backoff import Backoff
from kubewright.client.client import WATCH_TIMEOUT
from kubewright.client.errors import (
    APIError,
    BadRequest,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    ProtocolError,
    RequestTimeout,
    Unauthorized,
)

RESTART = Backoff(0.1, 30.0, jitter=0.5)
"""Before another attempt; the failures are counted until an event arrives."""

ABSENT = Backoff(0.1, 5.0, jitter=0.5)
"""The same while the kind or a permission is missing: somebody may just be installing it."""

SHORTEST_WATCH = 1.0
"""Seconds that a watch lasts at least whose end, when it is in order, counts as none. As with client-go."""

LIST_PROGRESS = (100, 10.0)
"""How many objects of a streamed list come in how many seconds: of fewer, the server does not stream it."""

_log = logging.getLogger(__name__)

BlockedReason: TypeAlias = Literal["absent", "forbidden", "unreachable", "failed"]


class State(enum.Enum):
    """How far a reflector is."""

    EMPTY = "empty"
    LISTING = "listing"
    WATCHING = "watching"


class Blocked(Exception):
    """Why a reflector makes no progress: the kind is absent, a permission is missing, or the server is unreachable.

    failed: something else that nobody foresaw.
    """

    def __init__(self, reason: BlockedReason, error: Exception, note: str = "") -> None:
        super().__init__(f"{error}; {note}" if note else str(error))
        self.reason = reason
        self.error = error
        self.since = asyncio.get_running_loop().time()
        """When the watch was last seen to work, by the clock of the loop."""


class Sink(Protocol):
    """Where the events go. Everything is synchronous: a sink that is slow makes the watch wait, and loses nothing."""

    def init(self) -> None:
        """The objects that exist are going to be told."""

    def init_apply(self, entry: CacheEntry) -> None:
        """One of them."""

    def init_done(self, revision: int) -> None:
        """That was all, as of `revision`."""

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
    ) -> None:
        self._client = client
        self._quiet = quiet
        self._kind = kind
        self._sink = sink
        self._namespace = namespace or None
        self._labels = labels or None
        self._fields = fields or None
        self._streams = stream
        self._revision = 0  # 0: nothing to resume from
        self._failures = 0
        self._is_fruitless = False  # the present watch has brought nothing so far
        self._listed = 0  # objects that streamed lists have brought
        self._changed = asyncio.Event()
        self.state = State.EMPTY
        self.blocked: Blocked | None = None
        self.lists = 0
        self.restarts = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._attempt()
            except Exception as error:
                # Nobody foresaw it, and the next attempt may fare better.
                self._note(Blocked("failed", error))
            self.restarts += 1
            await asyncio.sleep(self._next_pause())

    async def changed(self) -> None:
        """Wait until `state` or `blocked` is another one than now."""
        await self._changed.wait()

    async def _attempt(self) -> None:
        try:
            await self._follow()
        except Expired as error:
            _log.debug("%s: %s; listing anew", self._what, error)
            self._forget()
        except NotFound as error:
            await self._note_not_found(error)
        except (Forbidden, Unauthorized) as error:
            self._note(Blocked("forbidden", error))
        except KubernetesError as error:
            self._note(Blocked("unreachable", error))

    async def _follow(self) -> None:
        """One connection, from what is known to its end."""
        streams = self._streams and not self._revision
        if not streams and not self._revision:
            await self._list()
        watch = self._client.watch(
            self._kind,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            resource_version=str(self._revision) if self._revision else None,
            initial_events=streams,
            timeout=WATCH_TIMEOUT * random.uniform(0.9, 1.0),  # noqa: S311  # not all watches at once; not a secret
        )
        loop = asyncio.get_running_loop()
        try:
            async with watch as events:
                opened = loop.time()
                if streams:
                    self._begin()
                else:
                    self._enter(State.WATCHING)
                self._is_fruitless = True
                async with aclosing(aiter(events)) as stream:
                    await (self._take_streamed(stream) if streams else self._take(stream))
        except TimeoutError:
            if not streams:
                raise
            self._stop_streaming("its events do not end the list")
        except RequestTimeout:
            await self._check_revision()
            raise
        except (BadRequest, Invalid, InternalError) as error:
            if not streams or self.state is State.WATCHING:
                raise
            self._stop_streaming(str(error))
        else:
            if streams and self.state is State.LISTING:
                self._stop_streaming("the watch ended before its initial list did")
            elif loop.time() - opened >= SHORTEST_WATCH:
                self._failures = 0
            await self._check_revision()

    async def _check_revision(self) -> None:
        """After a watch that brought nothing, not even a bookmark: see whether the server still counts as it did.

        One that was restored from a backup counts from there, and a watch from a revision that is still to come is
        silent until then.
        """
        if not self._is_fruitless or not self._revision:
            return
        listing = self._client.raw_pages(self._kind, namespace=self._namespace, page_size=1)
        async with aclosing(listing) as pages:
            metadata, _ = await anext(pages)
        if _number(metadata.resource_version) < self._revision:
            _log.warning("%s: the server's revisions have gone back; listing anew", self._what)
            self._forget()

    async def _take_streamed(self, events: AsyncIterator[WatchEvent[Object]]) -> None:
        """Take a list and what follows. Raises TimeoutError when no list is streamed.

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
        if before is None or (self.state is State.LISTING and self._listed - before >= least):
            self._progress_check = loop.call_later(seconds, self._check_progress, deadline, self._listed)
        elif self.state is State.LISTING:
            deadline.reschedule(loop.time())

    async def _take(self, events: AsyncIterator[WatchEvent[Object]]) -> None:
        sink = self._sink
        async for event in events:
            self._is_fruitless = False
            header = event.header
            try:
                match event.type:
                    case "BOOKMARK":
                        if event.ends_initial_list:
                            self._complete(_number(header.resource_version))
                        elif self.state is State.WATCHING:
                            self._revision = _number(header.resource_version)
                            sink.progress(self._revision)
                    case "DELETED":
                        entry = self._entry(header, event.raw)
                        self._revision = entry.revision
                        sink.delete(entry)
                    case _ if self.state is State.LISTING:
                        self._listed += 1
                        sink.init_apply(self._entry(header, event.raw))
                    case _:
                        entry = self._entry(header, event.raw)
                        self._revision = entry.revision
                        sink.apply(entry)
            except Exception as error:
                self._skip(header, error)
            self._failures = 0

    def _entry(self, header: Header, raw: bytes) -> CacheEntry:
        if type(header) is not Header:  # a damaged one; the object is kept, as far as it can be
            if not header.name:
                raise ProtocolError("the name of an object cannot be read")
            self._client.skipped.note(self._undecodable(header, "it cannot be decoded"))
        return entry_of(header, raw)

    def _skip(self, header: Header, error: Exception) -> None:
        """Pass over an object that nothing can be done with. The next one is another matter."""
        is_news = self._client.skipped.note(self._undecodable(header, str(error) or type(error).__name__))
        if is_news and not isinstance(error, KubernetesError):
            _log.error("%s: %s was not expected", self._what, type(error).__name__, exc_info=error)

    def _undecodable(self, header: Header, reason: str) -> DecodeError:
        kind = resource_info(self._kind).gvk.kind
        return DecodeError(f'{kind} "{header.key}": {reason}', kind=kind, key=header.key)

    async def _list(self) -> None:
        listing = self._client.raw_pages(
            self._kind, namespace=self._namespace, labels=self._labels, fields=self._fields
        )
        revision = ""
        async with aclosing(listing) as pages:
            async for metadata, items in pages:
                if not revision:
                    self._begin()
                revision = metadata.resource_version
                for number, item in enumerate(items):
                    self._list_one(bytes(item))
                    if number % 100 == 99:
                        await asyncio.sleep(0)  # a page takes milliseconds; others must not wait for all of it
        self._complete(_number(revision))

    def _list_one(self, raw: bytes) -> None:
        header = Header()
        try:
            header = parse_header(raw)
            self._sink.init_apply(self._entry(header, raw))
        except Exception as error:
            self._skip(header, error)

    def _begin(self) -> None:
        self.lists += 1
        self._enter(State.LISTING)
        self._sink.init()

    def _complete(self, revision: int) -> None:
        self._revision = revision
        self._sink.init_done(revision)
        self._enter(State.WATCHING)

    def _enter(self, state: State, blocked: Blocked | None = None) -> None:
        if self.blocked is not None and blocked is None:
            _log.log(logging.DEBUG if self._quiet else logging.INFO, "%s: going on", self._what)
        self.state, self.blocked = state, blocked
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _forget(self) -> None:
        self._revision = 0
        self._enter(State.EMPTY)

    def _stop_streaming(self, why: str) -> None:
        _log.debug("%s: the server does not stream its initial list (%s); reading it in pages", self._what, why)
        self._streams = False
        self._failures = -1  # no failure: the pages are read at once
        self._forget()

    async def _note_not_found(self, error: NotFound) -> None:
        """The kind is gone when discovery confirms it. Everything else that answers 404 is no news of any object."""
        try:
            is_served = await self._client.serves(self._kind)
        except KubernetesError as doubt:
            self._note(Blocked("unreachable", error, f"whether the kind is gone is not known ({doubt})"))
            return
        if is_served:
            self._note(Blocked("unreachable", error, "yet discovery has the kind"))
            return
        self._revision = 0
        self._note(Blocked("absent", error))
        # After the state has changed: whoever is told that the objects are gone can see why.
        self._sink.gone()

    def _note(self, blocked: Blocked) -> None:
        if self.state is State.LISTING:
            self._revision = 0
        before = self.blocked
        if before is not None:
            blocked.since = before.since
        if before is None or (before.reason, type(before.error)) != (blocked.reason, type(blocked.error)):
            if blocked.reason == "failed":
                _log.error("%s: %s; trying again", self._what, blocked, exc_info=blocked.error)
            else:
                # Whether a missing kind is a problem is for whoever watches it to say.
                is_refused = isinstance(blocked.error, APIError | ProtocolError) and blocked.reason != "absent"
                level = logging.WARNING if is_refused else logging.INFO
                _log.log(logging.DEBUG if self._quiet else level, "%s: %s; trying again", self._what, blocked)
        self._enter(State.EMPTY if not self._revision else State.WATCHING, blocked)

    def _next_pause(self) -> float:
        self._failures += 1
        is_absent = self.blocked is not None and self.blocked.reason != "unreachable"
        return (ABSENT if is_absent else RESTART).delay(self._failures)

    @property
    def _what(self) -> str:
        where = f" in {self._namespace}" if self._namespace else ""
        return f"watching {resource_info(self._kind).plural}{where}"


def _number(revision: str) -> int:
    try:
        return int(revision)
    except ValueError:
        raise ProtocolError(f'the server sent the resourceVersion "{revision}": expected an integer') from None
