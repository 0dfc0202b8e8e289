"""The server as an ASGI application, for uvicorn or any other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias, cast

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
        try:
            response = await self._server.respond(request)
            if response.stream is None:
                await _send_whole(response, send)
            else:
                await self._send_stream(response, receive, send)
        except ConnectionCut:
            scope[CLOSE]()
        except asyncio.CancelledError:
            # The server has stopped and cut the connection: no one waits for the response any more.
            scope[CLOSE]()

    async def _send_stream(self, response: HTTPResponse, receive: Receive, send: Send) -> None:
        async def until_gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        async def pieces() -> None:
            if response.stream is None:
                return
            async for piece in response.stream:
                await send({"type": "http.response.body", "body": piece, "more_body": True})

        await send(_start(response, length=None))
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


async def _request(scope: ASGIMessage, receive: Receive) -> HTTPRequest:
    fields = tuple((name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in scope["headers"])
    body = b""
    while True:
        message = await receive()
        # One byte over the limit is enough to be refused; the rest is read and forgotten.
        body += message.get("body", b"")[: MAX_BODY_SIZE + 1 - len(body)]
        if not message.get("more_body"):
            break
    return HTTPRequest(
        method=scope["method"],
        path=cast(bytes, scope.get("raw_path") or scope["path"].encode()).decode("latin-1"),
        query=cast(bytes, scope["query_string"]).decode("latin-1"),
        headers=dict(reversed(fields)),
        repeated=fields,
        body=body,
        certificate=scope.get(PEER),
    )


def _start(response: HTTPResponse, *, length: int | None) -> ASGIMessage:
    headers = [(name.lower().encode(), value.encode()) for name, value in response.headers]
    if not any(name == b"cache-control" for name, _ in headers):
        headers.append((b"cache-control", b"no-cache, private"))
    # A 304 has no content type, because caches would take it over. A 204 has no content.
    if response.status not in (204, 304):
        headers.append((b"content-type", response.content_type.encode()))
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
    return {"type": "http.response.start", "status": response.status, "headers": headers}


async def _send_whole(response: HTTPResponse, send: Send) -> None:
    await send(_start(response, length=len(response.body)))
    await send({"type": "http.response.body", "body": response.body})
