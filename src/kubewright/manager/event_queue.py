"""Which recorded event is written next, and when one that the server did not accept is retried.

    queue = EventQueue(write, given_up)
    queue.put(event)    # from any thread
    await queue.run()   # a few writers, until cancelled

The events of a namespace are a lane. Lanes take turns, and in a lane events about one object are written one after the
other. When a write fails, its lane is paused with back-off, and then tried by one writer until one succeeds; what the
server refused is tried again after the others of its lane. So neither one event nor a namespace whose webhook refuses
everything, or takes ten seconds for each response, holds up the rest. What an event costs here does not depend on the
number of namespaces.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Generic, Protocol, TypeVar

from kubewright.api.errors import KubernetesError
from kubewright.client.backoff import Backoff
from kubewright.client.errors import APIError, NotFound, TransportError

WRITERS = 8
"""Writes at a time when many events wait."""
MAX_IN_ONE_LANE = 2
"""Of those, in one namespace: the others are for the other namespaces, however slow this one is. Each may need a
connection, and a handshake costs as much as twenty events."""
MAX_SIZE = 10_000
"""Events that wait to be written; what comes on top of the longest lane is dropped."""
MAX_ATTEMPTS = 12

_PAUSE = Backoff(0.25, 15.0)
_MAX_LOGGED = 4096

_log = logging.getLogger(__name__)


class Queued(Protocol):
    """An event to write, as text for the log. Equal to nothing but itself."""

    @property
    def namespace(self) -> str:
        """Its lane."""

    @property
    def regarding(self) -> Hashable:
        """The object that it is about."""


Item = TypeVar("Item", bound=Queued)


class _Lane(Generic[Item]):
    """The events that wait in one namespace, with the number of attempts so far."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.waiting: OrderedDict[Item, int] = OrderedDict()
        self.writing = 0
        self.failures = 0  # in a row
        self.pause: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self.pause is None and self.writing < (1 if self.failures else MAX_IN_ONE_LANE)

    def resume(self) -> None:
        if self.pause is not None:
            self.pause.cancel()
            self.pause = None


class _Lengths(Generic[Item]):
    """The total number of events that wait, and the longest lane, without going through all lanes."""

    def __init__(self) -> None:
        self.total = 0
        self._lanes: dict[int, dict[_Lane[Item], None]] = {}  # by their lengths
        self._max = 0

    def changed(self, lane: _Lane[Item], before: int) -> None:
        """An event was added to a lane of length `before`, or removed from it."""
        length = len(lane.waiting)
        self.total += length - before
        if before:
            del self._lanes[before][lane]
            if not self._lanes[before]:
                del self._lanes[before]
        if length:
            self._lanes.setdefault(length, {})[lane] = None
        # The longest lane gets longer or shorter by one, as any other.
        if length > self._max or self._max not in self._lanes:
            self._max = length

    @property
    def longest(self) -> _Lane[Item]:
        return next(iter(self._lanes[self._max]))


