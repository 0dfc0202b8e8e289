"""An optional limit on how fast a client asks.

Off unless asked for: API servers protect themselves (priority and fairness), and a client limit mostly hides latency.
"""

from __future__ import annotations

import asyncio
import math


class RateLimit:
    """At most `burst` requests at once and `per_second` on average. Waiters are served in order of arrival.

    Time is that of the event loop, of which there can be only one.
    """

    def __init__(self, per_second: float, burst: int = 1) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs per_second > 0 and burst >= 1, not {per_second} and {burst}")
        self._interval = 1.0 / per_second
        self._slack = (burst - 1) * self._interval
        self._next = -math.inf

    async def wait(self) -> None:
        """Return when the next request may go out."""
        now = asyncio.get_running_loop().time()
        mine = max(self._next, now - self._slack)
        self._next = mine + self._interval
        if mine > now:
            await asyncio.sleep(mine - now)
