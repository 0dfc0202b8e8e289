"""The server as an ASGI application, for uvicorn or any other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from email.utils import formatdate
from functools import lru_cache
from time import time
from typing import Any, TypeAlias, cast
from uuid import uuid4

from kubewright.controlplane.embedded.apimachinery.decoding import MAX_BODY_SIZE
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse
from kubewright.controlplane.embedded.server.api_server import APIServer
from kubewright.controlplane.embedded.server.faults import ConnectionCut

ASGIMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[ASGIMessage]]
Send: TypeAlias = Callable[[ASGIMessage], Awaitable[None]]

PEER = "kubewright.peer"
"""The key of the scope under which the client's certificate (DER) is found."""

CLOSE = "kubewright.close"
"""The key of the scope under which there is a function that ends the connection."""
_MAX_WRITE = 64 * 1024
_LINGER = 0.5
_MAX_AUDIT_ID = 64
_MAX_STATUS = 599  # uvicorn has no line for others, which a webhook may answer


class Application:
    """Translates between ASGI and the server. A watch ends as soon as its client has disconnected."""

    def __init__(self, server: APIServer) -> None:
        self._server = server
        self._streams: set[asyncio.Future[None]] = set()

    def end_streams(self) -> None:
        """End every watch, as if its time were over."""
        for sending in self._streams:
            sending.cancel()

    async def __call__(self, scope: ASGIMessage, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = await _request(scope, receive)
        if request is None:
            return
        try:
            response = await self._server.respond(request)
            if response.stream is None:
                linger = _discarded(receive) if len(request.body) > MAX_BODY_SIZE else None
                await _send_whole(response, request, send, linger)
            else:
                await self._send_stream(response, request, receive, send)
        except ConnectionCut:
            scope[CLOSE]()
        except asyncio.CancelledError:
            # The server has stopped and cut the connection: no one waits for the response any more.
            scope[CLOSE]()

    async def _send_stream(self, response: HTTPResponse, request: HTTPRequest, receive: Receive, send: Send) -> None:
        async def until_gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        async def pieces() -> None:
            if response.stream is None:
                return
            async for piece in response.stream:
                for part in _parts(piece):
                    await send({"type": "http.response.body", "body": part, "more_body": True})

        await send(_start(response, request, length=None))
        # The head is sent at once: a watch has begun even if no event ever comes.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        gone, sending = asyncio.ensure_future(until_gone()), asyncio.ensure_future(pieces())
        self._streams.add(sending)
        try:
            await asyncio.wait((gone, sending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._streams.discard(sending)
            for task in (gone, sending):
                task.cancel()
            results = await asyncio.gather(gone, sending, return_exceptions=True)
        failure = results[1]
        if isinstance(failure, Exception):
            raise failure
        # Not sent to a client that has disconnected.
        await send({"type": "http.response.body", "body": b""})


async def _request(scope: ASGIMessage, receive: Receive) -> HTTPRequest | None:
    """A request with its body, or with as much of it as is too much; None when its client has left meanwhile."""
    fields = tuple((name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in scope["headers"])
    pieces: list[bytes] = []
    size, is_complete = 0, False
    while not is_complete and size <= MAX_BODY_SIZE:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message["body"])
        size += len(message["body"])
        is_complete = not message["more_body"]
    return HTTPRequest(
        method=scope["method"],
        path=cast(bytes, scope.get("raw_path") or scope["path"].encode()).decode("latin-1"),
        query=cast(bytes, scope["query_string"]).decode("latin-1"),
        headers=dict(reversed(fields)),
        repeated=fields,
        body=b"".join(pieces),
        certificate=scope.get(PEER),
    )


def _start(response: HTTPResponse, request: HTTPRequest, *, length: int | None) -> ASGIMessage:
    headers = [(name.lower().encode(), value.encode()) for name, value in response.headers]
    # As the real server, under the identifier that the client gave the request.
    headers.append((b"audit-id", (request.header("audit-id")[:_MAX_AUDIT_ID] or str(uuid4())).encode()))
    headers.append((b"date", _http_date(int(time()))))
    if not any(name == b"cache-control" for name, _ in headers):
        headers.append((b"cache-control", b"no-cache, private"))
    # A 304 has no content type, because caches would take it over. A 204 has no content.
    if response.status not in (204, 304):
        headers.append((b"content-type", response.content_type.encode()))
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
    status = min(response.status, _MAX_STATUS)
    return {"type": "http.response.start", "status": status, "headers": headers}


async def _send_whole(response: HTTPResponse, request: HTTPRequest, send: Send, linger: Awaitable[None] | None) -> None:
    """Send a response; the connection ends after it, and after `linger`, if that is given."""
    start = _start(response, request, length=len(response.body))
    if linger is not None:
        start["headers"].append((b"connection", b"close"))
    await send(start)
    *parts, last = _parts(response.body)
    for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    if linger is not None:
        await send({"type": "http.response.body", "body": last, "more_body": True})
        await linger
        last = b""
    await send({"type": "http.response.body", "body": last})


@lru_cache(maxsize=1)
def _http_date(seconds: int) -> bytes:
    return formatdate(seconds, usegmt=True).encode()


async def _discarded(receive: Receive) -> None:
    """Let a client finish a body that was refused: to close in the middle of it would discard the response."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER):
            while (await receive()).get("more_body"):
                pass


def _parts(piece: bytes) -> Sequence[bytes | memoryview]:
    """What is written at once. A client that does not read holds no more than that, beside the whole itself."""
    if len(piece) <= _MAX_WRITE:
        return (piece,)
    view = memoryview(piece)
    return [view[start : start + _MAX_WRITE] for start in range(0, len(piece), _MAX_WRITE)]
