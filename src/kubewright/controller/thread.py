"""For reconcilers that are plain functions: they run in a thread, and the client is not to be used from there.

def reconcile(self, request: Request) -> Result:
    widget = wait_for(self.client.find(Widget, request))
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

loop_of_thread: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("kubewright.loop", default=None)
"""The event loop that a reconciler's thread was started from."""


def wait_for(coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine on the event loop of the program, from a reconciler's thread, and give back its result."""
    loop = loop_of_thread.get()
    if loop is None or asyncio._get_running_loop() is not None:
        coroutine.close()
        raise RuntimeError("wait_for is for plain `def` reconcilers, which run in a thread; elsewhere use await")
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
