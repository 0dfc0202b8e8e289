"""Sources of the keys in a queue.

    Watched      events of the objects of a kind, from the cache's watch
    Channel      keys that other code of the program sends
    Polled       changes in a system that has no watch
    Function     anything else that can be written as `async def feed(add)`

A source feeds the queue while it runs; it is synced once everything that existed at its start is enqueued. On a standby
`Watched` keeps its cache up to date and `Polled` and `Function` wait, so that its queue does not grow.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from typing import Generic, Protocol, TypeAlias, TypeVar

from kubewright.api.errors import KubernetesError
from kubewright.client.backoff import Backoff
from kubewright.controller.arguments import check_function, check_seconds
from kubewright.controller.cancelled import outcome
from kubewright.controller.queue import Queue, Reason

Key = TypeVar("Key", bound=Hashable)

INITIAL_PRIORITY = -100
"""The priority of objects that existed at the start: changes go first."""

TIMEOUT = 60.0
"""Seconds that another system has to answer."""

_log = logging.getLogger(__name__)


class Source(Protocol[Key]):
    """Something that feeds a queue."""

    async def run(self, queue: Queue[Key]) -> None:
        """Feed the queue until cancelled."""

    async def synced(self) -> None:
        """Wait until everything that existed at the start is in the queue."""

    @property
    def not_ready_reason(self) -> str | None:
        """Why it is not synced; None when it is."""


class Channel(Generic[Key]):
    """Keys that other code of the program sends, from any thread. What is sent before the controller runs is kept."""

    def __init__(self, name: str = "channel") -> None:
        self._name = name
        self._reason = Reason(name, "sent", None)
        self._queue: Queue[Key] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None  # that of the queue, which alone may touch it
        self._kept: deque[tuple[Key, int]] = deque()

    def send(self, key: Key, *, priority: int = 0) -> None:
        """Enqueue the key."""
        if self._queue is not None and self._thread == threading.get_ident():
            self._queue.add(key, priority=priority, reason=self._reason)
            return
        # Kept before the loop is read, while `run` sets the loop before it reads what was kept.
        self._kept.append((key, priority))
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # a loop that has been closed since
                loop.call_soon_threadsafe(self._send_kept)

    async def run(self, queue: Queue[Key]) -> None:
        """See `Source`."""
        self._queue, self._thread, self._loop = queue, threading.get_ident(), asyncio.get_running_loop()
        try:
            self._send_kept()
            await asyncio.Event().wait()
        finally:
            self._queue = self._thread = self._loop = None

    def _send_kept(self) -> None:
        while self._queue is not None and self._kept:
            key, priority = self._kept.popleft()
            self._queue.add(key, priority=priority, reason=self._reason)

    async def synced(self) -> None:
        """See `Source`."""

    @property
    def not_ready_reason(self) -> str | None:
        """See `Source`."""
        return None


class StandbySource:
    """A source that does nothing before its controller has workers: on a standby its keys would pile up."""

    _working: asyncio.Event | None = None

    def start_after(self, working: asyncio.Event) -> None:
        """For a controller: do nothing before the event is set."""
        self._working = working

    @property
    def is_standby(self) -> bool:
        """Whether it does nothing yet."""
        return self._working is not None and not self._working.is_set()

    async def started(self) -> None:
        """Wait until the controller has workers."""
        if self._working is not None:
            await self._working.wait()


class Polled(StandbySource, Generic[Key]):
    """A system that has no watch, fetched periodically: keys whose value appears, changes or goes are enqueued.

    Guarantee: a poll that fails, or takes more than `timeout` seconds, changes nothing and is logged, and the next one
    is made as usual.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Mapping[Key, Hashable]]],
        *,
        every: float,
        timeout: float = TIMEOUT,
        name: str = "poll",
    ) -> None:
        check_function(fetch, "the fetch of a Polled source", may_be_async=True)
        check_seconds(every, "every")
        check_seconds(timeout, "timeout")
        self._fetch = fetch
        self._every = every
        self._timeout = timeout
        self._name = name
        self._fetched = asyncio.Event()
        self._problem: str | None = f"{name} has not been polled yet"

    async def run(self, queue: Queue[Key]) -> None:
        """See `Source`."""
        known: dict[Key, Hashable] = {}
        self._fetched.clear()
        await self.started()
        while True:
            try:
                found = await state_of(self._fetch, self._timeout)
            except Exception as error:
                reason = str(error) or type(error).__name__
                self._problem = f"{self._name}: {reason}"
                _log.warning("polling %s failed: %s", self._name, reason)
            else:
                initial = not self._fetched.is_set()
                for key, verb in differences(known, found):
                    priority = INITIAL_PRIORITY if initial else 0
                    queue.add(key, priority=priority, reason=Reason(self._name, verb, None))
                known, self._problem = found, None
                self._fetched.set()
            await asyncio.sleep(self._every)

    async def synced(self) -> None:
        """See `Source`. On a standby there is nothing to wait for."""
        if not self.is_standby:
            await self._fetched.wait()

    @property
    def not_ready_reason(self) -> str | None:
        """See `Source`."""
        return None if self.is_standby else self._problem


async def state_of(fetch: Callable[[], Awaitable[Mapping[Key, Hashable]]], timeout: float) -> dict[Key, Hashable]:
    """What `fetch` returns, copied: the next answer may be the same mapping, changed in place."""
    try:
        async with asyncio.timeout(timeout) as limit:
            return dict(await outcome(fetch()))
    except TimeoutError as error:
        if limit.expired():
            raise TimeoutError(f"no answer within {timeout:g} s") from error
        raise


def differences(known: Mapping[Key, Hashable], found: Mapping[Key, Hashable]) -> Iterator[tuple[Key, str]]:
    """The keys that were added, updated or deleted between two states of another system, and which of these it was."""
    for key in {**known, **found}:
        if key not in known:
            yield key, "added"
        elif key not in found:
            yield key, "deleted"
        elif known[key] != found[key]:
            yield key, "updated"


RESTART = Backoff(1.0, 60.0)
"""Of sources that fail or end."""

Feed: TypeAlias = Callable[[Callable[[Key], None]], Awaitable[None]]


class Function(StandbySource, Generic[Key]):
    """`async def feed(add)`: runs as long as the controller's workers do, and adds keys.

    Guarantee: one that fails or ends is started again after 1 s, 2 s … 60 s; after 1 s when it has added a key.
    """

    def __init__(self, feed: Feed[Key], *, name: str | None = None) -> None:
        check_function(feed, "the feed of a Function source", "add", may_be_async=True)
        self._feed = feed
        self._name: str = name or getattr(feed, "__name__", None) or "function"

    async def run(self, queue: Queue[Key]) -> None:
        """See `Source`."""
        await self.started()
        reason = Reason(self._name, "sent", None)
        runs = 0  # in a row that added nothing, the present one included

        def add(key: Key) -> None:
            nonlocal runs
            runs = 1
            queue.add(key, reason=reason)

        while True:
            runs += 1
            try:
                await outcome(self._feed(add))
            except Exception as error:
                delay, known = RESTART.delay(runs), isinstance(error, KubernetesError)
                message = "the source %s failed: %s; starting it again in %g s"
                _log.warning(message, self._name, error, delay, exc_info=not known)
            else:
                delay = RESTART.delay(runs)
                _log.info("the source %s ended; starting it again in %g s", self._name, delay)
            await asyncio.sleep(delay)

    async def synced(self) -> None:
        """See `Source`."""

    @property
    def not_ready_reason(self) -> str | None:
        """See `Source`."""
        return None
