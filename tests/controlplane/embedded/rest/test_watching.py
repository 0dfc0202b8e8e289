"""Bookmarks on a server with no other writers: on a shared one their time is unknown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import cast

import pytest

from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.http.exchange import HTTPRequest
from kubewright.controlplane.embedded.rest import watching
from kubewright.controlplane.embedded.server.assembly import assemble


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        yield client.in_namespace("default")


async def test_an_idle_watch_gets_bookmarks(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_INTERVAL", 0.01)
    start = await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    async with client.watch(ConfigMap, resource_version=start.metadata.resource_version) as events:
        other = await client.create(Secret(metadata=ObjectMeta(name="a")))
        async with asyncio.timeout(30):
            event = await anext(aiter(events))
    assert (event.type, event.ends_initial_list) == ("BOOKMARK", False)
    assert event.header.resource_version == other.metadata.resource_version
    expected = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%s"}}'
    assert event.raw == expected % other.metadata.resource_version.encode()


async def test_a_bookmark_is_never_ahead_of_a_change_that_is_still_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who goes on from such a bookmark after the connection broke would never hear of the change."""
    monkeypatch.setattr(watching, "BOOKMARK_INTERVAL", 0.0)
    server = assemble(tokens={"sesame": UserInfo("admin", ("system:masters",))}).server
    path, headers = "/api/v1/namespaces/default/configmaps", {"authorization": "Bearer sesame"}

    async def create(name: str) -> None:
        body = b'{"metadata":{"name":"%s"}}' % name.encode()
        assert (await server.respond(HTTPRequest("POST", path, headers=headers, body=body))).status == 201

    query = f"watch=1&allowWatchBookmarks=true&resourceVersion={server.services.store.revision}"
    stream = (await server.respond(HTTPRequest("GET", path, query, headers))).stream
    assert stream is not None
    lines: list[bytes] = []
    await create("a")
    for name in "bcd":
        # The reader has this one in hand while the next happens.
        lines.append(await anext(stream))
        await create(name)
    lines += [await anext(stream) for _ in range(6)]
    marked, changes = 0, 0
    for line in b"".join(lines).splitlines():
        found = re.search(rb'"resourceVersion":"(\d+)"', line)
        assert found is not None
        if line.startswith(b'{"type":"BOOKMARK"'):
            marked = int(found[1])
        else:
            changes += 1
            assert int(found[1]) > marked
    assert changes == 4
    await cast("AsyncGenerator[bytes, None]", stream).aclose()


async def test_a_watch_ends_with_how_far_the_server_is(client: Client) -> None:
    start = await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    other = await client.create(Secret(metadata=ObjectMeta(name="a")))
    async with client.watch(ConfigMap, resource_version=start.metadata.resource_version, timeout=1) as events:
        seen = [(event.type, event.header.resource_version) async for event in events]
    assert seen == [("BOOKMARK", other.metadata.resource_version)]


async def test_a_watch_in_which_nothing_was_new_ends_without_an_event(client: Client) -> None:
    start = await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    async with client.watch(ConfigMap, resource_version=start.metadata.resource_version, timeout=1) as events:
        assert [event async for event in events] == []
