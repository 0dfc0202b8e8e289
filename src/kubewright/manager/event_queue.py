"""What of the recorded events is written next, and when one that was not taken is tried again.

    queue = EventQueue(write, given_up)
    queue.put(event)    # from any thread
    await queue.run()   # a few writers, until cancelled

The events of a namespace are a lane. Lanes take turns, and in a lane events about one object are written one after the
other. When a write fails, its lane is left alone for a while, ever longer, and then tried by one writer until one
succeeds; what the server refused is tried again after the others of its lane. So neither one event nor a namespace
whose webhook refuses everything, or takes ten seconds for each answer, holds up the rest.
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
MOST_IN_ONE_LANE = 2
"""Of those, in one namespace: the others are for the other namespaces, however slow this one is. Each may need a
connection, and a handshake costs as much as twenty events."""
LONGEST_QUEUE = 10_000
"""Events that wait to be written; what comes on top of the longest lane is dropped."""
MOST_ATTEMPTS = 12

_PAUSE = Backoff(0.25, 15.0)
_MOST_COMPLAINTS = 4096

_log = logging.getLogger(__name__)


class Queued(Protocol):
    """An event to write, as text for the log. Equal to nothing but itself."""

    @property
    def namespace(self) -> str:
        """Its lane."""

    @property
    def regarding(self) -> Hashable:
        """What it is about."""


Item = TypeVar("Item", bound=Queued)


class _Lane(Generic[Item]):
    """What waits in one namespace, with the number of attempts so far."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[Item, int] = OrderedDict()
        self.writing = 0
        self.failures = 0  # in a row
        self.pause: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self.pause is None and self.writing < (1 if self.failures else MOST_IN_ONE_LANE)

    def resume(self) -> None:
        if self.pause is not None:
            self.pause.cancel()
            self.pause = None


