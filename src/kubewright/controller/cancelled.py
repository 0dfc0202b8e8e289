"""Distinguishes a task that was cancelled from one that waited for something that was cancelled.

Both raise `CancelledError` in the waiting code. Mistaken for the first, the second silently ends a task that
was meant to run until the program ends.
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
    """The result of `work`. Raises `Cancelled` when something in it was cancelled, and not the task that runs it."""
    if not inspect.isawaitable(work):
        raise TypeError(f"it is not an async function, and returned {work!r}: write async def")
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise Cancelled("something that it waited for was cancelled") from error
