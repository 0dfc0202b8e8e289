from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest

from kubewright.testing.clock import VirtualClock


def test_time_stands_still_until_it_is_advanced() -> None:
    clock = VirtualClock(datetime(2030, 1, 1, tzinfo=UTC))

    assert clock.now() == clock.now() == datetime(2030, 1, 1, tzinfo=UTC)
    clock.advance(90)
    assert clock.now() == datetime(2030, 1, 1, 0, 1, 30, tzinfo=UTC)


def test_callbacks_are_called_in_the_order_they_are_due_each_at_its_own_time() -> None:
    clock = VirtualClock()
    start, calls = clock.now(), list[tuple[str, timedelta]]()

    def call(name: str) -> None:
        calls.append((name, clock.now() - start))

    for name, seconds in (("late", 5.0), ("early", 1.0), ("same", 1.0), ("too late", 11.0)):
        clock.call_later(seconds, partial(call, name))

    clock.advance(10)

    second = timedelta(seconds=1)
    assert calls == [("early", second), ("same", second), ("late", 5 * second)]
    assert clock.now() - start == 10 * second


def test_a_callback_may_schedule_another_within_the_same_advance() -> None:
    clock, calls = VirtualClock(), list[int]()

    def again() -> None:
        calls.append(len(calls))
        clock.call_later(3, again)

    clock.call_later(3, again)
    clock.advance(10)

    assert calls == [0, 1, 2]


def test_a_cancelled_callback_is_not_called() -> None:
    clock, calls = VirtualClock(), list[str]()
    timer = clock.call_later(1, lambda: calls.append("made"))

    timer.cancel()
    clock.advance(2)
    timer.cancel()

    assert calls == []


def test_a_start_in_another_zone_is_converted_to_utc() -> None:
    clock = VirtualClock(datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))))

    assert clock.now().isoformat() == "2030-01-01T10:00:00+00:00"


def test_wrong_uses_are_errors() -> None:
    with pytest.raises(ValueError, match="2030-01-01T00:00:00 has none"):
        VirtualClock(datetime(2030, 1, 1))
    with pytest.raises(ValueError, match=r"time does not go back: advance\(-1\)"):
        VirtualClock().advance(-1)
