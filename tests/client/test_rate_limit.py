from __future__ import annotations

import pytest

from kubewright.client.rate_limit import RateLimit


class Clock:
    """Time that passes only when somebody sleeps, or the test says so."""

    def __init__(self) -> None:
        self.now = 50.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


async def test_requests_are_spread_evenly_over_time() -> None:
    clock = Clock()
    limit = RateLimit(per_second=4, clock=clock, sleep=clock.sleep)
    for _ in range(3):
        await limit.wait()

    assert clock.slept == [0.25, 0.25]


async def test_a_burst_goes_out_at_once() -> None:
    clock = Clock()
    limit = RateLimit(per_second=8, burst=5, clock=clock, sleep=clock.sleep)
    for _ in range(5):
        await limit.wait()
    assert clock.slept == []

    await limit.wait()
    assert clock.slept == [0.125]


async def test_idle_time_gives_back_a_burst_and_not_more() -> None:
    clock = Clock()
    limit = RateLimit(per_second=8, burst=2, clock=clock, sleep=clock.sleep)
    clock.now += 3600
    for _ in range(3):
        await limit.wait()

    assert clock.slept == [0.125]


async def test_waiters_are_served_in_order_of_arrival() -> None:
    asked: list[float] = []

    async def sleep(seconds: float) -> None:
        asked.append(seconds)

    limit = RateLimit(per_second=1, clock=lambda: 50.0, sleep=sleep)
    for _ in range(4):
        await limit.wait()

    assert asked == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_limit_that_lets_nothing_through_is_refused(per_second: float, burst: int) -> None:
    with pytest.raises(ValueError, match=f"not {per_second} and {burst}"):
        RateLimit(per_second, burst)
