"""Many requests at a time, as a cluster with many clients has them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

IN_FLIGHT = 64


async def each(items: Iterable[T], work: Callable[[T], Awaitable[object]]) -> None:
    """Do the work for each item, so many at a time, beginning in their order."""
    remaining = iter(items)

    async def worker() -> None:
        for item in remaining:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(worker())
