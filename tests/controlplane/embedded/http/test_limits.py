"""What a client sends, or does not, is bounded in bytes and in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.apimachinery.decoding import MAX_BODY_SIZE
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.http import serving
from kubewright.controlplane.embedded.http.asgi import Application, ASGIMessage
from kubewright.controlplane.embedded.server.assembly import assemble

PATH = "/api/v1/namespaces/default/configmaps"


async def _connected(plane: ControlPlane) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(plane.url)
    return await asyncio.open_connection(
        address.hostname, address.port, ssl=plane.admin.ssl_context(), server_hostname="localhost"
    )


@pytest.fixture
async def plane(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ControlPlane]:
    """Its patience with heads and bodies is short."""
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(serving, "_BODY_SECONDS", 0.2)
    async with ControlPlane.embedded(controllers=[]) as plane:
        yield plane


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost:",
        b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        b"GET /version HTTP/1.1\r\nHost: x\r\n\r\nGET /version HTTP/1.1\r\nHost:",
    ],
    ids=["nothing", "half a head", "half a body", "half of the second head"],
)
async def test_a_request_that_does_not_arrive_ends_its_connection(plane: ControlPlane, sent: bytes) -> None:
    reader, writer = await _connected(plane)
    writer.write(sent)
    try:
        async with asyncio.timeout(60):
            received = await reader.read()
    except ConnectionError:
        received = b""
    writer.close()
    assert received.count(b"HTTP/1.1 ") == sent.count(b"/version HTTP/1.1\r\nHost: x")


async def test_a_watch_outlasts_the_deadlines_of_requests(plane: ControlPlane) -> None:
    reader, writer = await _connected(plane)
    writer.write(f"GET {PATH}?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    async with asyncio.timeout(60):
        received = await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_request_whose_client_left_within_the_body_is_not_executed() -> None:
    """Half of a YAML document is a YAML document."""
    server = assemble(tokens={"sesame": UserInfo("admin", ("system:masters",))}).server
    messages: list[ASGIMessage] = [
        {"type": "http.request", "body": b"metadata: {name: a}\n", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[ASGIMessage] = []

    async def receive() -> ASGIMessage:
        return messages.pop(0)

    async def send(message: ASGIMessage) -> None:
        sent.append(message)

    headers = [(b"authorization", b"Bearer sesame"), (b"content-type", b"application/yaml")]
    scope: ASGIMessage = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "headers": headers,
    }
    await Application(server)(scope, receive, send)
    assert (sent, list(server.audit.events)) == ([], [])


async def test_a_body_that_is_too_large_is_read_no_further() -> None:
    server = assemble(tokens={"sesame": UserInfo("admin", ("system:masters",))}).server
    taken: list[int] = []
    sent: list[ASGIMessage] = []

    async def receive() -> ASGIMessage:
        taken.append(0 if sent else 65536)
        return {"type": "http.request", "body": b" " * 65536, "more_body": not sent}

    async def send(message: ASGIMessage) -> None:
        sent.append(message)

    scope: ASGIMessage = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer sesame")],
    }
    await Application(server)(scope, receive, send)
    assert sum(taken) <= MAX_BODY_SIZE + 65536
    assert sent[0]["status"] == 413
    assert (b"connection", b"close") in sent[0]["headers"]


async def test_what_a_client_does_not_read_is_not_written() -> None:
    """Of an event of half a megabyte, a watcher that does not read has 64 KiB in its buffer, and no further event."""
    server = assemble(tokens={"sesame": UserInfo("admin", ("system:masters",))}).server
    store = server.services.store
    for name in "ab":
        store.create(f"/core/configmaps/default/{name}", {"metadata": {"name": name}, "data": {"x": "x" * 500_000}})
    sizes: list[int] = []
    stuck = asyncio.Event()
    requested = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> ASGIMessage:
        for message in requested:
            return message
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: ASGIMessage) -> None:
        if body := message.get("body"):
            sizes.append(len(body))
            stuck.set()
            await asyncio.Event().wait()

    scope: ASGIMessage = {
        "type": "http",
        "method": "GET",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"watch=1",
        "headers": [(b"authorization", b"Bearer sesame")],
        "kubewright.close": lambda: None,
    }
    watching = asyncio.create_task(Application(server)(scope, receive, send))
    await stuck.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    watching.cancel()
    await asyncio.wait((watching,))
    assert sizes == [64 * 1024]
