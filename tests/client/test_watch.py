from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kubewright.api.core.v1 import ConfigMap, Node
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.header import Header
from kubewright.api.kinds import ObjectKey
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client.client import Client
from kubewright.client.errors import (
    APIError,
    ConnectionLost,
    DecodeError,
    Expired,
    Forbidden,
    InternalError,
    ProtocolError,
    RequestTimeout,
    TooManyRequests,
)
from kubewright.client.watch import GATHER, INITIAL_EVENTS_END, WatchEvent, parse_event
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer, VirtualTime

METADATA: dict[str, JSONValue] = {"name": "a", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"}
OBJECT: dict[str, JSONValue] = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": METADATA, "data": {"x": "1"}}


def line(type_: str, content: JSONValue = OBJECT) -> bytes:
    """A line as the server writes it."""
    return json.dumps({"type": type_, "object": content}, separators=(",", ":")).encode()


def status(code: int, reason: str, message: str = "no", **details: JSONValue) -> dict[str, JSONValue]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_has_its_type_its_header_and_its_object(type_: str) -> None:
    event = parse_event(ConfigMap, line(type_))

    assert event.type == type_
    assert event.header == Header(name="a", namespace="shop", uid="u-1", resource_version="7")
    assert event.header.key == ObjectKey("shop", "a")
    assert event.object.data == {"x": "1"}
    assert json.loads(event.raw) == OBJECT
    assert not event.ends_initial_list
    assert repr(event) == f"WatchEvent({type_} ConfigMap shop/a @7)"


def test_the_object_is_decoded_once() -> None:
    event = parse_event(ConfigMap, line("ADDED"))

    assert event.object is event.object


def test_an_object_that_does_not_fit_its_type_is_an_error_only_when_asked_for() -> None:
    event = parse_event(ConfigMap, line("MODIFIED", {"kind": "ConfigMap", "metadata": METADATA, "data": 7}))

    assert event.header.key == ObjectKey("shop", "a")
    with pytest.raises(DecodeError, match=r'ConfigMap "shop/a": not a valid ConfigMap'):
        _ = event.object


def test_a_bookmark_shows_how_far_the_watch_has_come() -> None:
    event = parse_event(ConfigMap, line("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": "99"}}))

    assert event.type == "BOOKMARK"
    assert event.header.resource_version == "99"
    assert not event.ends_initial_list


def test_the_bookmark_that_ends_the_initial_list_says_so() -> None:
    metadata: dict[str, JSONValue] = {"resourceVersion": "99", "annotations": {INITIAL_EVENTS_END: "true"}}

    assert parse_event(ConfigMap, line("BOOKMARK", {"metadata": metadata})).ends_initial_list
    assert not parse_event(ConfigMap, line("ADDED", {"metadata": metadata})).ends_initial_list


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (status(410, "Expired", "too old resource version"), Expired),
        (status(410, "Gone"), Expired),
        (status(500, "InternalError"), InternalError),
        (status(403, "Forbidden"), Forbidden),
        (status(0, ""), APIError),
    ],
)
def test_an_error_event_is_raised_as_the_error_it_carries(content: JSONValue, error: type[APIError]) -> None:
    with pytest.raises(error) as caught:
        parse_event(ConfigMap, line("ERROR", content), "watch ConfigMap in shop")

    assert type(caught.value) is error
    assert str(caught.value).startswith("watch ConfigMap in shop: ")


def test_an_error_event_carries_what_the_server_asks_to_wait() -> None:
    with pytest.raises(TooManyRequests) as caught:
        parse_event(ConfigMap, line("ERROR", status(429, "TooManyRequests", retryAfterSeconds=5)))

    assert caught.value.retry_after == 5.0


@pytest.mark.parametrize(
    ("rubbish", "problem"),
    [
        (b"<html>", "a watch event that cannot be read"),
        (b"", "a watch event that cannot be read"),
        (b'{"type":"ADDED","object":{"metadata":{"name"', "a watch event that cannot be read"),
        (b'{"type":"ADDED","object":7}', "a watch event that cannot be read"),
        (b'{"type":"ADDED"}', "a watch event that cannot be read"),
        (line("PAUSED"), 'a watch event of the unknown type "PAUSED"'),
        (line("ERROR", {"code": "many"}), "a watch event that cannot be read"),
    ],
)
def test_rubbish_is_a_protocol_error(rubbish: bytes, problem: str) -> None:
    with pytest.raises(ProtocolError, match=f"^the server sent {problem}"):
        parse_event(ConfigMap, rubbish)


