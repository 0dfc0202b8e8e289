"""A source running, and what it has put into its queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import TypeVar

from kubewright.controller.queue import Queue, Reason
from kubewright.controller.source import Source

Key = TypeVar("Key", bound=Hashable)


@asynccontextmanager
async def feeding(source: Source[Key], queue: Queue[Key]) -> AsyncIterator[None]:
    task = asyncio.create_task(source.run(queue))
    try:
        await asyncio.sleep(0)
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def taken(queue: Queue[Key]) -> list[tuple[Key, int, tuple[Reason, ...]]]:
    """All keys that are due, with their priorities and reasons."""
    found = []
    while len(queue):
        work = await queue.get()
        queue.done(work.key)
        found.append((work.key, work.priority, work.reasons))
    return found


async def keys(queue: Queue[Key]) -> list[Key]:
    return [key for key, _, _ in await taken(queue)]


def not_ready_reason(source: Source[Key]) -> str | None:
    """Read each time, which mypy does not expect of a property."""
    return source.not_ready_reason
