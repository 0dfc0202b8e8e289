"""A token bucket: at most so many at once, and so many per second on average."""

from __future__ import annotations

import asyncio

_ROUNDING = 1e-6  # tokens; a clock's last digits must not refuse what is due


class TokenBucket:
    """Holds up to `burst` tokens, is full at first, and gains `rate` per second.

    Guarantee: no more than `burst` + `rate` x t tokens are for any t seconds. `now` is the time in seconds by any one
    clock, usually the event loop's; a clock that goes backwards neither adds nor takes tokens.
    """

    __slots__ = ("_burst", "_filled_at", "_rate", "_tokens")

    def __init__(self, rate: float, burst: int = 1) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs rate > 0 and burst >= 1, not rate={rate:g} and burst={burst}")
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)  # below 0 by the tokens that are reserved and not there yet
        self._filled_at: float | None = None

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        self._fill(now)
        if self._tokens < 1 - _ROUNDING:
            return False
        self._tokens -= 1
        return True

    def reserve(self, now: float) -> float:
        """Take the next token, and return the seconds until it is available."""
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    async def acquire(self) -> None:
        """Take the next token, and wait until it is available, by the event loop's clock. First come, first served."""
        delay = self.reserve(asyncio.get_running_loop().time())
        if delay > 0:
            await asyncio.sleep(delay)

    def _fill(self, now: float) -> None:
        if self._filled_at is not None and now > self._filled_at:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
