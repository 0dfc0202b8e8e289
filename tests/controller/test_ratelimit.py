from __future__ import annotations

import asyncio

import pytest

from kubewright.controller.ratelimit import Bucket, ExponentialBackoff, MaxOf
from kubewright.testing.virtual_time import run_virtual


def test_backoff_doubles_from_5_ms_up_to_1000_s() -> None:
    backoff = ExponentialBackoff()

    delays = [backoff.delay("a") for _ in range(20)]

    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[17:] == [0.005 * 2**17, 1000.0, 1000.0]


def test_backoff_of_a_key_that_never_succeeds_stays_at_the_limit() -> None:
    backoff = ExponentialBackoff(1.0, 60.0)

    assert [backoff.delay("a") for _ in range(3000)][-1] == 60.0
    assert backoff.failures("a") == 3000


def test_backoff_of_one_key_does_not_delay_another() -> None:
    backoff = ExponentialBackoff()
    for _ in range(10):
        backoff.delay("a")

    assert backoff.delay("b") == 0.005
    assert (backoff.failures("a"), backoff.failures("b"), backoff.failures("c")) == (10, 1, 0)


def test_forget_resets_the_backoff_and_releases_memory() -> None:
    backoff = ExponentialBackoff()
    empty = vars(backoff)["_failures"].copy()
    for key in range(100):
        backoff.delay(key)
        backoff.delay(key)

    for key in range(100):
        backoff.forget(key)

    assert vars(backoff)["_failures"] == empty
    assert (backoff.failures(7), backoff.delay(7)) == (0, 0.005)


def test_forgetting_an_unknown_key_is_fine() -> None:
    ExponentialBackoff().forget("a")


def test_a_bucket_allows_its_burst_at_once_and_then_its_rate() -> None:
    async def main() -> list[float]:
        bucket = Bucket(rate=10, burst=3)
        return [bucket.delay(key) for key in ("a", "a", "b", "c", "a", "b")]

    assert run_virtual(main) == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2, 0.3])


def test_a_bucket_fills_up_again_but_never_above_its_burst() -> None:
    async def main() -> list[float]:
        bucket = Bucket(rate=10, burst=2)
        bucket.delay("a")
        bucket.delay("a")
        await asyncio.sleep(100)
        return [bucket.delay("a") for _ in range(3)]

    assert run_virtual(main) == pytest.approx([0.0, 0.0, 0.1])


def test_a_bucket_knows_no_keys() -> None:
    async def main() -> None:
        bucket = Bucket(rate=1, burst=1)
        bucket.delay("a")
        bucket.forget("a")

        assert bucket.failures("a") == 0
        assert bucket.delay("a") == pytest.approx(1.0)

    run_virtual(main)


def test_the_longest_delay_holds_and_every_limiter_counts() -> None:
    fast, slow = ExponentialBackoff(1.0, 100.0), ExponentialBackoff(5.0, 6.0)
    both = MaxOf(fast, slow)

    assert [both.delay("a") for _ in range(4)] == [5.0, 6.0, 6.0, 8.0]
    assert (fast.failures("a"), slow.failures("a"), both.failures("a")) == (4, 4, 4)
    both.forget("a")
    assert (fast.failures("a"), slow.failures("a"), both.failures("a")) == (0, 0, 0)


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="0 < base <= limit, not base=2 and limit=1"):
        ExponentialBackoff(2.0, 1.0)
    with pytest.raises(ValueError, match="not base=0 and"):
        ExponentialBackoff(0.0)
    with pytest.raises(ValueError, match="rate > 0 and burst >= 1, not rate=0 and burst=100"):
        Bucket(0.0)
    with pytest.raises(ValueError, match="burst=0"):
        Bucket(burst=0)
    with pytest.raises(ValueError, match="at least one"):
        MaxOf()
