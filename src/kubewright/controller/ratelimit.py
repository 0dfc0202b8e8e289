"""Back-off for retried keys.

A rate limiter answers one question: how long must this key wait before its next attempt?
It never sleeps and holds no timers; the queue owns time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Protocol

from kubewright.client.backoff import Backoff
from kubewright.client.token_bucket import TokenBucket


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
        self._backoff = Backoff(base, limit)
        self._failures: dict[Hashable, int] = {}

    def delay(self, key: Hashable) -> float:
        """`base`, and twice as long after every further failure, up to `limit`."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return self._backoff.delay(failures)

    def forget(self, key: Hashable) -> None:
        """The next delay of `key` is `base` again."""
        self._failures.pop(key, None)

    def failures(self, key: Hashable) -> int:
        """The number of delays of `key` since it was last forgotten."""
        return self._failures.get(key, 0)


class Bucket:
    """10 retries a second over all keys, 100 at once: the overall limit of client-go's default.

    Guarantee: of the delays it returns, no more than `burst` + `rate` x t end within any t seconds. It knows no
    keys: all of them share it.
    """

    def __init__(self, rate: float = 10.0, burst: int = 100) -> None:
        self._tokens = TokenBucket(rate, burst)

    def delay(self, key: Hashable) -> float:
        """Seconds until the next token is available, which is taken."""
        return self._tokens.reserve(asyncio.get_running_loop().time())

    def forget(self, key: Hashable) -> None:
        """Does nothing: no key is known."""

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
        # A list, so that every limiter is called and counts.
        return max([limiter.delay(key) for limiter in self._limiters])

    def forget(self, key: Hashable) -> None:
        """All of them forget `key`."""
        for limiter in self._limiters:
            limiter.forget(key)

    def failures(self, key: Hashable) -> int:
        """The largest number that any of them has counted."""
        return max([limiter.failures(key) for limiter in self._limiters])
