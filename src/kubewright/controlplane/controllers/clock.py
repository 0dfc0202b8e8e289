"""The clock of controllers: the current time, and timers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from kubewright.api.time import exact_now


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call. May be called twice, or too late."""


class Clock(Protocol):
    """The time of a controller. A test passes one that only the test advances."""

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