@pytest.mark.parametrize("field", ["data", "managedFields"])
def test_an_object_that_is_nested_too_deeply_is_still_named(field: str) -> None:
    deep = b'{"a":' * 300_000 + b"1" + b"}" * 300_000  # Python 3.14 skips 260,000 levels
    metadata = b'"metadata":{"name":"a","namespace":"shop","uid":"u-1","resourceVersion":"7","managedFields":[%b]}'
    content = metadata % deep if field == "managedFields" else metadata % b"" + b',"data":' + deep
    event = parse_event(ConfigMap, b'{"type":"MODIFIED","object":{%b}}' % content)

    assert (event.type, event.header.key, event.header.resource_version) == ("MODIFIED", ObjectKey("shop", "a"), "7")
    assert event.raw == b"{%b}" % content
    with pytest.raises(DecodeError, match='ConfigMap "shop/a": nested too deeply'):
        event.object  # noqa: B018  # decodes


def test_metadata_that_does_not_fit_is_left_out_of_the_header() -> None:
    event = parse_event(ConfigMap, line("ADDED", {"metadata": {**METADATA, "labels": {"a": 1}, "generation": "many"}}))

    assert (event.header.key, event.header.uid, event.header.resource_version) == (ObjectKey("shop", "a"), "u-1", "7")
    assert (event.header.labels, event.header.generation) == (None, 0)


def spellings(content: dict[str, JSONValue], type_: str) -> list[bytes]:
    """One event in every order of its keys, with and without white space and unknown keys."""
    fields: dict[str, JSONValue] = {"type": type_, "object": content, "novelty": {"type": "DELETED", "object": {}}}
    found = []
    for count in (2, 3):
        for names in itertools.permutations(fields, count):
            if "type" in names and "object" in names:
                event = {name: fields[name] for name in names}
                found += [
                    json.dumps(event, separators=(",", ":")).encode(),
                    json.dumps(event, separators=(",", ":")).encode() + b"\r",
                    json.dumps(event).encode(),
                    json.dumps(event, indent=1).replace("\n", " ").encode() + b"\r",
                ]
    return found


@given(
    st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]),
    st.dictionaries(st.sampled_from(["", "a", "type", "object", "}}", ',"object":']), st.text(), max_size=4),
)
def test_the_spelling_of_a_line_makes_no_difference(type_: str, data: dict[str, str]) -> None:
    """The quick cut and the parse in two passes are the same."""
    content: dict[str, JSONValue] = {"metadata": METADATA, "data": dict(data)}
    for spelling in spellings(content, type_):
        event = parse_event(ConfigMap, spelling)

        assert (event.type, event.header.key) == (type_, ObjectKey("shop", "a"))
        assert json.loads(event.raw) == content
        assert event.object.data == data


async def collected(client: Client) -> list[WatchEvent[ConfigMap]]:
    async with client.watch(ConfigMap, namespace="shop") as events:
        return [event async for event in events]


async def test_events_come_in_the_order_of_the_server_until_it_ends_the_watch(
    client: Client, server: ScriptedServer
) -> None:
    first, second = line("ADDED") + b"\n", line("DELETED") + b"\n"
    body = server.streams(first + second[:20], second[20:])

    assert [event.type for event in await collected(client)] == ["ADDED", "DELETED"]
    assert body.is_closed


async def test_one_undecodable_object_does_not_stop_the_watch(client: Client, server: ScriptedServer) -> None:
    bad = line("MODIFIED", {"metadata": {"name": "bad"}, "data": 7})
    server.streams(b"\n".join([line("ADDED"), bad, line("MODIFIED")]))

    assert [event.header.name for event in await collected(client)] == ["a", "bad", "a"]


