"""An event loop that does not wait: its clock jumps to the next timer as soon as nothing else is left to do.

    async def main() -> None:
        async with ControlPlane.embedded() as plane, plane.client() as client:
            await asyncio.sleep(3600)  # over at once; `loop.time()` and `kubewright.now()` are an hour later

    def test_something() -> None:
        run_virtual(main)

    @virtual
    async def test_something_else() -> None:
        await asyncio.sleep(3600)

What goes by the loop's own clock is virtual (`asyncio.sleep`, `asyncio.timeout`, `loop.call_later`), and so is
`kubewright.now()`, with which everything in kubewright stamps: conditions, events, leases, and all that an embedded
control plane writes. Data of sockets and calls from other threads arrive when they arrive. To end a program that hangs,
use `asyncio.timeout` as anywhere else: however long it is, it takes almost no real time.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import selectors
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import copy_context
from datetime import datetime, timedelta
from typing import ParamSpec, TypeVar, TypeVarTuple

from kubewright.api.time import clock_set_to, now

T = TypeVar("T")
P = ParamSpec("P")
Arguments = TypeVarTuple("Arguments")

_RESOLUTION = time.get_clock_info("monotonic").resolution


class NeverEnds(RuntimeError):
    """The program waits for something that cannot happen any more."""


def run_virtual(main: Callable[[], Coroutine[None, None, T]]) -> T:
    """Run `main()` to its end in virtual time, and return its result.

    The loop's clock begins at 0, `kubewright.now()` at the present second; from there on they move together.
    As with `asyncio.run`, tasks that are left over are cancelled and everything is closed. Raises `NeverEnds` when it
    is certain that nothing will ever happen again: no timer, no socket, no other thread.
    """
    given: object = main
    if inspect.iscoroutine(given):
        given.close()  # or Python warns that it was never awaited, which the error says already
        raise TypeError("run_virtual(main()): give the function without calling it, as in run_virtual(main)")
    if asyncio._get_running_loop() is not None:
        raise RuntimeError("run_virtual() runs a loop of its own: call it in a plain `def test_…`, or use @virtual")
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        # Not an invented date: certificates and what comes from other processes are of the machine's time. A whole
        # second, so that what is rounded to seconds is rounded alike in every run.
        loop, start = runner.get_loop(), now()

        def virtual_now() -> datetime:
            return start + timedelta(seconds=loop.time())

        with clock_set_to(virtual_now):
            return runner.run(main(), context=copy_context())


def virtual(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Decorates an async test: it runs in virtual time. Async fixtures run in another loop, and cannot be used."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtual(lambda: test(*args, **kwargs))

    # pytest must see the parameters of the coroutine function behind it, but not that it is one.
    run.__dict__["__signature__"] = inspect.signature(test)
    del run.__dict__["__wrapped__"]
    return run


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop on virtual time.

    While a thread of `asyncio.to_thread` works, time stands still, except that a timer that has really run out fires.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[*Arguments], T],
        *args: *Arguments,
    ) -> asyncio.Future[T]:
        """As any loop does, and time stands still meanwhile."""
        future = super().run_in_executor(executor, func, *args)
        self._jumping.threads_at_work += 1
        future.add_done_callback(self._thread_is_done)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait until the threads have ended, without the `timeout` of Python 3.12, which would be over at once here."""
        await super().shutdown_default_executor()

    def _thread_is_done(self, _: asyncio.Future[T]) -> None:
        self._jumping.threads_at_work -= 1


class _JumpingSelector(selectors.DefaultSelector):
    """Where an event loop would wait for its next timer, this moves the clock instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads_at_work = 0
        self._waited = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            # The loop's own wake-up socket is always registered.
            if len(self.get_map()) <= 1 and threading.active_count() == 1:
                raise NeverEnds(_stuck())
            return super().select(None)
        ready = super().select(0)
        if ready or timeout <= 0:
            return ready
        if self.threads_at_work:
            began = time.monotonic()
            ready = super().select(max(timeout - self._waited, 0.0))
            self._waited += time.monotonic() - began
            if self._waited < timeout:
                return ready
        self._waited = 0.0
        self.now += timeout
        # asyncio runs what is due before now + resolution. After some months that sum is rounded to now, and a timer
        # for exactly now would never be due.
        if self.now + _RESOLUTION == self.now:
            self.now = math.nextafter(self.now, math.inf)
        return ready


def _stuck() -> str:
    lines = ["nothing will ever happen again (no timer, no socket, no other thread), and these tasks still wait:"]
    # Called by the loop itself, between two callbacks: it is the running loop.
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        frames = task.get_stack(limit=1)
        where = f"{frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else "not started"
        lines.append(f"  {task.get_name()} ({getattr(task.get_coro(), '__qualname__', task.get_coro())}) at {where}")
    return "\n".join(lines)
