"""What a program sees of a kind is said once, for all its watches and reads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest

from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.cache import Cache, CachedClient, CacheOptions
from kubewright.client import Client, Config
from kubewright.client.errors import NotFound
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.testing.virtual_time import virtual

ANY: Any = "drop"


def settings(name: str, namespace: str = "default", **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels), data={"x": "1", "y": "2"})


def without_y(raw: bytes) -> bytes:
    content = msgspec.json.decode(raw)
    content.get("data", {}).pop("y", None)
    return msgspec.json.encode(content)


@asynccontextmanager
async def cached(
    plane: ControlPlane, options: Mapping[type[Object], CacheOptions] | None = None, *, strict: bool = False
) -> AsyncIterator[tuple[Client, CachedClient, Cache]]:
    async with plane.client() as client, asyncio.TaskGroup() as group:
        await client.create(Namespace(metadata=ObjectMeta(name="elsewhere")))
        await client.create(settings("in", app="web"))
        await client.create(settings("out"))
        await client.create(settings("far", "elsewhere", app="web"))
        cache = Cache(client, options=options, strict=strict)
        task = group.create_task(cache.run())
        await asyncio.sleep(0)
        yield client, CachedClient(client, cache), cache
        task.cancel()


async def test_reads_are_answered_from_what_is_selected(embedded_control_plane: ControlPlane) -> None:
    options = CacheOptions(labels={"app": "web"}, namespaces=["default"], transform=without_y)
    async with cached(embedded_control_plane, {ConfigMap: options}) as (live, client, cache):
        with cache.watch(ConfigMap) as handle:
            await handle.synced()
            before = dict(live.answers)
            assert [each.metadata.name for each in await client.list(ConfigMap)] == ["in"]
            assert (await client.get(ConfigMap, "in", namespace="default")).data == {"x": "1"}
            assert await client.find(ConfigMap, "out", namespace="default") is None
            with pytest.raises(NotFound):
                await client.get(ConfigMap, "out", namespace="default")
            assert live.answers == before
            found = await client.get(ConfigMap, "out", namespace="default", consistency="live")
            assert found.data == {"x": "1", "y": "2"}
            # A namespace that is not watched is read where it is.
            assert (await client.get(ConfigMap, "far", namespace="elsewhere")).data == {"x": "1", "y": "2"}


async def test_a_watch_with_a_selector_of_its_own_answers_only_for_what_it_selects(
    embedded_control_plane: ControlPlane,
) -> None:
    async with cached(embedded_control_plane) as (live, client, cache):
        with cache.watch(ConfigMap, labels={"app": "web"}) as handle:
            await handle.synced()
            before = dict(live.answers)
            assert (await client.get(ConfigMap, "in", namespace="default")).data
            assert live.answers == before
            assert (await client.get(ConfigMap, "out", namespace="default")).data
            assert live.answers != before


async def test_a_strict_cache_refuses_live_reads_of_unwatched_kinds(embedded_control_plane: ControlPlane) -> None:
    async with cached(embedded_control_plane, strict=True) as (_, client, cache):
        message = r'no watch of ConfigMap can answer this read.*cache\.watch\(ConfigMap\).*consistency="live"'
        with pytest.raises(LookupError, match=message):
            await client.get(ConfigMap, "in", namespace="default")
        with pytest.raises(LookupError, match=message):
            await client.find(ConfigMap, "in", namespace="default")
        with pytest.raises(LookupError, match=message):
            await client.list(ConfigMap)
        assert await client.find(ConfigMap, "in", namespace="default", consistency="live") is not None
        assert await client.list(ConfigMap, consistency="live")
        await client.apply(settings("applied"))
        with cache.watch(ConfigMap):
            assert await client.find(ConfigMap, "in", namespace="default") is not None
            assert await client.find(ConfigMap, "none", namespace="default") is None


async def test_a_strict_cache_that_does_not_run_says_so(embedded_control_plane: ControlPlane) -> None:
    async with embedded_control_plane.client() as live:
        cache = Cache(live, strict=True)
        with cache.watch(ConfigMap), pytest.raises(LookupError, match="has not brought its objects yet, as its cache"):
            await CachedClient(live, cache).list(ConfigMap)


@pytest.mark.parametrize("read", ["get", "find", "list"])
@virtual
async def test_a_read_of_a_strict_cache_waits_until_the_watch_has_brought_its_objects(read: str) -> None:
    async with ControlPlane.embedded(controllers=[]) as plane, cached(plane, strict=True) as (live, client, cache):
        assert isinstance(plane, EmbeddedControlPlane)
        plane.faults.delay(lambda target: target.resource == "configmaps", 5.0)
        with cache.watch(ConfigMap, namespace="elsewhere"):
            before = sum(live.answers.values())
            match read:
                case "get":
                    found: list[ConfigMap | None] = [await client.get(ConfigMap, "far", namespace="elsewhere")]
                case "find":
                    found = [await client.find(ConfigMap, "far", namespace="elsewhere")]
                case _:
                    found = [*await client.list(ConfigMap, namespace="elsewhere")]
            assert [each.metadata.name for each in found if each is not None] == ["far"]
            assert sum(live.answers.values()) <= before + 1  # that of the watch


async def test_a_transformed_object_is_patched_and_not_updated(embedded_control_plane: ControlPlane) -> None:
    """An update would remove from the server what the transform has dropped."""
    async with cached(embedded_control_plane, {ConfigMap: CacheOptions(transform=without_y)}) as (_, client, cache):
        with cache.watch(ConfigMap) as handle:
            await handle.synced()
            read = await client.get(ConfigMap, "in", namespace="default")
            read.data["x"] = "2"
            with pytest.raises(
                ValueError, match=r"^ConfigMap default/in was read from a watch with a transform, .*patch"
            ):
                await client.update(read)
            patched = await client.patch(read)
            assert patched.data == {"x": "2", "y": "2"}

            patched.data["x"] = "3"
            assert (await client.update(patched)).data == {"x": "3", "y": "2"}
            whole = await client.get(ConfigMap, "in", namespace="default", consistency="live")
            whole.data["x"] = "4"
            assert (await client.update(whole)).data == {"x": "4", "y": "2"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([ConfigMap], "the options of a cache are by kind: write cache={Pod: CacheOptions("),
        ({"ConfigMap": CacheOptions()}, 'a kind is given by its class, not by its name "ConfigMap"'),
        ({ConfigMap: {"labels": "app=web"}}, "the cache options of ConfigMap are {'labels': 'app=web'}: write cache="),
        ({ConfigMap: CacheOptions(labels="a b c")}, '"a b c" is not a label selector'),
        ({ConfigMap: CacheOptions(fields={"metadata.Name": "a"})}, 'ConfigMap has no field "metadata.Name": did you'),
        (
            {ConfigMap: CacheOptions(namespaces="default")},
            "CacheOptions(namespaces='default') of ConfigMap: expected a",
        ),
        ({ConfigMap: CacheOptions(namespaces=["*"])}, 'namespaces="*" cannot be the name of a namespace'),
        ({Namespace: CacheOptions(namespaces=["a"])}, "Namespace is cluster-scoped and in no namespace: leave out"),
        (
            {ConfigMap: CacheOptions(transform=ANY)},
            "of ConfigMap: expected a function that takes the JSON of an object",
        ),
    ],
)
async def test_options_that_cannot_be_meant_are_refused_with_the_fix(options: Any, message: str) -> None:
    async with Client(Config(server="https://localhost")) as client:
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            Cache(client, options=options)


async def test_an_unknown_consistency_is_refused(embedded_control_plane: ControlPlane) -> None:
    async with cached(embedded_control_plane) as (_, client, _):
        for read in (client.get, client.find, client.list):
            arguments: tuple[Any, ...] = (ConfigMap,) if read == client.list else (ConfigMap, "in")
            with pytest.raises(ValueError, match=r'^consistency="strong": expected cached, own-writes, live$'):
                await read(*arguments, namespace="default", consistency=cast(Any, "strong"))
