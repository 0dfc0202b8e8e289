"""A watcher that does not read: it is ended, without an effect on others. By socket and in process alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.embedded.server import assembly
from kubewright.controlplane.embedded.storage.store import MemoryStore

ROOM = 20
LARGE = "x" * 200_000
CHANGES = 150


@pytest.fixture
async def plane(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedControlPlane]:
    """Its watchers may fall behind by no more than `ROOM` changes."""
    monkeypatch.setattr(assembly, "MemoryStore", partial(MemoryStore, buffer=ROOM))
    async with ControlPlane.embedded(controllers=[]) as plane:
        yield plane


@pytest.fixture(params=["in process", "by socket"])
async def client(plane: EmbeddedControlPlane, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    config = Config.from_kubeconfig_text(plane.kubeconfig())
    client = plane.client() if request.param == "in process" else Client(config)
    async with client:
        yield client.in_namespace("default")


async def test_a_watcher_that_does_not_read_is_ended_and_blocks_no_other(client: Client) -> None:
    obj = await client.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": LARGE}))
    start = obj.metadata.resource_version
    async with (
        client.watch(ConfigMap, resource_version=start, bookmarks=False) as slow,
        client.watch(ConfigMap, resource_version=start, bookmarks=False) as quick,
        asyncio.timeout(60),
    ):
        stream = aiter(quick)
        for number in range(CHANGES):
            obj.data["n"] = str(number)
            obj = await client.update(obj)
            # Every change has arrived before the next is made, as if there were no other watcher.
            event = await anext(stream)
            assert event.header.resource_version == obj.metadata.resource_version
        late = [int(event.header.resource_version) async for event in slow]
    # It got what had been sent to it, in order and without a gap, and then the end.
    assert late == list(range(int(start) + 1, int(start) + 1 + len(late)))
    assert len(late) < CHANGES


async def test_a_watcher_that_was_ended_resumes_where_it_stopped(client: Client) -> None:
    obj = await client.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": LARGE}))
    seen = int(obj.metadata.resource_version)
    async with client.watch(ConfigMap, resource_version=str(seen), bookmarks=False) as slow:
        for number in range(CHANGES):
            obj.data["n"] = str(number)
            obj = await client.update(obj)
        async with asyncio.timeout(60):
            async for event in slow:
                seen = int(event.header.resource_version)
    last = int(obj.metadata.resource_version)
    assert seen < last
    async with client.watch(ConfigMap, resource_version=str(seen), bookmarks=False) as again, asyncio.timeout(60):
        async for event in again:
            assert int(event.header.resource_version) == seen + 1
            seen += 1
            if seen == last:
                break
