from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import cast

from kubewright.client.http.deadlines import GRANULARITY, Deadlines


class _Clock:
    """The two methods of an event loop that deadlines need, under control of the test."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: dict[_Timer, Callable[[], None]] = {}
        self.armed = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(self, when)
        self.timers[timer] = callback
        self.armed += 1
        return timer

    def advance(self, seconds: float, *, at_once: bool = False) -> None:
        """Let time pass; `at_once` as for a loop that is blocked all the while."""
        end = self.now + seconds
        if at_once:
            self.now = end
        while self.timers:
            timer = min(self.timers, key=lambda timer: timer.when)
            if timer.when > end:
                break
            self.now = max(self.now, timer.when)
            self.timers.pop(timer)()
        self.now = end


class _Timer:
    def __init__(self, clock: _Clock, when: float) -> None:
        self._clock = clock
        self.when = when

    def cancel(self) -> None:
        self._clock.timers.pop(self, None)


class _Item:
    def __init__(self, clock: _Clock) -> None:
        self._clock = clock
        self.expired_at = math.nan
        self.then: Callable[[], None] = lambda: None

    def expire(self) -> None:
        assert math.isnan(self.expired_at), "expired twice"
        self.expired_at = self._clock.now
        self.then()


def _deadlines(clock: _Clock) -> Deadlines:
    return Deadlines(cast(asyncio.AbstractEventLoop, clock))


def test_a_deadline_is_never_early_and_at_most_the_granularity_late() -> None:
    clock = _Clock()
    deadlines = _deadlines(clock)
    items = {_Item(clock): 100.0 + offset for offset in (5.0, 0.01, 0.05, 1.0, 0.3, 5.05)}
    for item, due in items.items():
        deadlines.add(item, due)
    clock.advance(10.0)
    for item, due in items.items():
        assert due <= item.expired_at <= due + GRANULARITY + 1e-9


def test_a_withdrawn_deadline_does_not_fire() -> None:
    clock = _Clock()
    deadlines = _deadlines(clock)
    item = _Item(clock)
    deadlines.add(item, 101.0)
    deadlines.discard(item)
    clock.advance(10.0)
    assert math.isnan(item.expired_at)


def test_an_item_that_expires_may_withdraw_another_that_is_due() -> None:
    clock = _Clock()
    deadlines = _deadlines(clock)
    first, second = _Item(clock), _Item(clock)
    first.then = lambda: deadlines.discard(second)
    deadlines.add(first, 101.0)
    deadlines.add(second, 101.0)
    clock.advance(10.0)
    assert not math.isnan(first.expired_at)
    assert math.isnan(second.expired_at)


def test_a_thousand_requests_with_the_same_timeout_touch_the_timer_once() -> None:
    clock = _Clock()
    deadlines = _deadlines(clock)
    for _ in range(1000):
        item = _Item(clock)
        deadlines.add(item, clock.now + 30.0)
        clock.now += 0.001
        deadlines.discard(item)
    assert clock.armed == 1


def test_the_timer_is_released_when_nothing_is_left() -> None:
    clock = _Clock()
    deadlines = _deadlines(clock)
    item = _Item(clock)
    deadlines.add(item, 101.0)
    deadlines.discard(item)
    clock.advance(10.0)
    assert not clock.timers

    deadlines.add(item, clock.now + 1.0)
    deadlines.close()
    assert not clock.timers


def test_a_blocked_loop_reads_its_sockets_before_anything_expires() -> None:
    """Otherwise a long computation makes every request under way fail, although the answers are here."""
    clock = _Clock()
    deadlines = _deadlines(clock)
    answered, unanswered = _Item(clock), _Item(clock)
    deadlines.add(answered, 101.0)
    deadlines.add(unanswered, 101.0)
    clock.advance(20.0, at_once=True)
    assert math.isnan(answered.expired_at)

    deadlines.discard(answered)
    clock.advance(1.0)
    assert math.isnan(answered.expired_at)
    assert not math.isnan(unanswered.expired_at)


def test_a_loop_that_is_blocked_again_and_again_does_not_postpone_for_ever() -> None:
    clock = _Clock()
    deadlines = _deadlines(clock)
    item = _Item(clock)
    deadlines.add(item, 101.0)
    clock.advance(20.0, at_once=True)
    clock.advance(20.0, at_once=True)
    assert not math.isnan(item.expired_at)
