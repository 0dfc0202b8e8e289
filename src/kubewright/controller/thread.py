"""Reconcilers that are plain functions run in a thread, where the client is used only through `run_in_loop`.

    def reconcile(self, request: Request) -> Result:
        widget = run_in_loop(self.client.find(Widget, request))

The client and everything else that is async belong to the event loop of the program.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Generic, TypeVar

from kubewright.controller.reconcile import Result

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)

loop_of_thread: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("kubewright.loop", default=None)
"""The event loop that a reconciler's thread was started from."""


def run_in_loop(coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine on the event loop of the program, from a reconciler's thread, and return its result."""
    loop = loop_of_thread.get()
    if loop is None or asyncio._get_running_loop() is not None:
        coroutine.close()
        raise RuntimeError("run_in_loop is for plain `def` reconcilers, which run in a thread; elsewhere use await")
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()


class ReconcilerThreads(Generic[Key]):
    """Runs a plain function in threads, one for each worker of a controller.

    Guarantee: a cancelled reconcile ends when its thread does, so that a key is never reconciled twice at once.
    """

    def __init__(
        self, function: Callable[[Key], Awaitable[Result | None] | Result | None], workers: int, name: str
    ) -> None:
        self._function = function
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)

    async def reconcile(self, key: Key) -> Result | None:
        """Call the function in a thread, in a copy of the current context."""
        loop = asyncio.get_running_loop()
        context = copy_context()
        context.run(loop_of_thread.set, loop)
        running = loop.run_in_executor(self._pool, context.run, self._call, key)
        try:
            result = await asyncio.shield(running)
        except asyncio.CancelledError:
            # A thread cannot be interrupted, and until it ends nothing else may reconcile its key.
            await asyncio.wait((running,))
            raise
        # Behind a decorator an `async def` looks like a plain function that returns an awaitable.
        return await result if inspect.isawaitable(result) else result

    def close(self) -> None:
        """Start nothing more. Threads that are running end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _call(self, key: Key) -> Awaitable[Result | None] | Result | None:
        try:
            return self._function(key)
        except StopIteration as error:
            # A future cannot hold this one: it would never be done, and neither would the reconcile.
            raise RuntimeError("reconcile raised StopIteration") from error
