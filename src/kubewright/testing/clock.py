"""Virtual time: a clock that stands still until a test advances it.

    clock = VirtualClock()
    async with ControlPlane.embedded(clock=clock) as plane:
        ...
        clock.advance(3600)  # an hour later: tokens have expired, pods have gone through their stages

It is the `Clock` of an embedded control plane, of the server as well as of its controllers. Only `advance` moves
it, and requests take no virtual time.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """A clock for tests; callbacks that are due are called by `advance`, in the order in which they are due.

    During a callback the clock shows exactly its due time, and callbacks that it schedules are called, too, if they are
    due by the end of the advance.
    """

    def __init__(self, start: datetime = _START) -> None:
        if start.tzinfo is None:
            raise ValueError(f"a clock needs to know the time zone of its start, and {start.isoformat()} has none")
        self._now = start.astimezone(UTC)
        self._numbers = itertools.count()
        self._timers: list[tuple[datetime, int, VirtualTimer]] = []

    def now(self) -> datetime:
        """The present, in UTC."""
        return self._now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> VirtualTimer:
        """Call `callback` once when the clock has been advanced by that many seconds."""
        timer = VirtualTimer(callback)
        due = self._now + timedelta(seconds=max(seconds, 0.0))
        # Callbacks for the same moment are called in the order they were scheduled.
        heapq.heappush(self._timers, (due, next(self._numbers), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass, at once."""
        if seconds < 0:
            raise ValueError(f"time does not go back: advance({seconds:g})")
        end = self._now + timedelta(seconds=seconds)
        while self._timers and self._timers[0][0] <= end:
            due, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            timer.ring()
        self._now = end


class VirtualTimer:
    """A scheduled callback."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Cancel the callback. Cancelling twice, or too late, is fine."""
        self._callback = None

    def ring(self) -> None:
        """Call the callback, unless it was cancelled or called before."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()
