"""A watchdog of the event loop: it reports the line that blocks it.

`time.sleep` in an `async def reconcile` stops every other reconcile, every watch and the renewal of the lease. A thread
notices that and logs the line, once per function, with what to do about it.

It costs next to nothing: once a second the thread samples where the loop is, without waking it. Only a loop that is
executing something at that moment is sent a callback, and only one that has not run the callback after `BLOCKED`
seconds is reported, so that a loop may be busy. Code that never releases the GIL cannot be seen.
"""

from __future__ import annotations

import asyncio
import logging
import os
import selectors
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

from kubewright.manager.fence import clock_of, polling, system_clock

BLOCKED = 1.0
"""Seconds within which a loop has to run a callback. A block that lasts `INTERVAL` seconds longer is never missed."""

INTERVAL = 1.0
"""Seconds between two samples while all is well."""

STEP = 0.25
"""Seconds between two samples while the loop has a callback to run."""

_STANDARD_LIBRARY = str(Path(os.__file__).parent)
_KUBEWRIGHT = str(Path(__file__).parents[1])
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

_log = logging.getLogger(__name__)


@contextmanager
def watched_loop() -> Iterator[None]:
    """Watch the running loop while the block runs. One in virtual time is not watched: nothing takes time there."""
    loop = asyncio.get_running_loop()
    if clock_of(loop) is not system_clock:
        yield
        return
    thread_of_loop = threading.get_ident()
    watchdog = Watchdog(lambda: sys._current_frames().get(thread_of_loop), loop.call_soon_threadsafe)
    with polling("event loop watchdog", watchdog.sample, INTERVAL):
        yield


class Watchdog:
    """Samples a loop. It counts its own samples and reads no clock: a process that was suspended was not blocked."""

    def __init__(
        self, frame: Callable[[], FrameType | None], call_soon: Callable[[Callable[[], None]], object]
    ) -> None:
        """`frame` is the innermost one of the loop's thread; `call_soon` schedules a callback in the loop."""
        self._frame = frame
        self._call_soon = call_soon
        self._runner: CodeType | None = None  # what is beneath every callback; known from the first one
        self._is_probed = False
        self._silence = 0.0
        self._is_reported = False
        self._known: set[CodeType] = set()

    def sample(self) -> float:
        """Sample where the loop is, and log it when it is blocked there. Returns the seconds until the next sample."""
        if self._is_probed:
            self._silence += STEP
            if self._silence >= BLOCKED and not self._is_reported:
                self._report()
            return STEP
        if self._is_reported:
            self._is_reported = False
            _log.info("the event loop runs again, after about %g s", self._silence)
        frame = self._frame()
        if frame is None or self._is_waiting(frame):
            return INTERVAL
        self._is_probed = True
        self._silence = 0.0
        self._call_soon(self._answer)
        return STEP

    def _answer(self) -> None:
        beneath = sys._getframe().f_back
        self._runner = beneath.f_code if beneath is not None else None
        self._is_probed = False

    def _is_waiting(self, frame: FrameType) -> bool:
        """Whether the loop executes nothing: asyncio's is in a selector then, and uvloop's has no frame of its own."""
        return frame.f_code is self._runner or frame.f_code.co_filename == selectors.__file__

    def _report(self) -> None:
        innermost = self._frame()
        if innermost is None or self._is_waiting(innermost):
            return  # it is about to run the callback
        self._is_reported = True
        blocked = self._users(innermost)
        if blocked.f_code in self._known:
            return
        self._known.add(blocked.f_code)
        _log.warning(
            "the event loop has been blocked for %g s by %s:%d in %s: no other reconcile, watch or lease renewal runs "
            "meanwhile. Await something asynchronous there (asyncio.sleep() instead of time.sleep(), "
            "asyncio.to_thread() for a call that blocks), or write `def reconcile` without async: it runs in a thread",
            self._silence,
            blocked.f_code.co_filename,
            blocked.f_lineno,
            blocked.f_code.co_qualname,
        )

    def _users(self, innermost: FrameType) -> FrameType:
        """The innermost frame of the user's code; of a program that is itself installed, what kubewright called."""
        called = None
        frame: FrameType | None = innermost
        while frame is not None and frame.f_code is not self._runner:
            path = frame.f_code.co_filename
            if any(each in path for each in _INSTALLED) and not path.startswith(_KUBEWRIGHT):
                called = frame
            elif not path.startswith((_STANDARD_LIBRARY, _KUBEWRIGHT, "<frozen ")):
                return frame
            frame = frame.f_back
        return called or innermost