class EventQueue(Generic[Item]):
    """Lanes of events, and the writers that empty them. See the module for the order."""

    def __init__(self, write: Callable[[Item], Awaitable[None]], given_up: Callable[[Item], None]) -> None:
        """`given_up` is called, with the lock held, for each event that will not be written."""
        # Held for moments only, never while anything is awaited; reentrant, because what is logged meanwhile may in
        # turn become an event.
        self.lock = threading.RLock()
        self._write = write
        self._given_up = given_up
        self._lanes: dict[str, _Lane[Item]] = {}
        # Lanes with events that can be written, and maybe others, in the order of their turns.
        self._ready: OrderedDict[str, _Lane[Item]] = OrderedDict()
        self._lengths = _Lengths[Item]()
        self._subjects: set[Hashable] = set()  # the objects that are written about at the moment
        self._writers: asyncio.TaskGroup | None = None
        self._context = Context()
        self._number_of_writers = 0
        self._idle: list[asyncio.Future[None]] = []
        self._progress = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None  # that of the loop, which need not be woken for what it records itself
        self._logged: OrderedDict[str, type[KubernetesError]] = OrderedDict()
        self._has_dropped = False

    def __contains__(self, item: Item) -> bool:
        lane = self._lanes.get(item.namespace)
        return lane is not None and item in lane.waiting

    def put(self, item: Item) -> bool:
        """Enqueue an event. False when there is no room for it."""
        with self.lock:
            lane = self._lanes.get(item.namespace) or _Lane(item.namespace)
            if self._lengths.total >= MAX_SIZE and not self._has_room(lane):
                return False
            self._lanes[item.namespace] = self._ready[item.namespace] = lane
            lane.waiting[item] = 0
            self._lengths.changed(lane, len(lane.waiting) - 1)
        if self._thread == threading.get_ident():
            self._wake()
        elif (loop := self._loop) is not None:
            with suppress(RuntimeError):  # a loop that has been closed since
                loop.call_soon_threadsafe(self._wake)
        return True

    async def run(self) -> None:
        """Write events until cancelled. No error ends it."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._context = copy_context()
        try:
            async with asyncio.TaskGroup() as self._writers:
                try:
                    self._wake(self._lengths.total)
                    await asyncio.Event().wait()
                finally:
                    self._writers = None
        finally:
            self._loop = self._thread = None
            self._number_of_writers = 0
            self._idle.clear()
            self._resume_all()

    async def flush(self, timeout: float) -> None:
        """Return when everything enqueued has been written or given up, or after `timeout` seconds."""
        self._resume_all()
        writing = asyncio.create_task(self.run()) if self._writers is None else None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    while self._lengths.total or self._subjects:
                        self._progress.clear()
                        await self._progress.wait()
        finally:
            if writing is not None:
                writing.cancel()
                await asyncio.wait((writing,))

    def _has_room(self, lane: _Lane[Item]) -> bool:
        """Whether a full queue accepts one more event in `lane`: at the cost of the longest lane, if another."""
        if not self._has_dropped:
            self._has_dropped = True
            _log.warning("events are dropped: %d wait to be written already", MAX_SIZE)
        longest = self._lengths.longest
        if len(lane.waiting) + 1 >= len(longest.waiting):
            return False
        dropped, _ = longest.waiting.popitem()
        self._lengths.changed(longest, len(longest.waiting) + 1)
        self._given_up(dropped)
        return True

    # The writers: all in the loop

    def _wake(self, number: int = 1) -> None:
        """Wake that many writers, if there are as many."""
        for _ in range(min(number, WRITERS)):
            while self._idle:
                waiter = self._idle.pop()
                if not waiter.done():
                    waiter.set_result(None)
                    break
            else:
                if self._writers is None or self._number_of_writers == WRITERS:
                    return
                self._number_of_writers += 1
                # Not in the context of the recording code: that is a reconcile's, and ends with it.
                self._writers.create_task(self._write_on(), name="events", context=self._context.copy())

    async def _write_on(self) -> None:
        while True:
            taken = self._take()
            if taken is None:
                waiter = asyncio.get_running_loop().create_future()
                self._idle.append(waiter)
                await waiter
            else:
                await self._write_one(*taken)

    def _take(self) -> tuple[_Lane[Item], Item, int] | None:
        with self.lock:
            while self._ready:
                namespace, lane = self._ready.popitem(last=False)
                if not lane.is_open:
                    continue
                item = next((each for each in lane.waiting if each.regarding not in self._subjects), None)
                if item is None:
                    continue
                # Taken out before it is written: what happens meanwhile is a write of its own.
                attempts = lane.waiting.pop(item)
                self._lengths.changed(lane, len(lane.waiting) + 1)
                lane.writing += 1
                self._subjects.add(item.regarding)
                self._has_dropped = False
                self._ready[namespace] = lane
                return lane, item, attempts + 1
        return None

    async def _write_one(self, lane: _Lane[Item], item: Item, attempt: int) -> None:
        try:
            await self._write(item)
        except KubernetesError as error:
            self._report(item, attempt, error)
            self._failed(lane, item, attempt, error)
        except Exception:
            _log.exception("an event was not written: %s", item)
            with self.lock:
                self._given_up(item)
        except BaseException:
            self._put_back(lane, item, attempt - 1, is_first=True)
            raise
        else:
            self._logged.pop(item.namespace, None)
            if lane.failures:
                lane.failures = 0
                self._wake(len(lane.waiting))
        finally:
            with self.lock:
                lane.writing -= 1
                self._subjects.discard(item.regarding)
                if lane.waiting or lane.writing:
                    self._ready.setdefault(item.namespace, lane)
                else:
                    lane.resume()
                    self._ready.pop(item.namespace, None)
                    del self._lanes[item.namespace]
            self._progress.set()

    def _failed(self, lane: _Lane[Item], item: Item, attempt: int, error: KubernetesError) -> None:
        if not error.is_temporary or attempt == MAX_ATTEMPTS:
            with self.lock:
                self._given_up(item)
        else:
            # Without a response the event is not the cause, and keeps its position.
            self._put_back(lane, item, attempt, is_first=isinstance(error, TransportError))
        if error.is_temporary and lane.pause is None and lane.waiting and self._loop is not None:
            lane.failures += 1
            lane.pause = self._loop.call_later(_PAUSE.delay(lane.failures), self._resume, lane)

    def _put_back(self, lane: _Lane[Item], item: Item, attempts: int, *, is_first: bool) -> None:
        with self.lock:
            # It may have happened again meanwhile, and be there already.
            before = len(lane.waiting)
            lane.waiting[item] = attempts
            lane.waiting.move_to_end(item, last=not is_first)
            if len(lane.waiting) > before:
                self._lengths.changed(lane, before)

    def _resume(self, lane: _Lane[Item]) -> None:
        with self.lock:
            lane.resume()
            self._ready.setdefault(lane.namespace, lane)
        self._wake()

    def _resume_all(self) -> None:
        with self.lock:
            for lane in self._lanes.values():
                lane.resume()
            self._ready.update(self._lanes)
            self._wake(self._lengths.total)

    def _report(self, item: Item, attempt: int, error: KubernetesError) -> None:
        """Log an error once per namespace, until it is another one: a missing permission would fill the log."""
        is_usual = _is_terminating(error) or isinstance(error, NotFound)
        is_known = attempt > 1 or type(error) is self._logged.get(item.namespace)
        level = logging.DEBUG if is_usual or is_known else logging.WARNING
        _log.log(level, "an event could not be written: %s: %s", item, error)
        if not is_usual:
            self._logged[item.namespace] = type(error)
            if len(self._logged) > _MAX_LOGGED:
                self._logged.popitem(last=False)


def _is_terminating(error: KubernetesError) -> bool:
    return isinstance(error, APIError) and any(cause.reason == "NamespaceTerminating" for cause in error.status.causes)
