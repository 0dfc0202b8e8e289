"""Reading through the cache: what is watched costs no request, and a program sees its own writes at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TypeVar

import pytest

from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.dynamic import metadata_only
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.api.selectors import Fields, Labels
from kubewright.cache import Cache, CachedClient
from kubewright.client import Client, Config, MergePatch, Watch
from kubewright.client.errors import NotFound
from kubewright.client.http.response import StreamedResponse
from kubewright.client.wait import deleted
from kubewright.controlplane import ControlPlane

T = TypeVar("T", bound=Object)


class _Held:
    """A body of which nothing arrives while the gate is closed."""

    def __init__(self, inner: StreamedResponse, gate: asyncio.Event) -> None:
        self._inner = inner
        self._gate = gate

    async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
        try:
            data = await anext(self._inner)
        except StopAsyncIteration:
            data = b""
        await self._gate.wait()
        return data

    async def aclose(self) -> None:
        await self._inner.aclose()


class SlowWatches(Client):
    """A client whose watches bring nothing while `gate` is closed: the cache is behind for as long as a test likes."""

    gate: asyncio.Event

    def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        resource_version: str | None = None,
        initial_events: bool = False,
        bookmarks: bool = True,
        timeout: float = 290.0,
    ) -> Watch[T]:
        watch = super().watch(
            kind,
            namespace=namespace,
            labels=labels,
            fields=fields,
            resource_version=resource_version,
            initial_events=initial_events,
            bookmarks=bookmarks,
            timeout=timeout,
        )
        connect = watch._connect

        async def held() -> StreamedResponse:
            response = await connect()
            return StreamedResponse(response.status, response.headers, _Held(response, self.gate))

        watch._connect = held
        return watch


@pytest.fixture
async def slow(control_plane: ControlPlane) -> AsyncIterator[SlowWatches]:
    async with SlowWatches(Config.from_kubeconfig_text(control_plane.kubeconfig())) as client:
        client.gate = asyncio.Event()
        client.gate.set()
        yield client


@pytest.fixture
async def client(slow: SlowWatches, namespace: str) -> AsyncIterator[CachedClient]:
    """Reads ConfigMaps of the namespace from a cache that is in step; `slow.gate.clear()` holds it back."""
    cache = Cache(slow)
    task = asyncio.create_task(cache.run())
    with cache.watch(ConfigMap, namespace=namespace) as handle:
        await handle.synced()
        yield CachedClient(slow, cache).in_namespace(namespace)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def settings(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


async def names(client: CachedClient, **labels: str) -> list[str]:
    found = await client.list(ConfigMap, labels=labels or None)
    return [each.metadata.name for each in found if each.metadata.name != "kube-root-ca.crt"]


async def test_reads_of_watched_kinds_cause_no_request(client: CachedClient, slow: SlowWatches) -> None:
    await client.create(settings("a"))
    before = dict(slow.answers)
    for _ in range(100):
        await client.get(ConfigMap, "a")
        await client.find(ConfigMap, "nothing")
        await client.list(ConfigMap)
    assert slow.answers == before


async def test_reads_of_unwatched_kinds_go_to_the_server(client: CachedClient, slow: SlowWatches) -> None:
    before = sum(slow.answers.values())
    assert await client.find(Namespace, "kube-system") is not None
    assert sum(slow.answers.values()) == before + 1


async def test_a_watch_of_one_name_knows_whether_that_object_exists_and_nothing_of_others(
    slow: SlowWatches, namespace: str
) -> None:
    cache = Cache(slow)
    task = asyncio.create_task(cache.run())
    client = CachedClient(slow, cache).in_namespace(namespace)
    with cache.watch(ConfigMap, namespace=namespace, fields={"metadata.name": "a"}) as handle:
        await handle.synced()
        await slow.in_namespace(namespace).create(settings("b"))
        before = sum(slow.answers.values())
        assert await client.find(ConfigMap, "a") is None
        assert sum(slow.answers.values()) == before
        assert await client.find(ConfigMap, "b") is not None
        assert sum(slow.answers.values()) == before + 1
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_own_creates_updates_patches_and_deletes_are_seen_while_the_watch_is_behind(
    client: CachedClient, slow: SlowWatches
) -> None:
    slow.gate.clear()
    created = await client.create(settings("a", x="1"))
    assert (await client.get(ConfigMap, "a")).data == {"x": "1"}
    assert await names(client) == ["a"]
    created.data["x"] = "2"
    updated = await client.update(created)
    assert (await client.get(ConfigMap, "a")).data == {"x": "2"}
    updated.metadata.labels["tier"] = "front"
    await client.patch(updated)
    assert await names(client, tier="front") == ["a"]
    assert await client.find(ConfigMap, "a", consistency="cached") is None
    await client.apply(settings("b", y="1"))
    assert await names(client) == ["a", "b"]
    await client.delete(ConfigMap, "a")
    assert await client.find(ConfigMap, "a") is None
    assert await names(client) == ["b"]
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await client.get(ConfigMap, "a")


async def test_a_patch_of_an_outdated_cached_object_erases_nothing(client: CachedClient, slow: SlowWatches) -> None:
    created = await client.create(settings("a"))
    await _caught_up(client, "a")
    slow.gate.clear()
    theirs = MergePatch({"metadata": {"finalizers": ["example.com/theirs"]}})
    await slow.patch(ConfigMap, created.key, theirs)
    found = await client.get(ConfigMap, "a")
    assert found.metadata.finalizers == []
    found.metadata.finalizers = ["example.com/ours"]
    patched = await client.patch(found)
    assert patched.metadata.finalizers == ["example.com/ours", "example.com/theirs"]
    assert await client.get(ConfigMap, "a") == patched
    patched.metadata.finalizers = []
    await client.patch(patched)


async def test_a_removed_object_is_gone_from_the_cache_at_once_and_its_successor_is_shown(
    client: CachedClient, slow: SlowWatches
) -> None:
    await client.create(settings("a", x="old"))
    await _caught_up(client, "a")
    slow.gate.clear()
    await client.delete(ConfigMap, "a")
    assert await client.find(ConfigMap, "a") is None
    assert await client.find(ConfigMap, "a", consistency="cached") is not None
    await client.create(settings("a", x="new"))
    assert (await client.get(ConfigMap, "a")).data == {"x": "new"}
    slow.gate.set()
    await _caught_up(client, "a", x="new")
    assert (await client.get(ConfigMap, "a")).data == {"x": "new"}


async def test_an_object_that_waits_for_its_finalizer_is_shown_as_being_deleted(
    client: CachedClient, slow: SlowWatches
) -> None:
    held = settings("a")
    held.metadata.finalizers = ["example.com/hold"]
    created = await client.create(held)
    await _caught_up(client, "a")
    slow.gate.clear()
    await client.delete(created)
    found = await client.get(ConfigMap, "a")
    assert found.metadata.deletion_timestamp is not None
    found.metadata.finalizers = []
    await client.patch(found)
    assert await client.find(ConfigMap, "a") is None
    slow.gate.set()
    await client.wait_for(created, deleted, timeout=20)
    await _gone(client, "a")


async def test_a_namespace_that_is_being_deleted_is_shown(slow: SlowWatches) -> None:
    """What keeps it is in its spec, not in its metadata."""
    cache = Cache(slow)
    task = asyncio.create_task(cache.run())
    client = CachedClient(slow, cache)
    with cache.watch(Namespace) as handle:
        await handle.synced()
        created = await client.create(Namespace(metadata=ObjectMeta(generate_name="doomed-")))
        slow.gate.clear()
        await client.delete(created)
        found = await client.get(Namespace, created.metadata.name)
        assert found.metadata.deletion_timestamp is not None
        slow.gate.set()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_foreign_writes_replace_own_ones_when_the_watch_brings_them(
    client: CachedClient, slow: SlowWatches, admin: Client, namespace: str
) -> None:
    slow.gate.clear()
    await client.create(settings("a", x="mine"))
    theirs = await admin.get(ConfigMap, "a", namespace=namespace)
    theirs.data["x"] = "theirs"
    await admin.update(theirs)
    assert (await client.get(ConfigMap, "a")).data == {"x": "mine"}
    assert (await client.get(ConfigMap, "a", consistency="live")).data == {"x": "theirs"}
    slow.gate.set()
    await _caught_up(client, "a", x="theirs")
    assert (await client.get(ConfigMap, "a")).data == {"x": "theirs"}


async def test_a_name_removed_created_and_removed_again_stays_free_while_the_watch_catches_up(
    client: CachedClient, slow: SlowWatches
) -> None:
    await client.create(settings("a", x="first"))
    await _caught_up(client, "a")
    slow.gate.clear()
    await client.delete(ConfigMap, "a")
    await client.create(settings("a", x="second"))
    await client.delete(ConfigMap, "a")
    assert await client.find(ConfigMap, "a") is None
    assert await names(client) == []
    assert await client.find(ConfigMap, "a", consistency="cached") is not None
    slow.gate.set()
    await client.create(settings("last"))
    async with asyncio.timeout(20):
        while await client.find(ConfigMap, "last", consistency="cached") is None:
            assert await client.find(ConfigMap, "a") is None
            await asyncio.sleep(0.005)
    assert await client.find(ConfigMap, "a", consistency="cached") is None


async def test_a_patch_of_metadata_alone_is_seen_while_the_watch_is_behind(
    client: CachedClient, slow: SlowWatches
) -> None:
    await client.create(settings("a", x="1"))
    await _caught_up(client, "a")
    slow.gate.clear()
    found = await client.get(metadata_only(ConfigMap), "a")
    found.metadata.labels["tier"] = "front"
    assert (await client.patch(found)).metadata.labels == {"tier": "front"}
    assert (await client.get(ConfigMap, "a")).data == {"x": "1"}
    assert await names(client, tier="front") == ["a"]
    slow.gate.set()


async def test_a_dry_run_is_not_shown(client: CachedClient) -> None:
    await client.create(settings("a"), dry_run=True)
    assert await client.find(ConfigMap, "a") is None


async def _caught_up(client: CachedClient, name: str, **data: str) -> None:
    async with asyncio.timeout(20):
        while True:
            found = await client.find(ConfigMap, name, consistency="cached")
            if found is not None and found.data == data | (found.data if not data else {}):
                return
            await asyncio.sleep(0.005)


async def _gone(client: CachedClient, name: str) -> None:
    async with asyncio.timeout(20):
        while await client.find(ConfigMap, name, consistency="cached") is not None:
            await asyncio.sleep(0.005)
