"""An optional limit on how fast a client asks.

Off unless asked for: API servers protect themselves (priority and fairness), and a client limit mostly hides latency.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class RateLimit:
    """At most `burst` requests at once and `per_second` on average. Waiters are served in order of arrival."""

    def __init__(
        self,
        per_second: float,
        burst: int = 1,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs per_second > 0 and burst >= 1, not {per_second} and {burst}")
        self._interval = 1.0 / per_second
        self._slack = (burst - 1) * self._interval
        self._clock = clock
        self._sleep = sleep
        self._next = clock() - self._slack

    async def wait(self) -> None:
        """Return when the next request may go out."""
        now = self._clock()
        mine = max(self._next, now - self._slack)
        self._next = mine + self._interval
        if mine > now:
            await self._sleep(mine - now)
