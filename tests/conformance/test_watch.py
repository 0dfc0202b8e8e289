"""Watching, on every control plane."""

from __future__ import annotations

import asyncio

import pytest

from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Watch, WatchEvent
from kubewright.client.errors import Expired

ALL = {"watched": "yes"}


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels=ALL), data=data)


async def first(events: Watch[ConfigMap], count: int) -> list[WatchEvent[ConfigMap]]:
    found: list[WatchEvent[ConfigMap]] = []
    async for event in events:
        found.append(event)
        if len(found) == count:
            break
    return found


async def test_changes_come_in_order(client: Client) -> None:
    start = await client.create(config_map("a"))
    revision = start.metadata.resource_version
    async with client.watch(ConfigMap, labels=ALL, resource_version=revision, bookmarks=False) as events:
        created = await client.create(config_map("b"))
        created.data["x"] = "1"
        updated = await client.update(created)
        await client.delete(updated)
        seen = await first(events, 3)
    assert [(event.type, event.header.name) for event in seen] == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]
    assert seen[0].object.data == {}
    assert seen[1].object.data == {"x": "1"}
    revisions = [int(event.header.resource_version) for event in seen]
    assert revisions == sorted(set(revisions))
    assert seen[1].object == updated


async def test_the_object_is_cut_out_of_the_line_without_a_second_parse(client: Client) -> None:
    """The fast path relies on the server writing `type` before `object`, and nothing after."""
    created = await client.create(config_map("a"))
    async with client.watch(ConfigMap, labels=ALL, resource_version="0") as events:
        response = events._response
        assert response is not None
        line = await anext(aiter(response.lines()))
    assert line.startswith(b'{"type":"ADDED","object":{"kind":"ConfigMap",')
    assert line.endswith(b"}}")
    assert created.metadata.uid.encode() in line


async def test_the_initial_list_can_be_streamed(client: Client) -> None:
    for name in "abc":
        await client.create(config_map(name))
    names: list[str] = []
    async with client.watch(ConfigMap, labels=ALL, initial_events=True) as events:
        async for event in events:
            if event.ends_initial_list:
                break
            assert event.type == "ADDED"
            names.append(event.header.name)
    assert names == ["a", "b", "c"]


@pytest.mark.usefixtures("widgets")
async def test_a_revision_the_server_has_forgotten_is_expired(client: Client) -> None:
    """The kind is younger than the revision that is asked for."""
    with pytest.raises(Expired, match=r"^watch Widget .* too old resource version: 1"):
        async with client.watch(Dynamic.of("example.com/v1", "Widget"), resource_version="1") as events:
            await anext(aiter(events))


async def test_the_server_ends_a_watch_after_its_timeout(client: Client) -> None:
    async with client.watch(ConfigMap, labels=ALL, timeout=1, bookmarks=False) as events:
        assert [event async for event in events] == []


async def test_metadata_can_be_watched_alone(client: Client) -> None:
    await client.create(Secret(metadata=ObjectMeta(name="s", labels=ALL), string_data={"p": "hidden"}))
    async with client.watch(metadata_only(Secret), labels=ALL, resource_version="0") as events:
        event = await anext(aiter(events))
    assert event.object.metadata.name == "s"
    assert b"hidden" not in event.raw
    assert b'"data"' not in event.raw


async def test_a_watch_that_is_cancelled_leaves_the_client_usable(client: Client) -> None:
    entered = asyncio.Event()

    async def watch_for_ever() -> None:
        async with client.watch(ConfigMap, labels=ALL) as events:
            entered.set()
            async for _ in events:
                pass

    task = asyncio.create_task(watch_for_ever())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await client.find(ConfigMap, "nothing") is None
