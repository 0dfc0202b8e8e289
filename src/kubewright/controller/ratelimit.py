"""Back-off for retried keys.

A rate limiter answers one question: how long must this key wait before its next attempt?
It never sleeps and holds no timers; the queue owns time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Protocol


class RateLimiter(Protocol):
    """Decides how long a failed key waits. Any object with these three methods will do."""

    def delay(self, key: Hashable) -> float:
        """Seconds until `key` may run again. Every call counts as one more failure of `key`."""

    def forget(self, key: Hashable) -> None:
        """`key` succeeded: its next failure starts from the beginning."""

    def failures(self, key: Hashable) -> int:
        """How often `key` has failed since it was last forgotten. 0 where nothing is kept per key."""


class ExponentialBackoff:
    """5 ms, 10 ms, 20 ms … 1000 s per key, as controller-runtime's default.

    Guarantee: two keys never influence each other, and memory is released by `forget`.
    """

    def __init__(self, base: float = 0.005, limit: float = 1000.0) -> None:
        if not 0 < base <= limit:
            raise ValueError(f"an exponential back-off needs 0 < base <= limit, not base={base:g} and limit={limit:g}")
        self._base = base
        self._limit = limit
        self._failures: dict[Hashable, int] = {}

    def delay(self, key: Hashable) -> float:
        """`base`, and twice as long after every further failure, up to `limit`."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # A key that has failed for weeks must not overflow a float. Long before this number any limit is reached.
        return min(self._base * 2.0 ** min(failures, 1000), self._limit)

    def forget(self, key: Hashable) -> None:
        """The next delay of `key` is `base` again."""
        self._failures.pop(key, None)

    def failures(self, key: Hashable) -> int:
        """How many delays `key` has been given since it was last forgotten."""
        return self._failures.get(key, 0)


class Bucket:
    """10 retries a second over all keys, 100 at once: the overall limit of client-go's default.

    Guarantee: of the moments it gives out, no more than `burst` + `rate` x t lie within any t seconds. It knows no
    keys: all of them share it.
    """

    def __init__(self, rate: float = 10.0, burst: int = 100) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"a bucket needs rate > 0 and burst >= 1, not rate={rate:g} and burst={burst}")
        self._interval = 1.0 / rate
        self._slack = (burst - 1) * self._interval
        self._next: float | None = None

    def delay(self, key: Hashable) -> float:
        """Seconds until the next token is there, which is then taken."""
        now = asyncio.get_running_loop().time()
        full = now - self._slack
        mine = full if self._next is None else max(self._next, full)
        self._next = mine + self._interval
        return max(mine - now, 0.0)

    def forget(self, key: Hashable) -> None:
        """Nothing: no key is known."""

    def failures(self, key: Hashable) -> int:
        """0: no key is known."""
        return 0


class MaxOf:
    """The longest of the delays that several limiters give. Each of them counts every failure."""

    def __init__(self, *limiters: RateLimiter) -> None:
        if not limiters:
            raise ValueError("MaxOf needs at least one rate limiter")
        self._limiters = limiters

    def delay(self, key: Hashable) -> float:
        """The longest delay."""
        # A list, so that every limiter is asked and counts.
        return max([limiter.delay(key) for limiter in self._limiters])

    def forget(self, key: Hashable) -> None:
        """All of them forget `key`."""
        for limiter in self._limiters:
            limiter.forget(key)

    def failures(self, key: Hashable) -> int:
        """The largest number that any of them has counted."""
        return max([limiter.failures(key) for limiter in self._limiters])
