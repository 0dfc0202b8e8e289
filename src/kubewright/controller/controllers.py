"""`Controller`: sources that fill a queue, and workers that reconcile its keys.

Guarantees: a key is never reconciled twice at once; every change is followed by a reconcile that began after it. What
follows from the end of a reconcile is in `reconcile_handler`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Generic, Protocol, TypeVar, cast

from kubewright.api.errors import DecodeError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import Object
from kubewright.controller import log_context
from kubewright.controller.arguments import check_function, check_number, is_async
from kubewright.controller.defaults import SYNC_TIMEOUT
from kubewright.controller.queue import Queue, QueueClosed, Reason
from kubewright.controller.ratelimit import RateLimiter
from kubewright.controller.reconcile import ErrorHook, ReconcileFunction, Reconciler, Result, reconcile_function
from kubewright.controller.reconcile_handler import FinishedReconcile, RecentReconcile, ReconcileHandler, text_of
from kubewright.controller.source import Source, StandbySource
from kubewright.controller.statistics import ControllerStatistics
from kubewright.controller.thread import ReconcilerThreads
from kubewright.controller.watched import Watched

Key = TypeVar("Key", bound=Hashable)

_SLICE = 0.005  # seconds that one worker may go on before others get their turn

_log = logging.getLogger(__name__)


class WarningRecorder(Protocol):
    """The part of a recorder of Kubernetes Events that a controller uses itself."""

    def warning(self, regarding: Object, reason: str, note: str) -> None:
        """Record a Warning event about an object."""


class Controller(Generic[Key]):
    """Runs a reconciler for the keys of its sources. `run_sources` and `run_workers` are run by the manager."""

    def __init__(
        self,
        name: str,
        reconciler: Reconciler[Key] | ReconcileFunction[Key],
        *,
        kind: GroupVersionKind | None = None,
        workers: int = 1,
        timeout: float | None = None,
        max_attempts: int | None = None,
        limiter: RateLimiter | None = None,
        debounce: float = 0.0,
        sync_timeout: float = SYNC_TIMEOUT,
        needs_leader: bool = True,
        on_error: ErrorHook[Key] | None = None,
        slow_hot_loops: bool = True,
        quiet: bool = False,
    ) -> None:
        """`timeout` ends a reconcile that takes longer, as a failure. After `max_attempts` failures in a row a key
        waits for its next change; without it there is no last attempt. Without `slow_hot_loops` a key whose reconciles
        cause each other, many times a second, is not paused: for objects that really change so often. With `quiet`,
        reconciles that wrote something are logged at DEBUG, as those that did not.
        """
        check_number(workers, f'controller "{name}": workers')
        check_number(sync_timeout, f'controller "{name}": sync_timeout')
        if timeout is not None:
            check_number(timeout, f'controller "{name}": timeout')
        if on_error is not None:
            check_function(on_error, "on_error", "request", "error", "attempt", may_be_async=True)
        if workers < 1:
            raise ValueError(f'controller "{name}": workers={workers}, expected at least 1')
        if timeout is not None and not timeout > 0:
            raise ValueError(f'controller "{name}": timeout={timeout:g}, expected a number of seconds above 0')
        if max_attempts is not None and max_attempts < 1:
            raise ValueError(f'controller "{name}": max_attempts={max_attempts}, expected at least 1')
        self.name = name
        self.reconciler: object = reconciler
        """What it was made of: an object with `reconcile`, or a function."""
        self.needs_leader = needs_leader
        self.queue: Queue[Key] = Queue(limiter=limiter, debounce=debounce)
        self.statistics = ControllerStatistics(workers)
        self.recorder: Callable[[str], WarningRecorder] | None = None
        """How a recorder of Kubernetes Events is made, by its component; the manager sets it."""
        self._workers = workers
        self._sync_timeout = sync_timeout
        self._sources: dict[Source[Key], asyncio.Task[None] | None] = {}
        self._group: asyncio.TaskGroup | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._working = asyncio.Event()
        self._since = 0
        self._stopping = False
        self._all_workers: asyncio.Task[object] | None = None
        function = reconcile_function(reconciler)
        self._threads = None if is_async(function) else ReconcilerThreads(function, workers, name)
        self._handler = ReconcileHandler(
            name,
            cast("Callable[[Key], Awaitable[Result | None]]", function)
            if self._threads is None
            else self._threads.reconcile,
            self.queue,
            self.statistics,
            kind=kind,
            timeout=timeout,
            max_attempts=max_attempts,
            on_error=on_error,
            slow_hot_loops=slow_hot_loops,
            quiet=quiet,
            is_undecodable=self._is_undecodable,
            is_ending=self._is_ending,
        )

    # Sources

    def watch(self, source: Source[Key]) -> Callable[[], None]:
        """Add a source, which starts at once if the controller is running. Returns a function that removes it."""
        self._sources[source] = None
        if isinstance(source, Watched):
            source.attach(self._working, self._enqueue_all)
        elif isinstance(source, StandbySource):
            source.start_after(self._working)
        if self._group is not None:
            self._start(source, self._group)
        return lambda: self._unwatch(source)

    @property
    def sources(self) -> list[Source[Key]]:
        """The sources of the keys."""
        return list(self._sources)

    @property
    def not_ready_reason(self) -> str | None:
        """Why the controller is not ready; None when it is."""
        return next(
            (
                f"{self.name}: {source.not_ready_reason}"
                for source in self._sources
                if source.not_ready_reason is not None
            ),
            None,
        )

    async def run_sources(self) -> None:
        """Watch until cancelled, and fill the queue while there are workers.

        Needs no leadership, so that a standby's cache is warm. Its queue is filled when it begins to work, as
        controller-runtime does it: with all that exists then, and nothing of what has gone by then. So the queue of a
        standby does not grow with what comes and goes.
        """
        try:
            async with asyncio.TaskGroup() as self._group:
                for source in list(self._sources):
                    self._start(source, self._group)
                await asyncio.Event().wait()
        finally:
            self._group = None

    def _start(self, source: Source[Key], group: asyncio.TaskGroup) -> None:
        self._sources[source] = group.create_task(source.run(self.queue), name=f"{self.name}: {source}")

    def _own_sources(self) -> Iterator[Watched[Key]]:
        """The watches of the reconciled objects themselves."""
        return (source for source in self._sources if isinstance(source, Watched) and source.is_own)

    def _enqueue_all(self, reason: Reason) -> bool:
        """Enqueue all objects of the controller's own kind. False when it watches no such kind."""
        own = list(self._own_sources())
        for source in own:
            source.enqueue_all(self.queue, reason)
        return bool(own)

    def _unwatch(self, source: Source[Key]) -> None:
        task = self._sources.pop(source, None)
        if task is not None:
            task.cancel()
        if self._syncing is not None:
            self._syncing.cancel()  # it may wait for the source that is gone; it begins again with the others

    # Workers

    async def run_workers(self, *, since: int = 0) -> None:
        """Once the sources are synced, reconcile until stopped or cancelled. Returns when `stop` was called and the
        running reconciles have ended.

        `since` is the revision at which this program began to lead: no reconcile sees an older state of what is watched
        than the server had then.
        """
        self._since = since
        self._working.set()
        await self._sources_synced()
        self._all_workers = asyncio.current_task()
        try:
            with log_context.installed():
                async with asyncio.TaskGroup() as group:
                    for number in range(self._workers):
                        group.create_task(self._work(), name=f"{self.name}: worker {number}")
        finally:
            self.queue.close()
            if self._threads is not None:
                self._threads.close()

    def stop(self) -> None:
        """Start no further reconcile. What is in the queue is reconciled after the next start, which lists it again."""
        self._stopping = True
        self.queue.close()
        if self._syncing is not None:
            self._syncing.cancel()

    def reconciles(self) -> AbstractAsyncContextManager[AsyncIterator[FinishedReconcile[Key]]]:
        """The reconciles that end while the block runs: `async with controller.reconciles() as reconciles`."""
        return self._handler.reconciles()

    @property
    def recent(self) -> OrderedDict[Key, RecentReconcile]:
        """The last reconcile of the keys that were reconciled most recently, the latest at the end."""
        return self._handler.recent

    async def _sources_synced(self) -> None:
        """Wait until all sources are synced, or the controller is stopped."""
        while not self._stopping:
            self._syncing = syncing = asyncio.create_task(self._each_synced(), name=f"{self.name}: syncing")
            try:
                while not (await asyncio.wait((syncing,), timeout=self._sync_timeout))[0]:
                    _log.warning("%s; waiting for it", self.not_ready_reason or f"{self.name}: a source is not synced")
            finally:
                self._syncing = None
                syncing.cancel()
            if not syncing.cancelled():
                syncing.result()
                return

    async def _each_synced(self) -> None:
        for source in list(self._sources):
            await source.synced()
            if self._since and isinstance(source, Watched):
                await source.caught_up(self._since)

    async def _work(self) -> None:
        """A worker, until the queue is closed or all workers are cancelled."""
        while True:
            try:
                await self._work_off()
            except asyncio.CancelledError:
                if self._is_ending():
                    raise
                # A reconcile has cancelled the task that it ran in, and ended before that took effect.
            else:
                return

    async def _work_off(self) -> None:
        queue, handle = self.queue, self._handler.handle
        slice_began = monotonic()
        while True:
            # Reconciles that never await do not yield by themselves, and a queue may hold thousands of them.
            if monotonic() - slice_began > _SLICE:
                await asyncio.sleep(0)
                slice_began = monotonic()
            try:
                work = await queue.get()
            except QueueClosed:
                return
            if self._stopping:
                queue.done(work.key)
            else:
                await handle(work)

    def _is_undecodable(self, key: Key, error: DecodeError) -> bool:
        """Whether it is the reconciled object itself that does not fit its type; if so, a Kubernetes Event reports it.

        Another object may be corrected without this one changing, so that such an error is retried.
        """
        for source in self._own_sources():
            undecodable = source.undecodable(key, error)
            if undecodable is not None:
                if self.recorder is not None:
                    self.recorder(self.name).warning(undecodable, "InvalidObject", text_of(error))
                return True
        return False

    def _is_ending(self) -> bool:
        """Whether all workers were cancelled, and not just a reconcile, or something that it waited for."""
        if self._all_workers is None or self._all_workers.cancelling():
            return True
        # The task is that of a worker, which goes on.
        task = asyncio.current_task()
        while task is not None and task.cancelling():
            task.uncancel()
        return False
