"""Copies on a live control plane: shared, counted, confined, and changed while they run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress

import msgspec
import pytest

from kubewright.api.core.v1 import ConfigMap, Node, Secret
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.errors import DecodeError
from kubewright.api.kinds import ObjectKey
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, resource
from kubewright.cache import Cache, CachedClient, WatchHandle
from kubewright.cache.entry import CacheEntry
from kubewright.cache.write_origin import WriteOrigin
from kubewright.client import Client
from kubewright.client.wait import established
from kubewright.manifest.crd import definition_of
from kubewright.testing.namespaces import unique_name


@pytest.fixture
async def cache(admin: Client) -> AsyncIterator[Cache]:
    cache = Cache(admin)
    task = asyncio.create_task(cache.run())
    yield cache
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert not own_watches()


def own_watches() -> list[str]:
    """The tasks that watch a namespace. Controllers of the control plane, which may run here too, watch all of them."""
    names = [task.get_name() for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith("watch ") and " namespace " in name]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.005)


def settings(name: str, namespace: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels={"app": name}), data=data)


async def test_a_watch_shows_what_exists_and_what_others_change(admin: Client, namespace: str, cache: Cache) -> None:
    created = await admin.create(settings("a", namespace, x="1"))
    with cache.watch(ConfigMap, namespace=namespace) as handle:
        await handle.synced()
        found = handle.find(created.key)
        assert found is not None
        assert found.data == {"x": "1"}
        created.data["x"] = "2"
        await admin.update(created)
        await until(lambda: (now := handle.find(created.key)) is not None and now.data == {"x": "2"})
        await admin.delete(created)
        await until(lambda: handle.find(created.key) is None)


async def test_a_read_returns_an_object_of_its_own(admin: Client, namespace: str, cache: Cache) -> None:
    created = await admin.create(settings("a", namespace, x="1"))
    with cache.watch(ConfigMap, namespace=namespace) as handle:
        await handle.synced()
        first = handle.find(created.key)
        assert first is not None
        first.data["x"] = "changed"
        second = handle.find(created.key)
        assert second is not None
        assert second.data == {"x": "1"}


async def test_one_watch_serves_typed_dynamic_and_metadata_readers(admin: Client, namespace: str, cache: Cache) -> None:
    key = (await admin.create(settings("a", namespace, x="1"))).key
    loose = Dynamic.of("v1", "ConfigMap", plural="configmaps", namespaced=True)
    with (
        cache.watch(ConfigMap, namespace=namespace) as typed,
        cache.watch(loose, namespace=namespace) as dynamic,
        cache.watch(metadata_only(ConfigMap), namespace=namespace) as metadata,
    ):
        await typed.synced()
        assert len(cache.informers()) == 1
        assert cache.informers()[0].references == 3
        found = dynamic.find(key)
        assert found is not None
        assert found["data"] == {"x": "1"}
        seen = metadata.find(key)
        assert seen is not None
        assert seen.metadata.labels == {"app": "a"}
    assert cache.informers() == []


async def test_only_metadata_is_watched_when_no_reader_needs_more(admin: Client, namespace: str, cache: Cache) -> None:
    await admin.create(
        Secret(metadata=ObjectMeta(name="large", namespace=namespace), string_data={"key": "x" * 100_000})
    )
    with cache.watch(metadata_only(Secret), namespace=namespace) as handle:
        await handle.synced()
        await until(lambda: handle.find(ObjectKey(namespace, "large")) is not None)
        assert cache.informers()[0].statistics.bytes < 10_000


async def test_the_last_release_ends_the_watch_and_frees_its_store(namespace: str, cache: Cache) -> None:
    first, second = (cache.watch(ConfigMap, namespace=namespace) for _ in range(2))
    await first.synced()
    assert len(own_watches()) == 1
    first.release()
    first.release()
    assert len(cache.informers()) == 1
    second.release()
    assert cache.informers() == []
    await until(lambda: not own_watches())


async def test_a_watch_can_be_added_while_the_cache_runs_and_replays_existing_objects(
    admin: Client, namespace: str, cache: Cache
) -> None:
    await admin.create(settings("a", namespace))
    with cache.watch(ConfigMap, namespace=namespace) as handle:
        await handle.synced()
        notified: list[tuple[str, bool]] = []

        def record(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
            if new is not None:
                notified.append((new.key.name, initial))

        handle.subscribe(record)
        assert ("a", True) in notified
        await admin.create(settings("b", namespace))
        await until(lambda: ("b", False) in notified)


async def test_selectors_confine_what_is_watched(admin: Client, namespace: str, cache: Cache) -> None:
    await admin.create(settings("a", namespace))
    moving = await admin.create(settings("b", namespace))
    with cache.watch(ConfigMap, namespace=namespace, labels={"app": "b"}) as handle:
        await handle.synced()
        assert [each.metadata.name for each in handle.list()] == ["b"]
        moving.metadata.labels["app"] = "c"
        await admin.update(moving)
        await until(lambda: handle.list() == [])


async def test_an_index_by_field_and_one_by_function_find_the_right_objects(
    admin: Client, namespace: str, cache: Cache
) -> None:
    cache.index(ConfigMap, "data.x")
    cache.index(ConfigMap, "values", lambda each: each.data.values())
    client = CachedClient(admin, cache)
    await admin.create(settings("a", namespace, x="1"))
    await admin.create(settings("b", namespace, x="2", y="1"))
    with cache.watch(ConfigMap, namespace=namespace) as handle:
        await handle.synced()

        def names(objects: list[ConfigMap]) -> list[str]:
            return [each.metadata.name for each in objects]

        assert names(handle.list(index=("data.x", "2"))) == ["b"]
        assert names(await client.list(ConfigMap, namespace=namespace, fields={"data.x": "1"})) == ["a"]
        assert names(await client.list(ConfigMap, namespace=namespace, index=("values", "1"))) == ["a", "b"]
        with pytest.raises(KeyError, match='no index "nothing"'):
            await client.list(ConfigMap, namespace=namespace, index=("nothing", "1"))
    with pytest.raises(LookupError, match="is not watched"):
        await client.list(ConfigMap, namespace=namespace, index=("values", "1"))


async def test_namespaces_are_added_and_removed_while_others_stay_undisturbed(
    admin: Client, namespace: str, cache: Cache, request: pytest.FixtureRequest
) -> None:
    from kubewright.api.core.v1 import Namespace

    other = unique_name(f"{request.node.name}-other")
    second = await admin.create(Namespace(metadata=ObjectMeta(name=other)))
    try:
        await admin.create(settings("here", namespace))
        await admin.create(settings("there", other))
        cache.set_namespaces([namespace])
        client = CachedClient(admin, cache)
        with cache.watch(ConfigMap) as handle:
            await handle.synced()
            first = handle.informers[0]
            assert _names(handle) == {"here"}
            cache.set_namespaces([namespace, other])
            await handle.synced()
            assert handle.informers[0] is first
            assert _names(handle) == {"here", "there"}
            listed = await client.list(ConfigMap, labels="app in (here,there)")
            assert [each.metadata.name for each in listed] == (
                ["here", "there"] if namespace < other else ["there", "here"]
            )
            cache.set_namespaces([other])
            assert _names(handle) == {"there"}
    finally:
        await admin.delete(second)


async def test_fields_dropped_by_a_transform_are_not_kept(admin: Client, namespace: str, cache: Cache) -> None:
    def without_data(raw: bytes) -> bytes:
        decoded = msgspec.json.decode(raw)
        decoded.pop("data", None)
        return msgspec.json.encode(decoded)

    created = await admin.create(settings("a", namespace, x="y" * 10_000))
    with cache.watch(ConfigMap, namespace=namespace, transform=without_data) as handle:
        await handle.synced()
        found = handle.find(created.key)
        assert found is not None
        assert found.data == {}
        assert cache.informers()[0].statistics.bytes < 10_000
        # The client reads whole objects only: an update of half of one would erase the other half.
        whole = await CachedClient(admin, cache).get(ConfigMap, "a", namespace=namespace)
        assert whole.data == {"x": "y" * 10_000}


async def test_a_subscriber_that_fails_stops_neither_the_watch_nor_the_others(
    admin: Client, namespace: str, cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    notified: list[str] = []

    def fails(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        raise LookupError("mine")

    def works(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        if new is not None:
            notified.append(new.key.name)

    with cache.watch(ConfigMap, namespace=namespace) as handle:
        handle.subscribe(fails)
        handle.subscribe(works)
        await handle.synced()
        await admin.create(settings("a", namespace))
        await until(lambda: "a" in notified)
    assert "an event handler failed" in caplog.text


def _names(handle: WatchHandle[ConfigMap]) -> set[str]:
    return {each.metadata.name for each in handle.list(labels="app in (here,there)")}


def test_two_indexes_of_one_name_are_refused_unless_they_are_the_same(admin: Client) -> None:
    def by_value(each: ConfigMap) -> Iterable[str]:
        return each.data.values()

    cache = Cache(admin)
    cache.index(ConfigMap, "values", by_value)
    cache.index(ConfigMap, "values", by_value)
    with pytest.raises(ValueError, match='ConfigMap has an index "values" already, by another function'):
        cache.index(ConfigMap, "values", lambda each: each.data)
    with pytest.raises(ValueError, match="give this one a name of its own"):
        cache.index(ConfigMap, "values")
    cache.index(Node, "values")


@resource("deep.example.com/v1")
class Deep(Object):
    """A kind whose objects may hold anything."""

    spec: dict[str, JSONValue] = {}


async def test_an_object_nested_thousands_of_levels_deep_does_not_hold_up_the_others(
    admin: Client, namespace: str, cache: Cache
) -> None:
    """Servers take it, and Python 3.11 does not decode it."""
    definition = await admin.create(definition_of(Deep))
    try:
        await admin.wait_for(definition, established)
        with cache.watch(Deep, namespace=namespace) as handle:
            await handle.synced()
            await admin.create(Deep(metadata=ObjectMeta(name="before", namespace=namespace)))
            spec = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
            body = b'{"apiVersion":"deep.example.com/v1","kind":"Deep","metadata":{"name":"deep"},"spec":%b}' % spec
            await admin._operations.session.request(
                "POST",
                f"/apis/deep.example.com/v1/namespaces/{namespace}/deeps",
                request="create Deep",
                headers=[("Content-Type", "application/json")],
                body=body,
            )
            await admin.create(Deep(metadata=ObjectMeta(name="later", namespace=namespace)))
            await until(lambda: handle.find(ObjectKey(namespace, "later")) is not None)
            client = CachedClient(admin, cache)
            for listing in (
                client.list(Deep, namespace=namespace),
                client.list(Deep, namespace=namespace, consistency="live"),
            ):
                assert {"before", "later"} <= {each.metadata.name for each in await listing}
            key = ObjectKey(namespace, "deep")
            assert handle.informers[0].find(key) is not None
            if sys.version_info < (3, 12):
                with pytest.raises(DecodeError, match="nested too deeply") as caught:
                    await client.find(Deep, key)
                assert (caught.value.kind, caught.value.key) == ("Deep", key)
            await client.delete(Deep, key)
            await until(lambda: handle.informers[0].find(key) is None)
    finally:
        await admin.delete(definition)
