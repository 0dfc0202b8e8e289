"""Keys that live for a limited time after they were last written, as events do."""

from __future__ import annotations

from collections.abc import Callable


class Lifetime:
    """When each of some keys ends. All live equally long, so the order of their writes is that of their ends."""

    __slots__ = ("_clock", "_ends", "_seconds")

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._ends: dict[str, float] = {}

    def renew(self, key: str) -> None:
        """A key was written: its time starts over."""
        self._ends.pop(key, None)
        self._ends[key] = self._clock() + self._seconds

    def forget(self, key: str) -> None:
        """Stop tracking a deleted key."""
        self._ends.pop(key, None)

    def ended(self) -> list[str]:
        """The keys whose time is over, the oldest first."""
        if not self._ends:
            return []
        now = self._clock()
        found: list[str] = []
        for key, end in self._ends.items():
            if end > now:
                break
            found.append(key)
        return found
