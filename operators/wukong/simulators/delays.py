"""What takes its time: some seconds after it was first seen."""

from __future__ import annotations

import asyncio

_TICK = 0.001
"""Less than that would be lost in a clock that has run for long."""


class Delays:
    """Remembers when each object was first seen."""

    def __init__(self) -> None:
        self._begun: dict[str, float] = {}

    def remaining(self, uid: str, seconds: float) -> float:
        """How many seconds are left; 0 when they are over."""
        time = asyncio.get_running_loop().time()
        left = self._begun.setdefault(uid, time) + seconds - time
        return left if left >= _TICK else 0.0
