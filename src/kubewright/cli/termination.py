"""SIGTERM ends a command as Ctrl-C does: in order, with another exit code."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


@contextmanager
def terminable() -> Iterator[None]:
    """Within it, SIGTERM raises `Terminated`. Only the main thread gets signals."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    with _handling(terminate):
        yield


def run_terminable(main: Coroutine[object, object, T]) -> T:
    """`asyncio.run`, in which SIGTERM cancels the coroutine, and raises `Terminated` when that has ended.

    An exception out of the middle of a callback would leave connections half done, and closing them would not end.
    """

    async def watched() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        is_terminated = False

        def cancel() -> None:
            nonlocal is_terminated
            is_terminated = True
            if task is not None:
                task.cancel()

        def terminate(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(cancel)

        with _handling(terminate):
            try:
                return await main
            except asyncio.CancelledError:
                if is_terminated:
                    raise Terminated from None
                raise

    return asyncio.run(watched())


@contextmanager
def _handling(handler: signal._HANDLER) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
