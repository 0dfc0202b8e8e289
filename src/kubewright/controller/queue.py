"""The work queue: the keys that are to be reconciled, and when.

    queue.add(key)                    # an event of it
    work = await queue.get()
    ...                               # reconcile work.key
    queue.forget(work.key)            # it succeeded; queue.add_failed(work.key) when it did not
    queue.done(work.key)              # always, and last; with pause= it is not handed out for a while

A key is in the queue once, however often it was added, and is never handed out a second time before `done`. The queue
belongs to one event loop and has no locks and no tasks; all delays share one heap and one timer of the loop.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from itertools import islice
from operator import itemgetter
from typing import Generic, TypeVar

from msgspec import Struct

from kubewright.api.kinds import ObjectKey
from kubewright.controller.arguments import check_number
from kubewright.controller.ratelimit import ExponentialBackoff, RateLimiter
from kubewright.controller.statistics import QueueStatistics

Key = TypeVar("Key", bound=Hashable)

# While a lower priority waits, one pick in so many goes to it.
_FAIR_SHARE = 16
_REASONS_KEPT = 5
# Levels of priority that may stay when they are empty; a program that uses more than these pays for sorting them.
_LEVELS_KEPT = 16
_NOW = -math.inf
_NEVER = math.inf
# Event loops fire timers a little early (asyncio by its clock's resolution) or round them (uvloop to milliseconds).
_EARLY = 1e-6
_NEXT_TRY = 1e-3


class QueueClosed(Exception):
    """The queue was closed, and nothing that is due is left in it."""


class Reason(Struct, frozen=True, gc=False):
    """Why a key was enqueued, for log lines: `Reason("Pod", "updated", ObjectKey("shop", "web-0"))`."""

    kind: str
    what: str
    key: ObjectKey | None

    def __str__(self) -> str:
        return f"{self.kind} {self.what}" if self.key is None else f"{self.kind} {self.what} {self.key}"


class Work(Struct, Generic[Key], frozen=True):
    """A key to reconcile now. `waited` is in seconds since it was due, `attempt` is how often it has failed so far.

    `reasons` are the first distinct ones since the key was last handed out; `more_reasons` counts the adds whose reason
    was not kept.
    """

    key: Key
    priority: int
    waited: float
    attempt: int
    reasons: tuple[Reason, ...]
    more_reasons: int


class _Item(Struct, Generic[Key]):
    """The state of a key, from its first add until it is neither due nor delayed any more.

    It is handed out at the earliest of three moments: `due` (given by add), `quiet` (the end of a debounced burst) and
    `retry` (the end of its back-off). They are kept apart because `forget` cancels the last one only. Until `held`,
    the end of a pause, it is not handed out, whatever is due.
    """

    key: Key
    priority: int  # of the adds
    due: float = _NEVER
    since: float = _NEVER  # when it became due; _NEVER as long as it is not
    level: int = 0  # the priority it waits at or was last handed out with
    queued: bool = False
    reasons: tuple[Reason, ...] = ()
    more_reasons: int = 0
    quiet: float = _NEVER
    quiet_limit: float = _NEVER
    retry: float = _NEVER
    retry_priority: int = 0
    retry_reason: Reason | None = None
    held: float = _NOW
    timer: tuple[float, int, _Item[Key]] | None = None  # its position in the heap


class Queue(Generic[Key]):
    """Hands out keys, the largest priority first and first come, first served within a priority.

    Lower priorities are not starved: after 15 picks of higher ones, one goes to the one whose first key has waited
    longest. With `debounce`, an added key waits until it was not added for so many seconds, but never longer than
    `debounce_limit` (ten times as long unless given); delays given by `after`, and retries, are not debounced.
    """

    def __init__(
        self, limiter: RateLimiter | None = None, *, debounce: float = 0.0, debounce_limit: float | None = None
    ) -> None:
        check_number(debounce, "debounce")
        if debounce_limit is None:
            debounce_limit = 10 * debounce
        if not 0 <= debounce <= debounce_limit:
            raise ValueError(
                f"a queue needs 0 <= debounce <= debounce_limit, not debounce={debounce:g} and "
                f"debounce_limit={debounce_limit:g}"
            )
        self._limiter = ExponentialBackoff() if limiter is None else limiter
        self._debounce = debounce
        self._debounce_limit = debounce_limit
        self._items: dict[Key, _Item[Key]] = {}
        self._running: dict[Key, float] = {}
        # OrderedDict, because taking the first of a dict over and over costs more the more was taken.
        self._levels: dict[int, OrderedDict[Key, _Item[Key]]] = {0: OrderedDict()}
        self._descending = [self._levels[0]]
        self._ready = 0
        self._passed_over = 0
        self._heap: list[tuple[float, int, _Item[Key]]] = []
        self._pushes = 0
        self._stale = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = _NEVER
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._now: Callable[[], float] = self._first_now
        self.statistics = QueueStatistics(self._running.values(), lambda: self._now())

    # Adding

    def add(self, key: Key, *, priority: int = 0, after: float = 0.0, reason: Reason | None = None) -> None:
        """Enqueue `key`, to be handed out in `after` seconds at the earliest.

        A key that waits already keeps the larger priority and the earlier time. A key that runs comes once more after
        `done`. Once the queue is closed this does nothing.
        """
        if self._closed:
            return
        if after > 0.0:
            self.statistics.retries += 1
        item = self._items.get(key)
        if item is not None and item.due == _NOW and priority <= item.priority:
            if reason is not None and reason not in item.reasons:
                _keep(item, reason)
            return
        now = self._now()
        if item is None:
            if after <= 0.0 and not self._debounce:
                # A shortcut for by far the most common case.
                self._items[key] = item = _Item(key, priority, _NOW, now, priority, True)
                if reason is not None:
                    item.reasons = (reason,)
                self.statistics.adds += 1
                self._let_wait(item)
                return
            item = self._items[key] = _Item(key, priority)
        elif item.due == item.quiet == _NEVER or priority > item.priority:
            item.priority = priority
        if reason is not None and reason not in item.reasons:
            _keep(item, reason)
        if after > 0.0:
            item.due = min(item.due, now + after)
        elif self._debounce and item.since == _NEVER:
            if item.quiet == _NEVER:
                item.quiet_limit = now + self._debounce_limit
            item.quiet = min(now + self._debounce, item.quiet_limit)
        else:
            item.due = _NOW
        self._reschedule(item, now)

    def add_failed(self, key: Key, *, priority: int | None = None, reason: Reason | None = None) -> float:
        """Requeue `key`, which failed, after its back-off. Returns the seconds until then.

        To be called before `done`.

        When an event made it run before an earlier back-off was over, that one still holds: its end stays where it is,
        and the rate limiter is not called. The retry has the priority of the run that failed unless given another.
        """
        if self._closed:
            return 0.0
        now = self._now()
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = _Item(key, 0)
        if item.retry == _NEVER or (item.retry <= now and not item.queued):
            item.retry = now + self._limiter.delay(key)
            self.statistics.retries += 1
        item.retry_priority = item.level if priority is None else priority
        item.retry_reason = reason
        delay = max(item.retry - now, 0.0)
        self._reschedule(item, now)
        return delay

    def forget(self, key: Key) -> None:
        """`key` succeeded: its back-off starts from the beginning, and a retry that is still to come is cancelled."""
        self._limiter.forget(key)
        item = self._items.get(key)
        if item is None or item.retry == _NEVER:
            return
        item.retry = _NEVER
        now = self._now()
        if item.queued and min(item.due, item.quiet) > now:
            del self._levels[item.level][key]
            self._ready -= 1
            item.queued = False
            item.since = _NEVER
        if not item.queued:
            self._reschedule(item, now)

    def close(self) -> None:
        """Accept no further keys, and drop those that are not due yet.

        What is due is still handed out; once nothing is, `get` raises `QueueClosed` and does not wait for keys that
        run. They may finish, and one that was added while it ran is handed out after its `done`.
        """
        if self._closed:
            return
        self._closed = True
        now = self._now()
        for item in list(self._items.values()):
            item.timer = None
            if item.due > now:
                item.due = _NEVER
            if item.quiet > now:
                item.quiet = _NEVER
            if item.retry != _NOW:
                item.retry = _NEVER
            if not item.queued and item.key not in self._running:
                del self._items[item.key]
        self._heap.clear()
        self._tidy()
        # All of them, whatever is ready: a getter may have been woken for that already, and nothing will wake the rest.
        for _ in range(len(self._getters)):
            self._wake()

    # Handing out

    async def get(self) -> Work[Key]:
        """The next key that is due. Does not yield to other tasks when there is one."""
        while not self._ready:
            if self._closed:
                raise QueueClosed("the queue is closed")
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except BaseException:
                if getter in self._getters:
                    self._getters.remove(getter)
                elif len(self) and not getter.cancelled():
                    # It was woken for a key that it will not take, so another getter is woken.
                    self._wake()
                raise
        item = self._pick()
        key = item.key
        now = self._now()
        waited = now - item.since
        if item.retry <= now:
            item.retry = _NEVER
            if item.retry_reason is not None and item.retry_reason not in item.reasons:
                _keep(item, item.retry_reason)
        work = Work(key, item.level, waited, self._limiter.failures(key), item.reasons, item.more_reasons)
        item.queued = False
        item.since = item.due = item.quiet = _NEVER
        item.reasons = ()
        item.more_reasons = 0
        self._running[key] = now
        self.statistics.queue_duration.observe(waited)
        return work

    def done(self, key: Key, *, pause: float = 0.0) -> None:
        """The run of `key` has ended, whatever its outcome. When it was added meanwhile, it is handed out once more.

        With `pause` it is not handed out for so many seconds, whenever it is added. That counts neither as work nor as
        waiting.
        """
        started = self._running.pop(key, None)
        if started is None:
            raise ValueError(f"done({key!r}) without get: this key is not running")
        now = self._now()
        self.statistics.work_duration.observe(now - started)
        item = self._items[key]
        if pause > 0.0 and not self._closed:
            item.held = now + pause
            if item.since != _NEVER:
                item.since = item.held
            self._reschedule(item, now)
        elif item.due == item.quiet == item.retry == _NEVER and item.timer is None:
            del self._items[key]
        else:
            self._reschedule(item, now)

    # Inspection

    def __len__(self) -> int:
        """The number of keys that are due and wait."""
        return self._ready

    def depth(self) -> dict[int, int]:
        """The number of keys that are due and wait, by priority; 0 for a priority that was used lately."""
        return {priority: len(level) for priority, level in sorted(self._levels.items(), reverse=True)}

    def running(self) -> dict[Key, float]:
        """The keys that are handed out and not done, with the time of the loop's clock since when."""
        return dict(self._running)

    def delayed(self) -> dict[Key, float]:
        """The keys that are not due yet or paused, with the time of the loop's clock when that is over."""
        # Not from the heap: the time of a debounced key is brought up to date there only when its timer fires.
        found: dict[Key, float] = {}
        for key, item in self._items.items():
            if item.timer is not None:
                when = min(item.due, item.quiet, _NEVER if key in self._running else item.retry)
                found[key] = max(when, item.held) if when < _NEVER else item.held
        return found

    def failed(self) -> set[Key]:
        """The keys that have failed and are going to be retried."""
        return {key for key, item in self._items.items() if item.retry < _NEVER}

    def snapshot(self, limit: int = 100) -> dict[str, object]:
        """The queue as plain data, for the debug endpoint. Of each sort the first `limit` keys are listed."""
        now = self._now()
        due = islice((item for level in self._descending for item in level.values()), limit)
        running = sorted(self._running.items(), key=itemgetter(1))
        delayed = sorted(self.delayed().items(), key=itemgetter(1))
        return {
            "closed": self._closed,
            "counts": {"due": self._ready, "running": len(running), "delayed": len(delayed)},
            "due": [
                {
                    "key": str(item.key),
                    "priority": item.level,
                    "waited_seconds": now - item.since,
                    "reasons": [str(reason) for reason in item.reasons],
                    "more_reasons": item.more_reasons,
                }
                for item in due
            ],
            "running": [
                {"key": str(key), "seconds": now - started, "comes_again": self._items[key].since < _NEVER}
                for key, started in running[:limit]
            ],
            "delayed": [
                {"key": str(key), "in_seconds": when - now, "failures": self._limiter.failures(key)}
                for key, when in delayed[:limit]
            ],
        }

    # Implementation

    def _reschedule(self, item: _Item[Key], now: float) -> None:
        """Move a key to its present state: due, under the timer, or forgotten."""
        running = item.key in self._running
        added = next_due = min(item.due, item.quiet)
        # While a key runs, the end of its back-off is ignored: the run may yet succeed.
        if item.retry < next_due and not running:
            next_due = item.retry
        if item.held > now + _EARLY and (next_due < item.held or next_due == _NEVER):
            # Kept until then, even when it is not due at all so far.
            next_due = item.held
        if next_due == _NEVER:
            if item.timer is not None:
                self._unschedule(item)
            if not running:
                del self._items[item.key]
        elif next_due > now + _EARLY:
            if item.timer is None or next_due < item.timer[0]:
                self._schedule(item, next_due)
        else:
            if item.timer is not None:
                self._unschedule(item)
            if added <= now + _EARLY:
                item.due = _NOW
            if item.since == _NEVER:
                item.since = now
                self.statistics.adds += 1
            if not running:
                if item.retry <= now + _EARLY:
                    item.retry = _NOW
                self._enqueue(item)

    def _enqueue(self, item: _Item[Key]) -> None:
        """Let a key that is due wait at the largest priority that anything pending gives it."""
        priority = item.priority if min(item.due, item.quiet) < _NEVER else item.retry_priority
        if item.retry < _NEVER and item.retry_priority > priority:
            priority = item.retry_priority
        if not item.queued:
            item.queued = True
            item.level = priority
            self._let_wait(item)
        elif priority > item.level:
            del self._levels[item.level][item.key]
            item.level = priority
            self._level(priority)[item.key] = item

    def _let_wait(self, item: _Item[Key]) -> None:
        self._level(item.level)[item.key] = item
        self._ready += 1
        if self._getters:
            self._wake()

    def _level(self, priority: int) -> OrderedDict[Key, _Item[Key]]:
        level = self._levels.get(priority)
        if level is not None:
            return level
        if len(self._levels) >= _LEVELS_KEPT:
            self._levels = {number: level for number, level in self._levels.items() if level}
        level = self._levels[priority] = OrderedDict()
        self._descending = [self._levels[number] for number in sorted(self._levels, reverse=True)]
        return level

    def _pick(self) -> _Item[Key]:
        """Take the next key out of its level."""
        self._ready -= 1
        if len(self._descending) == 1:
            return self._descending[0].popitem(last=False)[1]
        level, *lower = [level for level in self._descending if level]
        self._passed_over = self._passed_over + 1 if lower else 0
        if self._passed_over == _FAIR_SHARE:
            self._passed_over = 0
            level = min(lower, key=_waits_since)
        return level.popitem(last=False)[1]

    def _wake(self) -> None:
        """Wake one getter."""
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _schedule(self, item: _Item[Key], when: float) -> None:
        if item.timer is not None:
            self._stale += 1
        self._pushes += 1
        item.timer = (when, self._pushes, item)
        heapq.heappush(self._heap, item.timer)
        self._tidy()

    def _unschedule(self, item: _Item[Key]) -> None:
        item.timer = None
        self._stale += 1
        self._tidy()

    def _tidy(self) -> None:
        """Keep the loop's timer at the first time in the heap, and stale entries of the heap below half of it."""
        heap = self._heap
        if self._stale > len(heap) // 2:
            heap[:] = [entry for entry in heap if entry[2].timer is entry]
            heapq.heapify(heap)
            self._stale = 0
        if self._timer is not None and (not heap or heap[0][0] < self._timer_at):
            self._timer.cancel()
            self._timer = None
        if heap and self._timer is None:
            self._set_timer(heap[0][0])

    def _set_timer(self, when: float) -> None:
        self._timer_at = when
        self._timer = asyncio.get_running_loop().call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._now()
        if now + _EARLY < self._timer_at:
            # uvloop rounds to milliseconds, also down. An immediate retry would spin until then.
            self._set_timer(max(self._timer_at, now + _NEXT_TRY))
            return
        heap = self._heap
        while heap and heap[0][0] <= now + _EARLY:
            entry = heapq.heappop(heap)
            item = entry[2]
            if item.timer is entry:
                item.timer = None
                self._reschedule(item, now)
            else:
                self._stale -= 1
        self._tidy()

    def _first_now(self) -> float:
        # A queue may be made before the loop runs in which it is used.
        self._now = asyncio.get_running_loop().time
        return self._now()


def _waits_since(level: OrderedDict[Key, _Item[Key]]) -> float:
    return next(iter(level.values())).since


def _keep(item: _Item[Key], reason: Reason) -> None:
    if len(item.reasons) < _REASONS_KEPT:
        item.reasons = (*item.reasons, reason)
    else:
        item.more_reasons += 1
