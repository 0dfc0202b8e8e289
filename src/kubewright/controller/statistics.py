"""Counting durations without slowing down what is measured.

A histogram here is a list of numbers that a hot path increments. The names and labels that a monitoring system sees are
added when metrics are collected, not here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

# The buckets of controller-runtime's controller_runtime_reconcile_time_seconds.
# fmt: off
RECONCILE_BOUNDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0,
    60.0,
)
# fmt: on
# The buckets of its workqueue_queue_duration_seconds and workqueue_work_duration_seconds: 10 ns to 1000 s.
# They are made there by multiplication, which shows.
QUEUE_BOUNDS = (
    1e-8,
    1e-7,
    1e-6,
    9.999999999999999e-06,
    9.999999999999999e-05,
    0.001,
    0.01,
    0.1,
    1.0,
    10.0,
    100.0,
    1000.0,
)

_MAX_STEPS = 200
"""How many names and outcomes of steps are counted apart."""


class HistogramCounts:
    """How many observed values fall between which bounds.

    `counts[i]` are the values above `bounds[i - 1]` and up to and including `bounds[i]`; the last count, of which there
    is one more than bounds, is of the values above all bounds. `sum` is the sum of all values.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        if not bounds or any(not lower < upper for lower, upper in pairwise(bounds)):
            raise ValueError(f"the bounds of a histogram must be one or more increasing numbers, not {list(bounds)}")
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count `value`."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class ControllerStatistics:
    """Counters of one controller since it was made; plain numbers that are read when metrics are collected."""

    def __init__(self, workers: int) -> None:
        self.results = {"success": 0, "error": 0, "requeue": 0, "requeue_after": 0}
        """Reconciles by how they ended."""
        self.errors = 0
        self.terminal_errors = 0
        self.panics = 0
        """Reconciles that raised something other than an `Exception`, which ends the program, like a panic in Go."""
        self.timeouts = 0
        self.conflicts = 0
        self.hot_loops = 0
        self.reasons: dict[str, int] = {}
        """Reconciles by why they ran."""
        self.reconcile_time = HistogramCounts(RECONCILE_BOUNDS)
        self.workers = workers
        self.active = 0
        """Reconciles that are running."""
        self.steps: dict[tuple[str, str], HistogramCounts] = {}
        """Durations of the steps of reconciles, by name and outcome."""

    def observe_step(self, name: str, outcome: str, seconds: float) -> None:
        """Count a part of a reconcile that the metrics are to show by itself; very many together, as "other"."""
        histogram = self.steps.get((name, outcome))
        if histogram is None:
            # Actions of requests may be whatever their authors write.
            key = (name if len(self.steps) < _MAX_STEPS else "other", outcome)
            histogram = self.steps.setdefault(key, HistogramCounts(RECONCILE_BOUNDS))
        histogram.observe(seconds)


class QueueStatistics:
    """Figures of one queue since it was made: `adds` of keys that were not due already, `retries` after a back-off
    or a given time.

    `started` are the times at which the keys that run now were handed out, and `now` is the clock they were read from.
    """

    __slots__ = ("_now", "_started", "adds", "queue_duration", "retries", "work_duration")

    def __init__(self, started: Collection[float], now: Callable[[], float]) -> None:
        self.adds = 0
        self.retries = 0
        self.queue_duration = HistogramCounts(QUEUE_BOUNDS)
        self.work_duration = HistogramCounts(QUEUE_BOUNDS)
        self._started = started
        self._now = now

    def unfinished_seconds(self) -> float:
        """The total time that the keys that are running now have run."""
        return sum(self._now() - started for started in self._started)

    def longest_running_seconds(self) -> float:
        """The longest time that a key which runs now has run."""
        return self._now() - min(self._started) if self._started else 0.0
