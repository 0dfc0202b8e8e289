"""How the controllers here run on kubewright's own runtime: a cache, a client on top of it, and a `Controller`.

They are an ordinary program, with four differences. There is no manager, as there is no leader, no metric and no
signal. A request that the server refuses is retried and logged at DEBUG only. So are reconciles: the log of a program
that embeds a control plane is about the program. And hot loops are not slowed down: a simulated cluster changes far
faster than a real one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, Protocol, TypeVar

from kubewright.api.errors import KubernetesError
from kubewright.cache import Cache, CachedClient
from kubewright.client import Client
from kubewright.controller import Channel, Controller, ExponentialBackoff, Queue, Result, Source
from kubewright.controlplane.controllers.clock import Clock, Timer

Key = TypeVar("Key", bound=Hashable)

_MAX_RETRY_DELAY = 30.0

_log = logging.getLogger(__name__)


class BuiltInController(Protocol):
    """A controller of the control plane. `run` ends only by being cancelled, and leaves nothing behind."""

    name: str

    async def run(self) -> None:
        """Watch and act until cancelled."""


class Runtime:
    """What one controller runs on. Controllers that are given the same cache share its watches.

    The cache's maker runs it; without one the controller has its own.
    """

    def __init__(self, client: Client, cache: Cache | None = None) -> None:
        self.cache = cache or Cache(client, quiet=True)
        self.client = CachedClient(client, self.cache)
        self._has_own_cache = cache is None

    async def run(
        self,
        name: str,
        reconcile: Callable[[Key], Awaitable[Result | None]],
        *sources: Source[Key],
        workers: int = 4,
        beside: tuple[Callable[[], Awaitable[None]], ...] = (),
    ) -> None:
        """Once the sources are complete, reconcile the keys that they name until cancelled.

        A failed key is retried after 5 ms, 10 ms … 30 s, by the event loop's time: a clock that stands still must not
        hold up a retry. `beside` runs as long.
        """
        controller = Controller(
            name,
            _Patient(reconcile),
            workers=workers,
            limiter=ExponentialBackoff(limit=_MAX_RETRY_DELAY),
            slow_hot_loops=False,
            quiet=True,
        )
        for source in sources:
            controller.watch(source)
        async with asyncio.TaskGroup() as tasks:
            if self._has_own_cache:
                tasks.create_task(self.cache.run())
            for other in beside:
                tasks.create_task(_awaited(other))
            tasks.create_task(controller.run_sources())
            await controller.run_workers()


class StatelessController:
    """A controller that needs nothing but a client: it has no clock, and no state besides what its cache holds."""

    def __init__(self, client: Client, clock: Clock | None = None, *, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client


class Alarms(Channel[Key]):
    """Enqueues keys at given times of the clock. Of several times for one key the earliest counts."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("alarm")
        self._clock = clock
        self._timers: dict[Key, tuple[float, Timer]] = {}

    def set(self, key: Key, seconds: float) -> None:
        """Enqueue the key after that many seconds."""
        due = self._clock.now().timestamp() + seconds
        if key in self._timers:
            earlier, timer = self._timers[key]
            if earlier <= due:
                return
            timer.cancel()
        self._timers[key] = due, self._clock.call_later(seconds, lambda: self._ring(key))

    async def run(self, queue: Queue[Key]) -> None:
        """See `Source`."""
        try:
            await super().run(queue)
        finally:
            for _, timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    def _ring(self, key: Key) -> None:
        del self._timers[key]
        self.send(key)


class _Patient(Generic[Key]):
    """A reconciler whose failed requests are retried without an error log."""

    def __init__(self, reconcile: Callable[[Key], Awaitable[Result | None]]) -> None:
        self._reconcile = reconcile

    async def reconcile(self, key: Key) -> Result:
        try:
            return await self._reconcile(key) or Result()
        except KubernetesError as error:
            _log.debug("%s: %s", key, error)
            return Result(requeue=True)


async def _awaited(other: Callable[[], Awaitable[None]]) -> None:
    await other()
