"""One reconcile, from the key that the queue hands out to what follows from it.

Whatever a reconciler returns or raises becomes an outcome, and one `match` says what an outcome means: for the queue,
for the metrics and for the log.

Guarantees: a reconcile that fails is retried with back-off; no exception of a reconciler ends anything but its own
reconcile. A reconcile that changed something or failed is logged with its duration and why it ran; one that had nothing
to do is logged at DEBUG alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from kubewright.api.errors import DecodeError, KubernetesError, explain_misuse
from kubewright.api.kinds import GroupVersionKind
from kubewright.cache.write_context import WriteCount, reconcile_priority, write_count
from kubewright.client.errors import Conflict
from kubewright.controller.cancelled import Cancelled
from kubewright.controller.context import ReconcileContext, current, new_reconcile_id
from kubewright.controller.hot_loop import HotLoops
from kubewright.controller.queue import Queue, Reason, Work
from kubewright.controller.reconcile import Attempt, ErrorHook, Result, TerminalError, checked_result
from kubewright.controller.statistics import ControllerStatistics

Key = TypeVar("Key", bound=Hashable)

QUIET_CONFLICTS = 5
"""So many lost races of a key in a row are retried without a report; further ones are errors like any other."""

_RECENT = 256  # keys whose last reconcile is kept for the debug endpoint

_DONE = Result()

_log = logging.getLogger(__name__)


class ReconcileTimeout(Exception):
    """A reconcile took longer than the controller allows."""


class LostRace(Struct, frozen=True):
    """An optimistic lock failed. The next reconcile sees what the other writer wrote."""

    error: Conflict


class GivenUp(Struct, frozen=True):
    """Retrying is pointless until the object changes."""

    error: Exception
    attempt: Attempt


class Failed(Struct, frozen=True):
    """Any other error. It is retried unless the attempt was the last one."""

    error: Exception
    attempt: Attempt


Outcome: TypeAlias = Result | LostRace | GivenUp | Failed


class FinishedReconcile(Struct, Generic[Key], frozen=True):
    """The outcome of one reconcile, its duration, and why it ran."""

    key: Key
    outcome: Result | Exception
    seconds: float
    reasons: tuple[Reason, ...]


class RecentReconcile(Struct, frozen=True):
    """A `FinishedReconcile` as it is kept: an error as text, as itself it keeps all objects of its reconcile alive."""

    outcome: Result | str
    seconds: float
    reasons: tuple[Reason, ...]


class ReconcileHandler(Generic[Key]):
    """Reconciles the keys of one controller."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[Key], Awaitable[Result | None]],
        queue: Queue[Key],
        statistics: ControllerStatistics,
        *,
        kind: GroupVersionKind | None,
        timeout: float | None,
        max_attempts: int | None,
        on_error: ErrorHook[Key] | None,
        slow_hot_loops: bool,
        quiet: bool,
        is_undecodable: Callable[[Key, DecodeError], bool],
        is_ending: Callable[[], bool],
    ) -> None:
        """`is_undecodable` says whether an error is about the reconciled object itself; `is_ending`, called for a
        cancellation, whether it is all workers that were cancelled.
        """
        self.recent: OrderedDict[Key, RecentReconcile] = OrderedDict()
        self._name = name
        self._reconcile = reconcile
        self._queue = queue
        self._statistics = statistics
        self._group, self._kind = (kind.group, kind.kind) if kind is not None else ("", "")
        self._timeout = timeout
        self._max_attempts = max_attempts
        self._on_error = on_error
        self._hot_loops: HotLoops[Key] | None = HotLoops() if slow_hot_loops else None
        self._write_level = logging.DEBUG if quiet else logging.INFO
        self._is_undecodable = is_undecodable
        self._is_ending = is_ending
        # Counted here: limiters need not count, and are not called when a key fails again before its back-off is over.
        self._failures: dict[Key, int] = {}
        self._lost_races: dict[Key, int] = {}
        self._listeners: set[asyncio.Queue[FinishedReconcile[Key]]] = set()

    async def handle(self, work: Work[Key]) -> None:
        """Reconcile a key and handle its outcome. Raises `BaseException`s, and the cancellation of all workers."""
        key, statistics = work.key, self._statistics
        time = asyncio.get_running_loop().time
        causes = statistics.reasons
        for reason in work.reasons:
            cause = f"{reason.kind} {reason.what}"
            causes[cause] = causes.get(cause, 0) + 1
        statistics.active += 1
        writes = WriteCount()
        counting, prioritized = write_count.set(writes), reconcile_priority.set(work.priority)
        reconciling = current.set(self._context(work))
        outcome: Outcome
        seconds = pause = 0.0
        began = time()
        try:
            try:
                returned = await (self._reconcile(key) if self._timeout is None else self._timed(key))
                outcome = _DONE if returned is None else checked_result(returned)
            except asyncio.CancelledError as error:
                if self._is_ending():
                    raise
                cancelled = Cancelled("the reconcile, or something that it waited for, was cancelled from within")
                outcome = self._failure(key, cancelled.with_traceback(error.__traceback__))
            except Exception as error:
                outcome = self._failure(key, error)
            except BaseException:
                statistics.panics += 1
                raise
            finally:
                seconds = time() - began
            self._conclude(work, outcome, seconds, writes.value)
            if self._on_error is not None and isinstance(outcome, GivenUp | Failed):
                await self._notify(self._on_error, key, outcome)
            if self._hot_loops is not None and (writes.value or _may_be_own_doing(work)):
                pause = self._pause(self._hot_loops, work, writes)
        finally:
            current.reset(reconciling)
            reconcile_priority.reset(prioritized)
            write_count.reset(counting)
            statistics.active -= 1
            statistics.reconcile_time.observe(seconds)
            self._queue.done(key, pause=pause)
        self._remember(work, outcome, seconds)

    @asynccontextmanager
    async def reconciles(self) -> AsyncIterator[AsyncIterator[FinishedReconcile[Key]]]:
        """The reconciles that end while the block runs, as they end."""
        queue: asyncio.Queue[FinishedReconcile[Key]] = asyncio.Queue()
        self._listeners.add(queue)

        async def each() -> AsyncIterator[FinishedReconcile[Key]]:
            while True:
                yield await queue.get()

        try:
            yield each()
        finally:
            self._listeners.discard(queue)

    # From what happened to an outcome

    async def _timed(self, key: Key) -> Result | None:
        deadline = asyncio.timeout(self._timeout)
        try:
            async with deadline:
                return await self._reconcile(key)
        except TimeoutError:
            if not deadline.expired():
                raise
            self._statistics.timeouts += 1
            raise ReconcileTimeout(f"the reconcile took longer than {self._timeout:g} s") from None

    def _failure(self, key: Key, error: Exception) -> LostRace | GivenUp | Failed:
        explain_misuse(error)
        if isinstance(error, Conflict) and error.is_optimistic_lock:
            lost = self._lost_races[key] = self._lost_races.get(key, 0) + 1
            if lost <= QUIET_CONFLICTS:
                return LostRace(error)
        number = self._failures.get(key, 0) + 1
        if isinstance(error, TerminalError) or (isinstance(error, DecodeError) and self._is_undecodable(key, error)):
            return GivenUp(error, Attempt(number, is_last=True))
        is_last = self._max_attempts is not None and number >= self._max_attempts
        return Failed(error, Attempt(number, is_last))

    # From an outcome to queue, metrics and log

    def _conclude(self, work: Work[Key], outcome: Outcome, seconds: float, writes: int) -> None:
        key, queue, statistics = work.key, self._queue, self._statistics
        match outcome:
            case Result():
                if self._failures:
                    self._failures.pop(key, None)
                if self._lost_races:
                    self._lost_races.pop(key, None)
                delay = 0.0 if outcome.requeue_after is None else outcome.delay
                if delay > 0:
                    statistics.results["requeue_after"] += 1
                    queue.forget(key)
                    priority = work.priority if outcome.priority is None else outcome.priority
                    queue.add(key, after=delay, priority=priority, reason=_REQUEUE_AFTER)
                elif outcome.requeue:
                    statistics.results["requeue"] += 1
                    delay = queue.add_failed(key, priority=outcome.priority, reason=_REQUEUE)
                else:
                    statistics.results["success"] += 1
                    queue.forget(key)
                level = self._write_level if writes else logging.DEBUG
                if _log.isEnabledFor(level):
                    again = f", again in {_duration(delay)}" if delay > 0 else ""
                    # Not `_log.log`: to look for who logs takes as long as all else about this, the most common line.
                    args = _summary(work, seconds, writes), again
                    _log.handle(_log.makeRecord(_log.name, level, __file__, 0, "reconciled %s%s", args, None))
            case LostRace(error):
                statistics.results["requeue"] += 1
                statistics.conflicts += 1
                queue.add_failed(key, reason=_CONFLICT)
                level = self._write_level if writes else logging.DEBUG
                if _log.isEnabledFor(level):
                    _log.log(level, "reconcile lost a race %s: %s", _summary(work, seconds, writes), text_of(error))
            case GivenUp(error):
                statistics.results["error"] += 1
                statistics.errors += 1
                statistics.terminal_errors += 1
                self._forget(key)
                if _log.isEnabledFor(logging.ERROR):
                    summary = _summary(work, seconds, writes)
                    _log.error("reconcile failed %s, not retried until the next change: %s", summary, text_of(error))
            case Failed(error, attempt):
                statistics.results["error"] += 1
                statistics.errors += 1
                if attempt.is_last:
                    self._forget(key)
                    then = f"attempt {attempt.number} was the last until the next change"
                else:
                    self._failures[key] = attempt.number
                    delay = queue.add_failed(key, reason=_RETRY)
                    then = f"attempt {attempt.number}, again in {_duration(delay)}"
                if _log.isEnabledFor(logging.ERROR):
                    is_expected = isinstance(error, KubernetesError | ReconcileTimeout)
                    _log.error(
                        "reconcile failed %s, %s: %s",
                        _summary(work, seconds, writes),
                        then,
                        text_of(error) or type(error).__name__,
                        exc_info=None if is_expected else error,
                    )

    def _forget(self, key: Key) -> None:
        self._queue.forget(key)
        self._failures.pop(key, None)
        self._lost_races.pop(key, None)

    async def _notify(self, on_error: ErrorHook[Key], key: Key, outcome: GivenUp | Failed) -> None:
        try:
            pending = on_error(key, outcome.error, outcome.attempt)
            if pending is not None:
                await pending
        except asyncio.CancelledError:
            if self._is_ending():
                raise
            _log.exception("the error hook failed: something that it waited for was cancelled")
        except Exception:
            _log.exception("the error hook failed")

    def _pause(self, hot_loops: HotLoops[Key], work: Work[Key], writes: WriteCount) -> float:
        """Seconds to pause a key: more than 0 where each of its reconciles seems to cause the next."""
        # Writes that change nothing cause no event. They are part of a loop only if it asks for each reconcile itself.
        of_loop = writes.value or (writes.sent and any(reason.key is None for reason in work.reasons))
        pause = hot_loops.note(work.key, of_loop, asyncio.get_running_loop().time())
        if pause:
            self._statistics.hot_loops += 1
            _log.warning(
                "hot loop: reconciled over and over, many times a second; pausing it for %g s. %s",
                pause,
                "Does every reconcile write something that the server or another controller changes back?"
                if writes.value
                else "Is its requeue_after too short, or does a source send it because of its own reconciles?",
            )
        return pause

    def _context(self, work: Work[Key]) -> ReconcileContext:
        key: object = work.key
        namespace, name = key if isinstance(key, tuple) and len(key) == 2 else ("", str(key))
        return ReconcileContext(
            self._name, self._group, self._kind, namespace, name, new_reconcile_id(), work.reasons, self._statistics
        )

    def _remember(self, work: Work[Key], outcome: Outcome, seconds: float) -> None:
        key, recent = work.key, self.recent
        end: Result | Exception
        kept: Result | str
        if isinstance(outcome, Result):
            end = kept = outcome
        else:
            end = outcome.error
            kept = f"{type(end).__name__}: {text_of(end)}"
        recent[key] = RecentReconcile(kept, seconds, work.reasons)
        recent.move_to_end(key)
        if len(recent) > _RECENT:
            recent.popitem(last=False)
        for listener in self._listeners:
            listener.put_nowait(FinishedReconcile(key, end, seconds, work.reasons))


