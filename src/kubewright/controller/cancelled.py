"""Distinguishing a task that is to end from one that only waited for something that was cancelled.

Both look alike to the code that waits: a `CancelledError`. Taken for the first, the second silently ends a task that
was meant to run for ever.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Cancelled(Exception):
    """Something that a function of the program waited for was cancelled."""


async def outcome(work: Awaitable[T]) -> T:
    """What comes of `work`. Raises `Cancelled` when something in it was cancelled, and not the task that runs it."""
    if not inspect.isawaitable(work):
        raise TypeError(f"it is not an async function, and returned {work!r}: write async def")
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise Cancelled("something that it waited for was cancelled") from error
