"""What is too large is refused while it is being sent."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from kubewright.controlplane import ControlPlane

CHUNK = b"10000\r\n" + b" " * 65536 + b"\r\n"


async def _answer(plane: ControlPlane, *pieces: bytes) -> bytes:
    """What is answered to a request that is never finished, up to the end of the connection."""
    address = urlsplit(plane.url)
    reader, writer = await asyncio.open_connection(
        address.hostname, address.port, ssl=plane.admin.ssl_context(), server_hostname="localhost"
    )
    received = b""
    try:
        async with asyncio.timeout(60):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            while part := await reader.read(65536):
                received += part
    except ConnectionError:
        pass  # some of what was sent is left unread
    writer.close()
    return received


async def test_a_head_of_more_than_a_mebibyte_is_refused(control_plane: ControlPlane) -> None:
    field = b"X-A: " + b"a" * 60_000 + b"\r\n"
    received = await _answer(control_plane, b"GET /version HTTP/1.1\r\nHost: x\r\n", *[field] * 20)
    assert received.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert received.endswith(b"\r\n\r\n431 Request Header Fields Too Large")


async def test_a_head_of_less_is_answered(control_plane: ControlPlane) -> None:
    field = b"X-A: " + b"a" * 60_000 + b"\r\n"
    received = await _answer(
        control_plane, b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", *[field] * 15, b"\r\n"
    )
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_chunked_body_is_refused_before_it_has_ended(control_plane: ControlPlane) -> None:
    head = (
        b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    # A little more than the three mebibytes that are accepted, and the quarter of one that the real server ignores
    # before it answers; the last chunk never comes.
    received = await _answer(control_plane, head, *[CHUNK] * 53)
    assert received.startswith(b"HTTP/1.1 413 Request Entity Too Large\r\n")
    assert b'"reason":"RequestEntityTooLarge"' in received