def _may_be_own_doing(work: Work[Key]) -> bool:
    """Whether a reconcile may be caused by earlier ones, and not only by events of other objects.

    The owner of thousands of objects is legitimately busy.
    """
    for reason in work.reasons:
        if reason.key is None or (reason.what == "updated" and reason.key == work.key):
            return True
    return not work.reasons


def _summary(work: Work[Key], seconds: float, writes: int) -> str:
    """`in 12 ms with 2 writes (Pod deleted shop/web-0)`."""
    reasons = [str(reason) if reason.key != work.key else f"{reason.kind} {reason.what}" for reason in work.reasons]
    if work.more_reasons:
        reasons.append(f"{work.more_reasons} more")
    written = f" with {writes} write{'s' if writes > 1 else ''}" if writes else ""
    why = f" ({', '.join(reasons)})" if reasons else ""
    return f"in {_duration(seconds)}{written}{why}"


def _duration(seconds: float) -> str:
    """`12 ms`, `1.5 s`, `60 min`, `72 d`: the largest unit of which there are two."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{round(seconds / unit, 1):g} {name}"
    return f"{round(seconds, 1):g} s"


def text_of(error: Exception) -> str:
    """The message of an error, also of one whose `__str__` fails."""
    try:
        return str(error)
    except Exception as worse:
        return f"its message cannot be shown ({type(worse).__name__})"


_RETRY = Reason("retry", "after an error", None)
_REQUEUE = Reason("requeue", "by the reconciler", None)
_REQUEUE_AFTER = Reason("requeue_after", "by the reconciler", None)
_CONFLICT = Reason("retry", "after a conflict", None)
