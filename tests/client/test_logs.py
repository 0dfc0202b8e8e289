from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kubewright.api.core.v1 import Pod, PodSpec
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.client.client import Client
from kubewright.client.errors import BadRequest, ConnectionLost, NotFound

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer


async def test_a_log_comes_line_by_line(client: Client, server: ScriptedServer) -> None:
    body = server.streams(b"first\nsec", b"ond\n\nlast \xff")

    assert [text async for text in client.logs("web-1")] == ["first", "second", "", "last \ufffd"]
    assert server.sent[0].target == "/api/v1/namespaces/shop/pods/web-1/log"
    assert body.is_closed


async def test_the_pod_is_given_by_name_by_key_or_itself(client: Client, server: ScriptedServer) -> None:
    pod = Pod(metadata=ObjectMeta(name="db-0", namespace="data"), spec=PodSpec(containers=[]))
    for target in ("db-0", ObjectKey("data", "db-0"), pod):
        server.streams()
        assert [text async for text in client.logs(target, namespace="data")] == []

    assert {sent.path for sent in server.sent} == {"/api/v1/namespaces/data/pods/db-0/log"}


async def test_all_options_are_sent(client: Client, server: ScriptedServer) -> None:
    server.streams()
    lines = client.logs(
        "web-1",
        container="app",
        follow=True,
        previous=True,
        timestamps=True,
        since=datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
        tail=0,
        limit_bytes=100,
    )
    assert [text async for text in lines] == []

    assert server.sent[0].query == {
        "container": "app",
        "follow": "true",
        "previous": "true",
        "timestamps": "true",
        "sinceTime": "2024-01-02T03:04:05+00:00",
        "tailLines": "0",
        "limitBytes": "100",
    }


async def test_since_may_be_a_number_of_seconds(client: Client, server: ScriptedServer) -> None:
    server.streams()
    assert [text async for text in client.logs("web-1", since=60)] == []

    assert server.sent[0].query == {"sinceSeconds": "60"}


async def test_a_time_without_time_zone_is_refused(client: Client, server: ScriptedServer) -> None:
    with pytest.raises(ValueError, match="since=2024-01-02T00:00:00 has no time zone"):
        await anext(client.logs("web-1", since=datetime(2024, 1, 2)))  # what the test is about

    assert server.sent == []


async def test_leaving_early_closes_the_connection(client: Client, server: ScriptedServer) -> None:
    body = server.streams(b"first\n", ends=False)
    async with aclosing(client.logs("web-1", follow=True)) as lines:
        assert await anext(lines) == "first"
        assert not body.is_closed

    assert body.is_closed


async def test_a_log_that_is_refused_names_the_pod(client: Client, server: ScriptedServer) -> None:
    server.refuses(400, "BadRequest", "a container name must be specified")
    with pytest.raises(BadRequest, match=r"^get Pod/log shop/web-1: a container name must be specified$"):
        await anext(client.logs("web-1"))

    server.refuses(404, "NotFound", 'pods "web-1" not found', name="web-1")
    with pytest.raises(NotFound):
        await anext(client.logs("web-1"))


async def test_a_log_that_breaks_off_names_the_pod(client: Client, server: ScriptedServer) -> None:
    body = server.streams(b"first\n", ConnectionLost("the connection ended within the body"))
    lines = client.logs("web-1", follow=True)
    assert await anext(lines) == "first"
    with pytest.raises(ConnectionLost, match=r"^get Pod/log shop/web-1: the connection ended"):
        await anext(lines)

    assert body.is_closed
