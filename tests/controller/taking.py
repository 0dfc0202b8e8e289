"""Taking keys out of a queue."""

from __future__ import annotations

import asyncio

from kubewright.controller.queue import Queue


def now() -> float:
    return asyncio.get_running_loop().time()


async def take(queue: Queue[str]) -> str:
    """Hand out the next key and be done with it at once."""
    work = await queue.get()
    queue.done(work.key)
    return work.key


async def take_all(queue: Queue[str]) -> list[str]:
    return [await take(queue) for _ in range(len(queue))]
