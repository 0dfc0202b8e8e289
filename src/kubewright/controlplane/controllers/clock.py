"""Time, as controllers see it: what the present is, and being called when a while has passed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from kubewright.api.time import exact_now


class Timer(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """The call will not come. Cancelling twice, or too late, is fine."""


class Clock(Protocol):
    """What a controller knows of time. A test hands in one that only moves when it is told to."""

    def now(self) -> datetime:
        """The present, in UTC."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once when that many seconds have passed."""


class SystemClock:
    """The clock of `kubewright.now` and the event loop's timers: the machine's, or virtual time in `run_virtual`."""

    def now(self) -> datetime:
        """The present, in UTC."""
        return exact_now()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` from the running event loop once when that many seconds have passed."""
        return asyncio.get_running_loop().call_later(seconds, callback)
