from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from kubewright.api.codec import decode
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.errors import DecodeError
from kubewright.api.meta import ObjectMeta
from kubewright.cache import Cache, CachedClient
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.decoded import Decoded

VALUE = "data.value"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        yield client


@pytest.fixture
async def cache(client: Client) -> AsyncIterator[Cache]:
    cache = Cache(client)
    cache.index(ConfigMap, VALUE)
    task = asyncio.create_task(cache.run())
    yield cache
    task.cancel()
    await asyncio.wait([task])


def settings(name: str, value: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default", labels={"app": name}), data={"value": value})


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0)


async def test_each_revision_is_decoded_once(client: Client, cache: Cache) -> None:
    created = await client.create(settings("a", "x"))
    with cache.watch(ConfigMap) as handle:
        objects = Decoded(handle)
        await handle.synced()
        [first] = objects.list(index=(VALUE, "x"))
        [second] = objects.list(index=(VALUE, "x"))
        assert first is second
        created.metadata.labels["new"] = "yes"
        await client.update(created)
        await until(lambda: "new" in objects.list(index=(VALUE, "x"))[0].metadata.labels)
        assert "new" not in first.metadata.labels


async def test_own_writes_and_deletions_are_visible_at_once(client: Client, cache: Cache) -> None:
    own = CachedClient(client, cache)
    with cache.watch(ConfigMap) as handle:
        objects = Decoded(handle)
        await handle.synced()
        created = await own.create(settings("a", "x"))
        assert [obj.metadata.uid for obj in objects.list(index=(VALUE, "x"))] == [created.metadata.uid]
        created.data["value"] = "y"
        await own.update(created)
        assert objects.list(index=(VALUE, "x")) == []
        assert [obj.data for obj in objects.list(index=(VALUE, "y"))] == [{"value": "y"}]
        await own.delete(created)
        assert objects.list(index=(VALUE, "y")) == []


async def test_labels_choose_among_what_the_index_finds(client: Client, cache: Cache) -> None:
    for name in ("a", "b"):
        await client.create(settings(name, "x"))
    with cache.watch(ConfigMap) as handle:
        objects = Decoded(handle)
        await handle.synced()
        assert [obj.metadata.name for obj in objects.list(index=(VALUE, "x"), labels={"app": "b"})] == ["b"]


async def test_an_object_that_cannot_be_read_is_left_out_and_reported_once(
    client: Client, cache: Cache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        await client.create(settings(name, "x"))

    def picky(kind: type[ConfigMap], body: bytes) -> ConfigMap:
        if (found := decode(kind, body)).metadata.name == "a":
            raise DecodeError("a does not fit")
        return found

    monkeypatch.setattr("kubewright.controlplane.controllers.decoded.decode", picky)
    with cache.watch(ConfigMap) as handle:
        objects = Decoded(handle)
        await handle.synced()
        for _ in range(3):
            assert [obj.metadata.name for obj in objects.list(index=(VALUE, "x"))] == ["b"]
    assert [record.getMessage() for record in caplog.records] == ["left out: a does not fit"]


async def test_deleted_objects_are_not_kept(client: Client, cache: Cache) -> None:
    created = await client.create(settings("a", "x"))
    with cache.watch(ConfigMap) as handle:
        objects = Decoded(handle)
        await handle.synced()
        objects.list(index=(VALUE, "x"))
        assert list(objects._objects) == [created.key]
        await client.delete(created)
        await until(lambda: not objects._objects)