class EventQueue(Generic[Item]):
    """Lanes of events, and the writers that empty them. See the module for who comes when."""

    def __init__(self, write: Callable[[Item], Awaitable[None]], given_up: Callable[[Item], None]) -> None:
        """`given_up` is told, with the lock held, what will not be written."""
        # Held for moments only, never while anything is awaited; reentrant, because what is logged meanwhile may in
        # turn become an event.
        self.lock = threading.RLock()
        self._write = write
        self._given_up = given_up
        self._lanes: OrderedDict[str, _Lane[Item]] = OrderedDict()
        self._size = 0
        self._subjects: set[Hashable] = set()  # what is written about at the moment
        self._writers: asyncio.TaskGroup | None = None
        self._context = Context()
        self._number_of_writers = 0
        self._idle: list[asyncio.Future[None]] = []
        self._progress = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None  # that of the loop, which need not be woken for what it records itself
        self._complaints: OrderedDict[str, type[KubernetesError]] = OrderedDict()
        self._has_dropped = False

    def __contains__(self, item: Item) -> bool:
        lane = self._lanes.get(item.namespace)
        return lane is not None and item in lane.waiting

    def put(self, item: Item) -> bool:
        """Have an event written. False when there is no room for it."""
        with self.lock:
            lane = self._lanes.get(item.namespace) or _Lane()
            if self._size >= LONGEST_QUEUE and not self._has_room(lane):
                return False
            self._lanes[item.namespace] = lane
            lane.waiting[item] = 0
            self._size += 1
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
                    self._wake(self._size)
                    await asyncio.Event().wait()
                finally:
                    self._writers = None
        finally:
            self._loop = self._thread = None
            self._number_of_writers = 0
            self._idle.clear()
            self._resume_all()

    async def flush(self, timeout: float) -> None:
        """Return when all that was put has been written or given up, or after `timeout` seconds."""
        self._resume_all()
        writing = asyncio.create_task(self.run()) if self._writers is None else None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    while self._size or self._subjects:
                        self._progress.clear()
                        await self._progress.wait()
        finally:
            if writing is not None:
                writing.cancel()
                await asyncio.wait((writing,))

    def _has_room(self, lane: _Lane[Item]) -> bool:
        """Whether a full queue takes one more event in `lane`: at the cost of the longest one, if that is another."""
        if not self._has_dropped:
            self._has_dropped = True
            _log.warning("events are dropped: %d wait to be written already", LONGEST_QUEUE)
        longest = max(self._lanes.values(), key=lambda each: len(each.waiting))
        if len(lane.waiting) + 1 >= len(longest.waiting):
            return False
        dropped, _ = longest.waiting.popitem()
        self._size -= 1
        self._given_up(dropped)
        return True

    # The writers: all in the loop

    def _wake(self, number: int = 1) -> None:
        """Have that many writers look for work, if there are as many."""
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
                # Not in the context of whoever recorded something: that is a reconcile's, and ends with it.
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
            for namespace, lane in self._lanes.items():
                if not lane.is_open:
                    continue
                item = next((each for each in lane.waiting if each.regarding not in self._subjects), None)
                if item is None:
                    continue
                # Taken out before it is written: what happens meanwhile is a write of its own.
                attempts = lane.waiting.pop(item)
                self._size -= 1
                lane.writing += 1
                self._subjects.add(item.regarding)
                self._has_dropped = False
                self._lanes.move_to_end(namespace)
                return lane, item, attempts + 1
        return None

    async def _write_one(self, lane: _Lane[Item], item: Item, attempt: int) -> None:
        try:
            await self._write(item)
        except KubernetesError as error:
            self._complain(item, attempt, error)
            self._failed(lane, item, attempt, error)
        except Exception:
            _log.exception("an event was not written: %s", item)
            with self.lock:
                self._given_up(item)
        except BaseException:
            self._put_back(lane, item, attempt - 1, is_first=True)
            raise
        else:
            self._complaints.pop(item.namespace, None)
            if lane.failures:
                lane.failures = 0
                self._wake(len(lane.waiting))
        finally:
            with self.lock:
                lane.writing -= 1
                self._subjects.discard(item.regarding)
                if not lane.waiting and not lane.writing:
                    lane.resume()
                    del self._lanes[item.namespace]
            self._progress.set()

    def _failed(self, lane: _Lane[Item], item: Item, attempt: int, error: KubernetesError) -> None:
        if not error.is_temporary or attempt == MOST_ATTEMPTS:
            with self.lock:
                self._given_up(item)
        else:
            # Where no answer came, the event is not to blame, and keeps its place.
            self._put_back(lane, item, attempt, is_first=isinstance(error, TransportError))
        if error.is_temporary and lane.pause is None and lane.waiting and self._loop is not None:
            lane.failures += 1
            lane.pause = self._loop.call_later(_PAUSE.delay(lane.failures), self._resume, lane)

    def _put_back(self, lane: _Lane[Item], item: Item, attempts: int, *, is_first: bool) -> None:
        with self.lock:
            # It may have happened again meanwhile, and be there already.
            self._size += item not in lane.waiting
            lane.waiting[item] = attempts
            lane.waiting.move_to_end(item, last=not is_first)

    def _resume(self, lane: _Lane[Item]) -> None:
        lane.resume()
        self._wake()

    def _resume_all(self) -> None:
        with self.lock:
            for lane in self._lanes.values():
                lane.resume()
            self._wake(self._size)

    def _complain(self, item: Item, attempt: int, error: KubernetesError) -> None:
        """Once per namespace, until it is something else: a missing permission would otherwise fill the log."""
        is_usual = _says_namespace_is_going(error) or isinstance(error, NotFound)
        is_known = attempt > 1 or type(error) is self._complaints.get(item.namespace)
        level = logging.DEBUG if is_usual or is_known else logging.WARNING
        _log.log(level, "an event could not be written: %s: %s", item, error)
        if not is_usual:
            self._complaints[item.namespace] = type(error)
            if len(self._complaints) > _MOST_COMPLAINTS:
                self._complaints.popitem(last=False)


def _says_namespace_is_going(error: KubernetesError) -> bool:
    return isinstance(error, APIError) and any(cause.reason == "NamespaceTerminating" for cause in error.status.causes)