async def test_a_watch_requests_bookmarks_and_a_timeout(client: Client, server: ScriptedServer) -> None:
    server.streams()
    server.streams()
    await collected(client)
    async with client.watch(ConfigMap, bookmarks=False, timeout=0.2):
        pass

    assert server.sent[0].target == (
        "/api/v1/namespaces/shop/configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds=290"
    )
    assert server.sent[0].header("Accept") == ["application/json"]
    assert server.sent[1].target == "/api/v1/configmaps?watch=true&timeoutSeconds=1"


async def test_a_watch_can_begin_with_what_exists(client: Client, server: ScriptedServer) -> None:
    server.streams()
    async with client.watch(ConfigMap, initial_events=True, bookmarks=False):
        pass

    assert server.sent[0].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "timeoutSeconds": "290",
    }


async def test_only_the_events_of_an_initial_list_are_gathered(client: Client, server: ScriptedServer) -> None:
    end: JSONValue = {"metadata": {"resourceVersion": "99", "annotations": {INITIAL_EVENTS_END: "true"}}}
    sent = [("ADDED", OBJECT), ("BOOKMARK", end), ("MODIFIED", OBJECT)]
    body = server.streams(*(line(type_, content) + b"\n" for type_, content in sent))
    async with client.watch(ConfigMap, initial_events=True) as events:
        gathers = [(event.type, body.gather) async for event in events]

    assert gathers == [("ADDED", GATHER), ("BOOKMARK", GATHER), ("MODIFIED", 0)]
    body = server.streams(line("ADDED"))
    async with client.watch(ConfigMap) as events:
        assert [body.gather async for event in events] == [0]


async def test_a_watch_can_start_from_a_revision_and_use_selectors(client: Client, server: ScriptedServer) -> None:
    server.streams()
    async with client.watch(
        ConfigMap, resource_version="7", labels={"app": "web"}, fields={"metadata.name": "a"}, timeout=60
    ):
        pass

    assert server.sent[0].query == {
        "labelSelector": "app=web",
        "fieldSelector": "metadata.name=a",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "60",
    }


async def test_a_silence_five_seconds_longer_than_the_watch_is_an_error(client: Client, server: ScriptedServer) -> None:
    body = server.streams(RequestTimeout("the server sent nothing for 65 s"))
    with pytest.raises(RequestTimeout, match=r"^watch ConfigMap in all namespaces: the server sent nothing"):
        async for _ in client.watch(ConfigMap, timeout=60):
            pass

    assert body.idle_timeout == 65
    assert body.is_closed


BOOKMARK: JSONValue = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "8"}}
END_OF_LIST: JSONValue = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "8", "annotations": {INITIAL_EVENTS_END: "true"}},
}


@pytest.mark.parametrize(
    ("events", "silence"),
    [
        ([line("ADDED")], 295),
        ([line("BOOKMARK", END_OF_LIST)], 295),
        ([line("BOOKMARK", BOOKMARK)], 90),
        ([line("BOOKMARK", END_OF_LIST), line("ADDED"), line("BOOKMARK", BOOKMARK), line("ADDED")], 90),
    ],
)
async def test_a_watch_that_has_brought_a_bookmark_is_dead_after_90_seconds_of_silence(
    client: Client, server: ScriptedServer, events: list[bytes], silence: float
) -> None:
    """Bookmarks come every minute; the one that ends the initial list promises no others."""
    body = server.streams(*(event + b"\n" for event in events))
    watch = client.watch(ConfigMap, initial_events=True)

    assert [event.type async for event in watch] == [json.loads(event)["type"] for event in events]
    assert body.idle_timeout == silence


async def test_a_watch_that_ends_sooner_is_not_waited_for_longer(client: Client, server: ScriptedServer) -> None:
    body = server.streams(line("BOOKMARK", BOOKMARK) + b"\n")
    assert len([event async for event in client.watch(ConfigMap, timeout=30)]) == 1

    assert body.idle_timeout == 35


async def test_a_dead_watch_says_why_it_is_taken_for_dead(client: Client, server: ScriptedServer) -> None:
    body = server.streams(line("BOOKMARK", BOOKMARK) + b"\n", RequestTimeout("the server sent nothing for 90 s"))
    with pytest.raises(RequestTimeout) as caught:
        await collected(client)

    assert str(caught.value) == (
        "watch ConfigMap in shop: the server sent nothing for 90 s, not even the bookmark that is due every minute; "
        "the connection is dead"
    )
    assert body.is_closed


