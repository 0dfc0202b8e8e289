"""Back-off: how long to wait before another attempt at something that failed.

A `Backoff` is only the schedule. It counts nothing, never sleeps and knows no clock: the caller counts the
failures and waits by the event loop's clock.
"""

from __future__ import annotations

from msgspec import Struct

_MAX_EXPONENT = 1000  # what has failed for weeks must not overflow a float; any limit is reached long before


class Backoff(Struct, frozen=True):
    """Delays of `base` seconds, doubled after each failure in a row up to `limit`.

    With `jitter` (0 to 1) each delay is shortened by a random part of itself, at most by that fraction, so that callers
    that failed together do not retry together.
    """

    base: float
    limit: float
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.base <= self.limit:
            raise ValueError(f"a back-off needs 0 < base <= limit, not base={self.base:g} and limit={self.limit:g}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"the jitter of a back-off is a fraction from 0 to 1, not {self.jitter:g}")

    def delay(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row: `base` after the first; none while nothing has failed."""
        if failures <= 0:
            return 0.0
        delay = min(self.base * 2.0 ** min(failures - 1, _MAX_EXPONENT), self.limit)
        if not self.jitter:
            return delay
        from random import random  # it takes as long to import as ten modules of this package, and few calls fail

        return delay * (1 - self.jitter * random())  # noqa: S311  # not a secret
