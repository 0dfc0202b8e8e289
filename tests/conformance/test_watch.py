"""Watching, on every control plane."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from tests.conformance.custom_kinds import DEFINITIONS, Kind, typed, version

from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config, Watch, WatchEvent
from kubewright.client.errors import Expired
from kubewright.controlplane import ControlPlane

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
    async with client.watch(ConfigMap, labels=ALL) as events:
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
    """The kind is younger than the requested revision."""
    with pytest.raises(Expired, match=r"^watch Widget .* too old resource version: 1"):
        async with client.watch(Dynamic.of("example.com/v1", "Widget"), resource_version="1") as events:
            await anext(aiter(events))


async def test_the_server_ends_a_watch_after_its_timeout(client: Client) -> None:
    async with client.watch(ConfigMap, labels=ALL, timeout=1, bookmarks=False) as events:
        assert [event async for event in events] == []


async def test_metadata_can_be_watched_alone(client: Client) -> None:
    await client.create(Secret(metadata=ObjectMeta(name="s", labels=ALL), string_data={"p": "hidden"}))
    async with client.watch(metadata_only(Secret), labels=ALL) as events:
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


async def test_a_deletion_shows_the_last_state_at_a_new_revision(client: Client) -> None:
    created = await client.create(config_map("a", x="1"))
    revision = created.metadata.resource_version
    async with client.watch(ConfigMap, labels=ALL, resource_version=revision, bookmarks=False) as events:
        await client.delete(created)
        (event,) = await first(events, 1)
    assert (event.type, event.object.data) == ("DELETED", {"x": "1"})
    assert int(event.header.resource_version) > int(created.metadata.resource_version)
    assert (await client.create(config_map("b"))).metadata.resource_version > event.header.resource_version


async def test_objects_come_and_go_with_their_labels(client: Client) -> None:
    """Who watches a selection sees an object that leaves it as deleted, and one that enters it as added."""
    created = await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    revision = created.metadata.resource_version
    async with client.watch(ConfigMap, labels=ALL, resource_version=revision, bookmarks=False) as events:
        created.metadata.labels = {**ALL}
        entered = await client.update(created)
        entered.data = {"x": "1"}
        changed = await client.update(entered)
        changed.metadata.labels = {}
        changed.data = {"x": "2"}
        left = await client.update(changed)
        await client.delete(left)
        await client.create(config_map("end"))
        seen = await first(events, 4)
    assert [(event.type, event.header.name) for event in seen] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "end"),
    ]
    # What leaves is shown as it was last selected, at the revision at which it left.
    assert seen[2].object.data == {"x": "1"}
    assert seen[2].object.metadata.labels == ALL
    assert seen[2].header.resource_version == left.metadata.resource_version


async def test_objects_come_and_go_with_their_fields(client: Client) -> None:
    names = [await client.create(config_map(name)) for name in "ab"]
    revision = names[0].metadata.resource_version
    fields = {"metadata.name": "b"}
    async with client.watch(ConfigMap, fields=fields, resource_version=revision, bookmarks=False) as events:
        await client.delete(names[0])
        await client.delete(names[1])
        seen = await first(events, 2)
    assert [(event.type, event.header.name) for event in seen] == [("ADDED", "b"), ("DELETED", "b")]


@pytest.mark.parametrize("revision", [None, "0"])
async def test_a_watch_from_the_beginning_reports_where_the_beginning_ends(
    client: Client, revision: str | None
) -> None:
    """Not only those who ask for initial events get them, and with bookmarks the mark of their end."""
    created = await client.create(config_map("a"))
    # "0" is answered from what is at hand, which this makes new enough.
    await client.list(ConfigMap, resource_version=created.metadata.resource_version)
    async with client.watch(ConfigMap, labels=ALL, resource_version=revision) as events:
        added, mark = await first(events, 2)
    assert (added.type, added.header.name) == ("ADDED", "a")
    assert (mark.type, mark.ends_initial_list) == ("BOOKMARK", True)
    assert int(mark.header.resource_version) >= int(added.header.resource_version)


async def test_nothing_before_the_mark_is_deleted(client: Client) -> None:
    for name in "abc":
        await client.create(config_map(name))
    await client.delete(ConfigMap, "b")
    async with client.watch(ConfigMap, labels=ALL, initial_events=True) as events:
        seen = await first(events, 3)
    assert [(event.type, event.header.name) for event in seen] == [("ADDED", "a"), ("ADDED", "c"), ("BOOKMARK", "")]


async def test_a_mark_has_the_kind_of_what_is_watched(client: Client) -> None:
    """Informers drop what is of another kind, and wait for ever for the end of the initial events."""
    async with client.watch(ConfigMap, labels=ALL, initial_events=True) as events:
        (of_objects,) = await first(events, 1)
    async with client.watch(metadata_only(ConfigMap), labels=ALL, initial_events=True) as marks:
        of_metadata = await anext(aiter(marks))
    assert b'"kind":"ConfigMap","apiVersion":"v1"' in of_objects.raw
    assert b'"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"' in of_metadata.raw
    assert of_objects.ends_initial_list
    assert of_metadata.ends_initial_list


async def test_without_bookmarks_there_is_none(client: Client) -> None:
    await client.create(config_map("a"))
    async with client.watch(ConfigMap, labels=ALL, bookmarks=False, timeout=1) as events:
        assert "BOOKMARK" not in {event.type async for event in events}


async def test_the_watches_of_a_kind_end_when_its_schema_changes(kind: Kind, client: Client) -> None:
    """Their events were read by the old one."""
    await kind.define(version())
    await kind.create("one")
    async with client.watch(things(kind), bookmarks=False) as watch:
        events = aiter(watch)
        # Only what it sends proves that the server serves the watch: one that is opened, too, may still be refused.
        assert (await anext(events)).object.metadata.name == "one"
        assert (await kind.change(version(schema=typed(note={"type": "string"})))).code == 200
        assert [event async for event in events] == []


async def test_the_watches_of_a_kind_end_with_its_definition(kind: Kind, client: Client) -> None:
    await kind.define(version())
    await kind.create("one")
    async with client.watch(things(kind), bookmarks=False) as watch:
        events = aiter(watch)
        assert (await anext(events)).object.metadata.name == "one"
        assert (await kind.ask("DELETE", f"{DEFINITIONS}/{kind.name}")).code == 200
        # Its objects go first; whether that is still emitted is a matter of time.
        assert {event.type async for event in events} <= {"DELETED"}


def things(kind: Kind) -> type[Dynamic]:
    return Dynamic.of(f"{kind.group}/v1", "Thing", plural="things")


@pytest.fixture
async def in_process_control_plane() -> AsyncIterator[ControlPlane]:
    async with ControlPlane.embedded() as plane:
        yield plane


@pytest.fixture(params=["embedded in process", "embedded by socket", "real by socket"])
def way(request: pytest.FixtureRequest) -> tuple[ControlPlane, str]:
    name, _, way = str(request.param).partition(" ")
    plane = request.getfixturevalue("in_process_control_plane" if way == "in process" else f"{name}_control_plane")
    assert isinstance(plane, ControlPlane)
    return plane, way


@pytest.fixture
async def either_way(way: tuple[ControlPlane, str]) -> AsyncIterator[Client]:
    """A client of each control plane, by each way there is to it."""
    plane, by = way
    client = plane.client() if by == "in process" else Client(Config.from_kubeconfig_text(plane.kubeconfig()))
    async with client:
        yield client.in_namespace("default")


async def test_hundreds_of_watches_see_the_same_in_the_same_order(either_way: Client) -> None:
    """Each begins at another moment; from there on all see the same."""
    client, labels = either_way, {"order": f"{random.getrandbits(64):x}"}
    revisions: list[int] = []
    names = [f"order-{labels['order']}-{number}" for number in range(5)]

    async def change(number: int) -> None:
        name = names[number % len(names)]
        found = await client.find(ConfigMap, name)
        if found is None:
            written = await client.create(ConfigMap(metadata=ObjectMeta(name=name, labels=labels)))
        elif number % 3 == 0:
            await client.delete(found)
            return
        else:
            found.data = {"n": str(number)}
            written = await client.update(found)
        revisions.append(int(written.metadata.resource_version))

    async def seen(watch: Watch[ConfigMap]) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        async for event in watch:
            found.append((event.type, event.header.name, event.header.resource_version))
            if event.header.name.endswith("-end"):
                return found
        raise AssertionError("the watch ended before the last change")

    await change(0)
    async with AsyncExitStack() as stack:
        watches: list[Watch[ConfigMap]] = []
        for number in range(1, 201):
            if number % 10 == 0:
                await change(number)
            start = str(random.choice(revisions))
            watch = client.watch(ConfigMap, labels=labels, resource_version=start, bookmarks=False)
            watches.append(await stack.enter_async_context(watch))
        readers = [asyncio.ensure_future(seen(watch)) for watch in watches]
        for number in range(200, 230):
            await change(number)
        await client.create(ConfigMap(metadata=ObjectMeta(name=f"order-{labels['order']}-end", labels=labels)))
        async with asyncio.timeout(60):
            orders = await asyncio.gather(*readers)
    await client.delete_all(ConfigMap, labels=labels)
    longest = max(orders, key=len)
    assert len(longest) > 30
    assert all(order == longest[-len(order) :] for order in orders)
    order_of_revisions = [int(revision) for _, _, revision in longest]
    assert order_of_revisions == sorted(set(order_of_revisions))