def test_a_watch_that_falls_silent_ends_90_seconds_after_its_last_event(virtual_time: VirtualTime) -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as admin:
            assert isinstance(plane, EmbeddedControlPlane)
            async with admin.watch(ConfigMap, resource_version="1") as watch:
                await admin.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
                events = aiter(watch)
                while (await anext(events)).type != "BOOKMARK":
                    pass
                plane.faults.silence_open_watches(lambda target: target.verb == "watch")
                last = loop.time()
                with pytest.raises(RequestTimeout, match="the connection is dead"):
                    await anext(events)
                return loop.time() - last

    assert virtual_time.run(main()) == pytest.approx(90)


async def test_metadata_alone_can_be_watched(client: Client, server: ScriptedServer) -> None:
    server.streams(line("ADDED"))
    async with client.watch(metadata_only(ConfigMap)) as events:
        (event,) = [event async for event in events]

    assert event.object.metadata.name == "a"
    assert server.sent[0].header("Accept") == ["application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"]


async def test_an_expired_revision_is_raised_on_connecting_or_in_the_stream(
    client: Client, server: ScriptedServer
) -> None:
    server.refuses(410, "Expired", "too old")
    with pytest.raises(Expired, match=r"^watch ConfigMap in shop: too old$"):
        await collected(client)

    body = server.streams(line("ADDED") + b"\n" + line("ERROR", status(410, "Expired", "too old")))
    with pytest.raises(Expired, match=r"^watch ConfigMap in shop: too old$"):
        await collected(client)
    assert body.is_closed


async def test_rubbish_in_the_stream_names_the_watch(client: Client, server: ScriptedServer) -> None:
    server.streams(b"<html>\n")
    with pytest.raises(ProtocolError, match=r"^watch ConfigMap in shop: the server sent a watch event that cannot"):
        await collected(client)


async def test_a_broken_stream_returns_what_came_and_then_raises(client: Client, server: ScriptedServer) -> None:
    body = server.streams(line("ADDED") + b"\n", ConnectionLost("the connection ended within the body"))
    events = aiter(client.watch(ConfigMap, namespace="shop"))
    assert (await anext(events)).type == "ADDED"
    with pytest.raises(ConnectionLost, match=r"^watch ConfigMap in shop: the connection ended"):
        await anext(events)

    assert body.is_closed


async def test_leaving_early_closes_the_connection(client: Client, server: ScriptedServer) -> None:
    body = server.streams(line("ADDED") + b"\n", ends=False)
    async with client.watch(ConfigMap) as events:
        async for event in events:
            assert event.type == "ADDED"
            break
        assert not body.is_closed

    assert body.is_closed


async def test_a_watch_that_was_never_opened_can_be_closed(client: Client, server: ScriptedServer) -> None:
    await client.watch(ConfigMap).aclose()

    assert server.sent == []


async def test_a_watch_opens_when_first_iterated(client: Client, server: ScriptedServer) -> None:
    body = server.streams(line("ADDED"))
    watch = client.watch(ConfigMap)
    assert server.sent == []

    assert [event.type async for event in watch] == ["ADDED"]
    assert body.is_closed


async def test_cluster_scoped_kinds_are_watched_from_a_namespaced_view_too(
    client: Client, server: ScriptedServer
) -> None:
    server.refuses(403, "Forbidden")
    with pytest.raises(Forbidden, match=r"^watch Node: no$"):
        async with client.in_namespace("shop").watch(Node):
            pass

    server.streams(b"rubbish")
    with pytest.raises(ProtocolError, match=r"^watch Node: the server sent"):
        async for _ in client.in_namespace("shop").watch(Node):
            pass
    assert server.sent[1].path == "/api/v1/nodes"


async def test_kinds_without_a_python_type_can_be_watched(client: Client, server: ScriptedServer) -> None:
    server.answers({"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True}]})
    server.streams(line("ADDED", {"kind": "Widget", "metadata": METADATA, "spec": {"size": 3}}))
    async with client.watch(Dynamic.of("example.com/v1", "Widget"), namespace="shop") as events:
        (event,) = [event async for event in events]

    assert event.object.get("spec", "size") == 3
    assert server.sent[1].path == "/apis/example.com/v1/namespaces/shop/widgets"
