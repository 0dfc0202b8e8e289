from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.client.token_bucket import TokenBucket

if TYPE_CHECKING:
    from tests.client.conftest import VirtualTime


def _times(virtual_time: VirtualTime, bucket: TokenBucket, count: int, *, idle: float = 0.0) -> list[float]:
    """When each of `count` requests goes out that are made one after the other, `idle` seconds after a first one."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        if idle:
            await bucket.acquire()
            await asyncio.sleep(idle)
        start, times = loop.time(), []
        for _ in range(count):
            await bucket.acquire()
            times.append(loop.time() - start)
        return times

    return virtual_time.run(main())


def test_requests_are_spread_evenly_over_time(virtual_time: VirtualTime) -> None:
    """By the loop's clock: in virtual time there is no wait."""
    assert _times(virtual_time, TokenBucket(rate=0.25), 4) == [0.0, 4.0, 8.0, 12.0]


def test_a_burst_goes_out_at_once(virtual_time: VirtualTime) -> None:
    assert _times(virtual_time, TokenBucket(rate=8, burst=5), 6) == [0.0] * 5 + [0.125]


def test_idle_time_restores_a_burst_and_no_more(virtual_time: VirtualTime) -> None:
    assert _times(virtual_time, TokenBucket(rate=8, burst=2), 3, idle=3600) == [0.0, 0.0, 0.125]


def test_waiters_are_served_in_order_of_arrival(virtual_time: VirtualTime) -> None:
    bucket = TokenBucket(rate=1)
    served: list[tuple[int, float]] = []

    async def one(number: int) -> None:
        await bucket.acquire()
        served.append((number, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(*(one(number) for number in range(4)))

    virtual_time.run(main())
    assert served == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_lets_nothing_through_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match=f"not rate={rate} and burst={burst}"):
        TokenBucket(rate, burst)


def test_a_token_is_taken_only_if_it_is_there() -> None:
    bucket = TokenBucket(rate=1 / 300, burst=2)
    assert [bucket.take(1_700_000_000.123456) for _ in range(3)] == [True, True, False]
    assert not bucket.take(1_700_000_299.1)
    assert [bucket.take(1_700_000_300.123456) for _ in range(2)] == [True, False]


def test_a_clock_that_goes_backwards_adds_and_takes_nothing() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    assert bucket.take(1000.0)
    assert not bucket.take(10.0)
    assert bucket.take(11.0)


@given(st.lists(st.floats(0, 3), min_size=1, max_size=40), st.sampled_from([0.5, 1.0, 8.0]), st.integers(1, 5))
def test_no_more_tokens_than_burst_and_rate_allow_are_taken_within_any_time(
    steps: list[float], rate: float, burst: int
) -> None:
    bucket = TokenBucket(rate, burst)
    now, given_out = 0.0, []
    for step in steps:
        now += step
        given_out.append(now + bucket.reserve(now))
    for first, begin in enumerate(given_out):
        for last in range(first, len(given_out)):
            assert last - first + 1 <= burst + rate * (given_out[last] - begin) + 1e-6
