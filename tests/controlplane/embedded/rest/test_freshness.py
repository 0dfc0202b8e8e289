from __future__ import annotations

import asyncio

from kubewright.controlplane.embedded.rest.freshness import reached
from kubewright.controlplane.embedded.storage.store import MemoryStore


def put(store: MemoryStore, name: str) -> None:
    store.create(f"/core/configmaps/{name}", {"metadata": {"name": name}})


async def test_a_reached_revision_is_not_awaited() -> None:
    store = MemoryStore(revision=5)
    assert await reached(store, 5, within=0)


async def test_waiting_ends_with_the_write_that_reaches_the_revision() -> None:
    store = MemoryStore(revision=5)
    waiting = asyncio.ensure_future(reached(store, 7, within=600))
    await asyncio.sleep(0)
    put(store, "a")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    put(store, "b")
    assert await waiting


async def test_waiting_ends_when_patience_does() -> None:
    store = MemoryStore(revision=5)
    assert not await reached(store, 6, within=0)


async def test_no_subscription_is_left_open() -> None:
    store = MemoryStore(revision=5)
    await reached(store, 6, within=0)
    assert store._watchers._by_prefix == {}
