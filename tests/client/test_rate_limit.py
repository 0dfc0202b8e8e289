from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kubewright.client.rate_limit import RateLimit

if TYPE_CHECKING:
    from tests.client.conftest import VirtualTime


def _times(virtual_time: VirtualTime, limit: RateLimit, count: int, *, idle: float = 0.0) -> list[float]:
    """When each of `count` requests goes out that are made one after the other, `idle` seconds after a first one."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        if idle:
            await limit.wait()
            await asyncio.sleep(idle)
        start, times = loop.time(), []
        for _ in range(count):
            await limit.wait()
            times.append(loop.time() - start)
        return times

    return virtual_time.run(main())


def test_requests_are_spread_evenly_over_time(virtual_time: VirtualTime) -> None:
    """By the loop's clock: in virtual time nobody waits."""
    assert _times(virtual_time, RateLimit(per_second=0.25), 4) == [0.0, 4.0, 8.0, 12.0]


def test_a_burst_goes_out_at_once(virtual_time: VirtualTime) -> None:
    assert _times(virtual_time, RateLimit(per_second=8, burst=5), 6) == [0.0] * 5 + [0.125]


def test_idle_time_gives_back_a_burst_and_not_more(virtual_time: VirtualTime) -> None:
    assert _times(virtual_time, RateLimit(per_second=8, burst=2), 3, idle=3600) == [0.0, 0.0, 0.125]


def test_waiters_are_served_in_order_of_arrival(virtual_time: VirtualTime) -> None:
    limit = RateLimit(per_second=1)
    served: list[tuple[int, float]] = []

    async def one(number: int) -> None:
        await limit.wait()
        served.append((number, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(*(one(number) for number in range(4)))

    virtual_time.run(main())
    assert served == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_limit_that_lets_nothing_through_is_refused(per_second: float, burst: int) -> None:
    with pytest.raises(ValueError, match=f"not {per_second} and {burst}"):
        RateLimit(per_second, burst)
