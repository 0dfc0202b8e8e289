"""Retrying when another writer was faster.

    async def claim() -> None:
        machine = await inventory.read("m-17")
        machine.owner = "web"
        await inventory.write(machine)                # raises Conflict when another client has written meanwhile

    await retry_on_conflict(claim)

For `update`, and for systems outside that answer with `Conflict`. `client.patch` needs no such loop, and a reconcile
that raises `Conflict` is simply retried.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kubewright.client.errors import Conflict

R = TypeVar("R")


async def retry_on_conflict(
    change: Callable[[], Awaitable[R]],
    *,
    tries: int = 5,
    pause: float = 0.01,
    factor: float = 1.0,
    jitter: float = 0.1,
) -> R:
    """Call `change` until it raises no `Conflict`, at most `tries` times; the last `Conflict` is raised.

    `change` must read what it changes, as each try needs a fresh revision. Between the tries there are `pause` seconds
    and up to `jitter` times as much more, and `factor` times as many with each further one. Every other exception is
    raised at once. The defaults are those of client-go.
    """
    if not callable(change):
        raise TypeError(f"retry_on_conflict({change!r}): expected an async function, which is called for each try")
    if tries < 1:
        raise ValueError(f"retry_on_conflict(tries={tries}): expected at least 1")
    for _ in range(tries - 1):
        try:
            return await change()
        except Conflict:
            await asyncio.sleep(pause * (1 + jitter * random.random()))  # noqa: S311  # not a secret
            pause *= factor
    return await change()
