"""What the port does with connections."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from urllib.parse import urlsplit

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.client.http.transport import HTTPTransport
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.http.asgi import Application
from kubewright.controlplane.embedded.http.serving import Serving
from kubewright.controlplane.embedded.server.assembly import assemble


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_headers() -> None:
    """Headers and body are two packets. Held back until the first is acknowledged, the second comes 40 ms later."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving = Serving(Application(assemble().server), tls, "127.0.0.1", 0)
    listener = serving._socket
    with listener, socket.create_connection(("127.0.0.1", serving.port)):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


async def test_an_upgrade_to_websocket_gets_an_ordinary_response(caplog: pytest.LogCaptureFixture) -> None:
    """fabric8 requests one first, and takes the stream when it gets none."""
    head = (
        "GET /api/v1/namespaces?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    async with ControlPlane.embedded(controllers=[]) as plane:
        address = urlsplit(plane.url)
        reader, writer = await asyncio.open_connection(
            address.hostname, address.port, ssl=plane.admin.ssl_context(), server_hostname="localhost"
        )
        writer.write(head.encode())
        async with asyncio.timeout(30):
            status = await reader.readline()
            body = await reader.readuntil(b'{"type":"ADDED"')
        writer.close()
        await writer.wait_closed()
    assert status == b"HTTP/1.1 200 OK\r\n"
    assert b"application/json" in body
    assert [record.getMessage() for record in caplog.records if "upgrade" in record.getMessage().lower()] == []


async def test_stopping_ends_open_watches_orderly_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ControlPlane.embedded(controllers=[]) as plane:
        transport = HTTPTransport(plane.url, tls=plane.admin.ssl_context())
        stream = await transport.stream("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=3600")
        first = await anext(stream)
    async with asyncio.timeout(60):
        rest = [piece async for piece in stream]  # a connection that was cut would raise here
    await transport.aclose()

    assert first.startswith(b'{"type":"ADDED"')
    assert b"ERROR" not in b"".join(rest)
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_stopping_does_not_wait_for_a_client_that_does_not_read(caplog: pytest.LogCaptureFixture) -> None:
    head = b"GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n"
    async with asyncio.timeout(60), ControlPlane.embedded(controllers=[]) as plane, plane.client() as admin:
        address = urlsplit(plane.url)
        reader, writer = await asyncio.open_connection(
            address.hostname, address.port, ssl=plane.admin.ssl_context(), server_hostname="localhost", limit=1024
        )
        writer.write(head)
        await reader.readline()
        # More than the buffers of both ends hold.
        for number in range(12):
            large = ConfigMap(
                metadata=ObjectMeta(name=f"large-{number}", namespace="default"), data={"x": "x" * 900_000}
            )
            await admin.create(large)
    writer.close()

    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_a_program_that_logs_everything_does_not_see_lines_of_uvicorn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ControlPlane.embedded(controllers=[]) as plane:
        transport = HTTPTransport(plane.url, tls=plane.admin.ssl_context())
        assert (await transport.request("GET", "/version")).status == 200
        await transport.aclose()

    assert [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")] == []
