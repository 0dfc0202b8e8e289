"""Many deadlines on one timer.

Most deadlines are withdrawn long before they pass, so setting and withdrawing one costs a dictionary operation, and
the loop's timer is touched only when a deadline is earlier than all others. Nothing fires early; `GRANULARITY` is
how late it may be.
"""

from __future__ import annotations

import asyncio
import math
from typing import Protocol

GRANULARITY = 0.1
# A tick that comes this much too late means that the loop was blocked, not that the peers were slow.
_BLOCKED = 1.0


class Expirable(Protocol):
    """Something that can expire."""

    def expire(self) -> None:
        """The deadline has passed. Called once, and never after `Deadlines.discard`."""


class Deadlines:
    """At most one deadline per item; the timer is armed only while there is one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[Expirable, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = math.inf
        self._postponed = False

    def add(self, item: Expirable, due: float) -> None:
        """Let `item` expire at `due` (in the loop's time). Replaces an earlier deadline of the same item."""
        self._due[item] = due
        if due + GRANULARITY < self._armed_for:
            self._arm(due + GRANULARITY)

    def discard(self, item: Expirable) -> None:
        """`item` has no deadline any more. Does nothing when it had none."""
        self._due.pop(item, None)

    def close(self) -> None:
        """Forget every deadline and release the timer."""
        self._due.clear()
        self._disarm()

    def _arm(self, when: float) -> None:
        self._disarm()
        self._armed_for = when
        self._timer = self._loop.call_at(when, self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._armed_for = math.inf

    def _tick(self) -> None:
        now = self._loop.time()
        if now - self._armed_for > _BLOCKED and not self._postponed:
            # Timers run before sockets are read: after a long computation the awaited bytes may have arrived already.
            self._postponed = True
            self._arm(now + GRANULARITY)
            return
        self._postponed = False
        self._disarm()
        for item in [item for item, due in self._due.items() if due <= now]:
            # An item that expires may withdraw the deadlines of others.
            if self._due.pop(item, None) is not None:
                item.expire()
        if self._due:
            self._arm(min(self._due.values()) + GRANULARITY)
