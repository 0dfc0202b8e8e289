"""SIGINT and SIGTERM: the first stops a program gracefully, the second kills it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def exit_now() -> None:
    """End the process with exit code 1, without waiting for anything."""
    os._exit(1)


@asynccontextmanager
async def stop_on_signals(stop: Callable[[], None], force: Callable[[], None] = exit_now) -> AsyncIterator[None]:
    """Within it, the first signal calls `stop` in the event loop, and each further one `force`, even if the loop hangs.

    The previous handlers are restored afterwards. Works in the main thread only, as signals do.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("signals reach the main thread only: handle them there, and not in this one")
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    count = 0

    def received(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            force()

    def stop_once() -> None:
        if count == 1:
            stop()

    try:
        for number in SIGNALS:
            # The loop's own handling wakes it up, and calls in it. But it needs a loop that runs, so that it cannot be
            # relied on to end a program that hangs: Python's handler is called between any two instructions.
            loop.add_signal_handler(number, stop_once)
            signal.signal(number, received)
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            # None: it was set by something that is not Python, and cannot be set again.
            if before[number] is not None:
                signal.signal(number, before[number])
