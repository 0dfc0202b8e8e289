"""The last resort of leader election: a thread that ends the process when its event loop cannot.

A loop that is blocked can neither renew the lease nor stop its work. Once another may lead, this process must have
ended. Both go by a clock that counts the time for which the machine, and not only the process, was suspended.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kubewright.manager.log import exit_line

_INTERVAL = 0.25
_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def system_clock() -> float:
    """Seconds, by a clock that cannot be set and that goes on while the machine is suspended."""
    return time.clock_gettime(_BOOT_TIME) if _BOOT_TIME is not None else time.monotonic()


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """The clock for a lease that is kept by this loop: the system's, unless the loop has one of its own.

    A loop's usual clock stands still while the machine is suspended, and that of uvloop also within a callback.
    """
    is_virtual = isinstance(loop, asyncio.BaseEventLoop) and type(loop).time is not asyncio.BaseEventLoop.time
    return loop.time if is_virtual else system_clock


def exit_at_once(message: str) -> None:
    """End the process, whatever it is doing."""
    sys.stderr.write(f"{exit_line('kubewright', message)}\n")
    sys.stderr.flush()
    os._exit(1)


@contextmanager
def fenced(deadline: Callable[[], float | None], exit_: Callable[[str], None] = exit_at_once) -> Iterator[None]:
    """While the block runs, `exit_` is called when `system_clock()` passes the deadline, if there is one."""

    def check() -> float | None:
        limit = deadline()
        if limit is None or system_clock() <= limit:
            return _INTERVAL
        exit_("the lease has run out while the event loop was blocked; exiting, as another may lead now")
        return None

    with polling("leader fence", check, _INTERVAL):
        yield


@contextmanager
def polling(name: str, poll: Callable[[], float | None], pause: float) -> Iterator[None]:
    """While the block runs, a thread calls `poll` after a pause, and again after each that it returns; None ends it."""
    ended = threading.Event()

    def run() -> None:
        seconds: float | None = pause
        while seconds is not None and not ended.wait(seconds):
            seconds = poll()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
