"""`Controller`: from sources to a queue to a reconciler, and back into the queue.

Guarantees: a key is never reconciled twice at once; every change is followed by a pass that began after it; a pass that
fails is tried again, ever more slowly; no exception of a reconciler ends anything but its pass.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from time import monotonic
from typing import Generic, NamedTuple, Protocol, TypeVar, cast

from kubewright.api.errors import DecodeError, KubernetesError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import Object
from kubewright.cache.write_context import WriteCount, reconcile_priority, write_count
from kubewright.client.errors import Conflict
from kubewright.controller import thread
from kubewright.controller.cancelled import Cancelled
from kubewright.controller.context import ReconcileContext, current, new_reconcile_id
from kubewright.controller.defaults import SYNC_TIMEOUT
from kubewright.controller.hot_loop import HotLoops
from kubewright.controller.queue import Queue, QueueClosed, Reason, Work
from kubewright.controller.ratelimit import RateLimiter
from kubewright.controller.reconcile import Attempt, ErrorHook, Reconciler, Result, TerminalError, checked
from kubewright.controller.source import Source, Watched
from kubewright.controller.statistics import RECONCILE_BOUNDS, Histogram

Key = TypeVar("Key", bound=Hashable)

QUIET_CONFLICTS = 5
"""So many lost races of a key without a success in between are nothing to report; more are an error like any other."""

_REMEMBERED = 256  # keys whose last pass the debug endpoint can tell
_SLICE = 0.005  # seconds that one worker may go on before others get their turn

_log = logging.getLogger(__name__)


class Pass(NamedTuple, Generic[Key]):
    """One finished pass: what came of it, how long it took, and why it ran."""

    key: Key
    outcome: Result | Exception
    seconds: float
    reasons: tuple[Reason, ...]


class Remembered(NamedTuple):
    """What is kept of a finished pass. Of an error only the words: it holds on to all that its pass had in hand."""

    outcome: Result | str
    seconds: float
    reasons: tuple[Reason, ...]


class Statistics:
    """Counters of one controller; plain numbers, read when somebody asks for metrics."""

    def __init__(self, workers: int) -> None:
        self.results = {"success": 0, "error": 0, "requeue": 0, "requeue_after": 0}
        self.errors = 0
        self.terminal_errors = 0
        self.panics = 0  # of what is not an Exception, and so ends the workers
        self.timeouts = 0
        self.conflicts = 0
        self.hot_loops = 0
        self.reasons: dict[str, int] = {}
        self.reconcile_time = Histogram(RECONCILE_BOUNDS)
        self.workers = workers
        self.active = 0


class Warner(Protocol):
    """As much of a recorder of Kubernetes Events as a controller needs itself."""

    def warning(self, regarding: Object, reason: str, note: str) -> None:
        """Somebody should look into that object."""


class Controller(Generic[Key]):
    """Runs a reconciler for the keys its sources name. `run_sources` and `run_workers` are run by the manager."""

    def __init__(
        self,
        name: str,
        reconciler: Reconciler[Key],
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
    ) -> None:
        """`timeout` ends a pass that takes longer, as a failure. After `max_attempts` failures in a row a key waits
        for its next change; without it there is no last attempt. Without `slow_hot_loops` a key whose passes cause
        each other, many times a second, is not paused: for objects that really change so often.
        """
        if workers < 1:
            raise ValueError(f'controller "{name}": workers={workers}, expected at least 1')
        if timeout is not None and not timeout > 0:
            raise ValueError(f'controller "{name}": timeout={timeout:g}, expected a number of seconds above 0')
        if max_attempts is not None and max_attempts < 1:
            raise ValueError(f'controller "{name}": max_attempts={max_attempts}, expected at least 1')
        self.name = name
        self.needs_leader = needs_leader
        self.queue: Queue[Key] = Queue(limiter=limiter, debounce=debounce)
        self.statistics = Statistics(workers)
        self.recent: OrderedDict[Key, Remembered] = OrderedDict()
        self.recorder: Callable[[str], Warner] | None = None
        """How a recorder of Kubernetes Events is made, by its component; the manager sets it."""
        self._kind = kind
        self._workers = workers
        self._timeout = timeout
        self._max_attempts = max_attempts
        self._sync_timeout = sync_timeout
        self._on_error = on_error
        self._sources: dict[Source[Key], asyncio.Task[None] | None] = {}
        self._group: asyncio.TaskGroup | None = None
        self._listeners: set[asyncio.Queue[Pass[Key]]] = set()
        self._hot_loops: HotLoops[Key] | None = HotLoops() if slow_hot_loops else None
        # Counted here: limiters need not count, and are not asked when a key fails again before its back-off is over.
        self._failures: dict[Key, int] = {}
        self._lost_races: dict[Key, int] = {}
        self._syncing: asyncio.Task[None] | None = None
        self._working = asyncio.Event()
        self._stopping = False
        self._all_workers: asyncio.Task[object] | None = None
        self._threads: ThreadPoolExecutor | None = None
        if inspect.iscoroutinefunction(reconciler.reconcile):
            self._reconcile = cast("Callable[[Key], Awaitable[Result | None]]", reconciler.reconcile)
        else:
            self._threads = ThreadPoolExecutor(workers, thread_name_prefix=name)
            self._blocking = reconciler.reconcile
            self._reconcile = self._in_thread

    # Sources

    def watch(self, source: Source[Key]) -> Callable[[], None]:
        """Take keys from one more source, from now on if the controller is running. Returns the way to stop that."""
        self._sources[source] = None
        if isinstance(source, Watched):
            source.attach(self._working, self._enqueue_all)
        if self._group is not None:
            self._start(source, self._group)
        return lambda: self._unwatch(source)

    @property
    def sources(self) -> list[Source[Key]]:
        """Where the keys come from."""
        return list(self._sources)

    @property
    def missing(self) -> str | None:
        """What keeps the controller from working, in words; None when nothing does."""
        return next((f"{self.name}: {source.missing}" for source in self._sources if source.missing is not None), None)

    async def run_sources(self) -> None:
        """Watch until cancelled, and fill the queue while there are workers.

        Needs no leadership, so that a standby's cache is warm. What its watches tell is put into the queue when it
        begins to work, as at a start, and as controller-runtime does it: all that exists then, and nothing of what has
        gone by then. So the queue of a standby does not grow with what comes and goes.
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
        """Have all objects of the controller's own kind reconciled. False when it watches no such kind."""
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

    async def run_workers(self) -> None:
        """Once the sources are complete, reconcile until stopped or cancelled. Returns when `stop` was called and
        the passes under way are over.
        """
        self._working.set()
        await self._sources_synced()
        self._all_workers = asyncio.current_task()
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._workers):
                    group.create_task(self._work(), name=f"{self.name}: worker {number}")
        finally:
            self.queue.close()
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """Begin no further pass. What is in the queue is looked at after the next start: it is all listed again."""
        self._stopping = True
        self.queue.close()
        if self._syncing is not None:
            self._syncing.cancel()

    @asynccontextmanager
    async def passes(self) -> AsyncIterator[AsyncIterator[Pass[Key]]]:
        """The passes that end while the block runs, as they do: `async with controller.passes() as passes`."""
        queue: asyncio.Queue[Pass[Key]] = asyncio.Queue()
        self._listeners.add(queue)

        async def each() -> AsyncIterator[Pass[Key]]:
            while True:
                yield await queue.get()

        try:
            yield each()
        finally:
            self._listeners.discard(queue)

    async def _sources_synced(self) -> None:
        """Wait until all sources are complete, or the controller is stopped."""
        while not self._stopping:
            self._syncing = syncing = asyncio.create_task(self._each_synced(), name=f"{self.name}: syncing")
            try:
                while not (await asyncio.wait((syncing,), timeout=self._sync_timeout))[0]:
                    _log.warning("%s; waiting for it", self.missing or f"{self.name}: a source is not complete")
            finally:
                self._syncing = None
                syncing.cancel()
            if not syncing.cancelled():
                syncing.result()
                return

    async def _each_synced(self) -> None:
        for source in list(self._sources):
            await source.synced()

    async def _work(self) -> None:
        """A worker, until the queue is closed or all workers are cancelled."""
        while True:
            try:
                await self._work_off()
            except asyncio.CancelledError:
                if self._is_ending():
                    raise
                # A pass has cancelled the task that it ran in, and was over before that took effect.
            else:
                return

    async def _work_off(self) -> None:
        queue, statistics = self.queue, self.statistics
        time = asyncio.get_running_loop().time
        slice_began = monotonic()
        while True:
            # Passes that wait for nothing never give way by themselves, and a queue may hold thousands of them.
            if monotonic() - slice_began > _SLICE:
                await asyncio.sleep(0)
                slice_began = monotonic()
            try:
                work = await queue.get()
            except QueueClosed:
                return
            if self._stopping:
                queue.done(work.key)
                continue
            statistics.active += 1
            began = time()
            writes = WriteCount()
            counting, prioritized = write_count.set(writes), reconcile_priority.set(work.priority)
            pause = 0.0
            try:
                outcome = await self._pass(work)
                pause = self._slowed(work, writes.value)
            finally:
                reconcile_priority.reset(prioritized)
                write_count.reset(counting)
                seconds = time() - began
                statistics.active -= 1
                statistics.reconcile_time.observe(seconds)
                queue.done(work.key, pause=pause)
            self._remember(work, outcome, seconds)
            del outcome  # a worker that waits holds on to no error either

    async def _pass(self, work: Work[Key]) -> Result | Exception:
        """One pass, and what follows from it for the queue."""
        key, statistics = work.key, self.statistics
        for reason in work.reasons:
            words = f"{reason.kind} {reason.what}"
            statistics.reasons[words] = statistics.reasons.get(words, 0) + 1
        token = current.set(self._context(work))
        try:
            result = checked(await (self._reconcile(key) if self._timeout is None else self._timed(key, self._timeout)))
        except asyncio.CancelledError as error:
            if self._is_ending():
                raise
            cancelled = Cancelled("the pass, or something that it waited for, was cancelled from within")
            return await self._failed(work, cancelled.with_traceback(error.__traceback__))
        except TerminalError as error:
            return await self._given_up(key, error)
        except Exception as error:
            if isinstance(error, DecodeError) and self._does_not_fit(key, error):
                return await self._given_up(key, error)
            if isinstance(error, Conflict) and self._is_lost_race(key, error):
                # Somebody else was faster. The next pass sees what they wrote; nobody needs to hear of it.
                statistics.conflicts += 1
                statistics.results["requeue"] += 1
                _log.debug("conflict: %s", error)
                self.queue.add_failed(key, reason=_CONFLICT)
                return error
            return await self._failed(work, error)
        except BaseException:
            statistics.panics += 1
            raise
        finally:
            current.reset(token)
        self._failures.pop(key, None)
        if self._lost_races:
            self._lost_races.pop(key, None)
        if result.requeue_after is not None and (delay := result.delay) > 0:
            statistics.results["requeue_after"] += 1
            self.queue.forget(key)
            priority = work.priority if result.priority is None else result.priority
            self.queue.add(key, after=delay, priority=priority, reason=_REQUEUE_AFTER)
        elif result.requeue:
            statistics.results["requeue"] += 1
            self.queue.add_failed(key, priority=result.priority, reason=_REQUEUE)
        else:
            statistics.results["success"] += 1
            self.queue.forget(key)
        return result

    async def _given_up(self, key: Key, error: Exception) -> Exception:
        statistics = self.statistics
        statistics.terminal_errors += 1
        statistics.errors += 1
        statistics.results["error"] += 1
        _log.error("giving up until the next change: %s", _message(error))
        self.queue.forget(key)
        self._lost_races.pop(key, None)
        await self._tell(key, error, Attempt(self._failures.pop(key, 0) + 1, True))
        return error

    def _does_not_fit(self, key: Key, error: DecodeError) -> bool:
        """Whether it is the reconciled object itself that does not fit its type; if so, an event tells its owner.

        Another object may be mended without this one changing, so that such an error is tried again.
        """
        for source in self._own_sources():
            unfit = source.unfit(key, error)
            if unfit is not None:
                if self.recorder is not None:
                    self.recorder(self.name).warning(unfit, "InvalidObject", _message(error))
                return True
        return False

    def _is_lost_race(self, key: Key, error: Conflict) -> bool:
        """Whether a conflict is nothing to report: an optimistic lock that failed, one of the first in a row."""
        if not error.is_optimistic_lock:
            return False
        lost = self._lost_races[key] = self._lost_races.get(key, 0) + 1
        return lost <= QUIET_CONFLICTS

    async def _timed(self, key: Key, seconds: float) -> Result | None:
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await self._reconcile(key)
        except TimeoutError:
            if not deadline.expired():
                raise
            self.statistics.timeouts += 1
            raise ReconcileTimeout(f"the pass took longer than {seconds:g} s") from None

    async def _failed(self, work: Work[Key], error: Exception) -> Exception:
        statistics = self.statistics
        statistics.errors += 1
        statistics.results["error"] += 1
        attempt = self._failures[work.key] = self._failures.get(work.key, 0) + 1
        is_last = self._max_attempts is not None and attempt >= self._max_attempts
        expected = isinstance(error, KubernetesError | ReconcileTimeout)
        _log.error(
            "reconciling failed, attempt %d%s: %s",
            attempt,
            ", the last" if is_last else "",
            _message(error) or type(error).__name__,
            exc_info=None if expected else error,
        )
        if is_last:
            del self._failures[work.key]
            self._lost_races.pop(work.key, None)
            self.queue.forget(work.key)
        else:
            self.queue.add_failed(work.key, reason=_RETRY)
        await self._tell(work.key, error, Attempt(attempt, is_last))
        return error

    async def _tell(self, key: Key, error: Exception, attempt: Attempt) -> None:
        if self._on_error is None:
            return
        try:
            told = self._on_error(key, error, attempt)
            if told is not None:
                await told
        except asyncio.CancelledError:
            if self._is_ending():
                raise
            _log.exception("the error hook failed: something that it waited for was cancelled")
        except Exception:
            _log.exception("the error hook failed")

    def _is_ending(self) -> bool:
        """Whether all workers were cancelled, and not something that a pass waited for, or the pass by itself."""
        if self._all_workers is None or self._all_workers.cancelling():
            return True
        # The task is that of a worker, who goes on.
        task = asyncio.current_task()
        while task is not None and task.cancelling():
            task.uncancel()
        return False

    async def _in_thread(self, key: Key) -> Result | None:
        loop = asyncio.get_running_loop()
        context = copy_context()
        context.run(thread.loop_of_thread.set, loop)
        running = loop.run_in_executor(self._threads, context.run, self._blocking_pass, key)
        try:
            result = await asyncio.shield(running)
        except asyncio.CancelledError:
            # A thread cannot be interrupted, and until it ends nobody else may reconcile its key.
            await asyncio.wait((running,))
            raise
        # Behind a decorator an `async def` looks like a plain function that returns an awaitable.
        return await result if inspect.isawaitable(result) else result

    def _blocking_pass(self, key: Key) -> Awaitable[Result | None] | Result | None:
        try:
            return self._blocking(key)
        except StopIteration as error:
            # A future cannot hold this one: it would never be done, and neither would the pass.
            raise RuntimeError("reconcile raised StopIteration") from error

    def _slowed(self, work: Work[Key], writes: int) -> float:
        """Seconds to pause a key whose reconcile has ended: more than 0 where each seems to cause the next."""
        if self._hot_loops is None or not (writes or _may_be_own_doing(work)):
            return 0.0
        pause = self._hot_loops.note(work.key, writes, asyncio.get_running_loop().time())
        if pause:
            self.statistics.hot_loops += 1
            _log.warning(
                "%s: hot loop: %s is reconciled over and over, many times a second; pausing it for %g s. %s",
                self.name,
                work.key,
                pause,
                "Does every reconcile write something that the server or another controller changes back?"
                if writes
                else "Is its requeue_after too short, or does a source send it because of its own reconciles?",
            )
        return pause

    def _context(self, work: Work[Key]) -> ReconcileContext:
        key: object = work.key
        namespace, name = key if isinstance(key, tuple) and len(key) == 2 else ("", str(key))
        group, kind = (self._kind.group, self._kind.kind) if self._kind is not None else ("", "")
        return ReconcileContext(self.name, group, kind, namespace, name, new_reconcile_id(), work.reasons)

    def _remember(self, work: Work[Key], outcome: Result | Exception, seconds: float) -> None:
        words = f"{type(outcome).__name__}: {_message(outcome)}" if isinstance(outcome, Exception) else outcome
        self.recent[work.key] = Remembered(words, seconds, work.reasons)
        self.recent.move_to_end(work.key)
        if len(self.recent) > _REMEMBERED:
            self.recent.popitem(last=False)
        for listener in self._listeners:
            listener.put_nowait(Pass(work.key, outcome, seconds, work.reasons))


def _may_be_own_doing(work: Work[Key]) -> bool:
    """Whether a reconcile may come of those before it, and not just of what happens to other objects.

    An object that thousands of others belong to is busy for a good reason.
    """
    for reason in work.reasons:
        if reason.key is None or (reason.what == "updated" and reason.key == work.key):
            return True
    return not work.reasons


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception as worse:
        return f"its message cannot be told ({type(worse).__name__})"


class ReconcileTimeout(Exception):
    """A pass took longer than the controller allows."""


_RETRY = Reason("retry", "after an error", None)
_REQUEUE = Reason("requeue", "asked for", None)
_REQUEUE_AFTER = Reason("requeue_after", "asked for", None)
_CONFLICT = Reason("retry", "after a conflict", None)
