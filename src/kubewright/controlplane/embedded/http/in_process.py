"""The transport to an embedded control plane in the same process: no sockets, the same responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from kubewright.api.resources import Object
from kubewright.api.selectors import Fields, Labels
from kubewright.client import Client
from kubewright.client.errors import ConnectionLost, RequestTimeout
from kubewright.client.http.response import Headers, Response, StreamedResponse
from kubewright.client.watch import Watch
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse
from kubewright.controlplane.embedded.server.api_server import APIServer
from kubewright.controlplane.embedded.server.faults import ConnectionCut

T = TypeVar("T", bound=Object)

_FOR_EVER = 100 * 365 * 24 * 3600.0
_ENOUGH = 1024 * 1024  # what may wait to be taken before the server has to


class InProcessTransport:
    """A `Transport` that calls the server; `certificate` is DER; `internal` is for the control plane itself."""

    def __init__(self, server: APIServer, certificate: bytes | None, *, internal: bool = False) -> None:
        self._server = server
        self._certificate = certificate
        self._internal = internal
        self._streams: set[_Stream] = set()

    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        """See `Transport.request`."""
        answer = await self._answer(method, target, headers, body, timeout)
        content = answer.body
        if answer.stream is not None:
            content = b"".join([piece async for piece in answer.stream])
        return Response(answer.status, _headers(answer), content)

    async def stream(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> StreamedResponse:
        """See `Transport.stream`."""
        answer = await self._answer(method, target, headers, body, timeout)
        stream = _Stream(answer, self._streams)
        self._streams.add(stream)
        return StreamedResponse(answer.status, _headers(answer), stream)

    async def aclose(self) -> None:
        """End every stream."""
        for stream in list(self._streams):
            await stream.aclose()

    async def _answer(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        timeout: float | None,
    ) -> HTTPResponse:
        path, _, query = target.partition("?")
        fields = tuple((name.lower(), value) for name, value in headers)
        request = HTTPRequest(
            method, path, query, dict(reversed(fields)), fields, body or b"", self._certificate, self._internal
        )
        # As on a socket, other tasks get their turn: a writer that never yields would make every watcher fall behind.
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(timeout):
                return await self._server.respond(request)
        except TimeoutError:
            raise RequestTimeout(f"{method}: no answer within {timeout:g} s") from None
        except ConnectionCut:
            raise ConnectionLost(f"{method}: the connection was closed without a response") from None


def _headers(answer: HTTPResponse) -> Headers:
    fields = [("content-type", answer.content_type)] if answer.content_type else []
    fields += answer.headers
    return Headers([(name.encode(), value.encode()) for name, value in fields])


class _Stream:
    """The body of a streamed response: a task reads it from the server, the client takes what has arrived."""

    def __init__(self, answer: HTTPResponse, open_streams: set[_Stream]) -> None:
        self._pieces = answer.stream if answer.stream is not None else _one(answer.body)
        self._open_streams = open_streams
        self._waiting = b""
        self._ready = asyncio.Event()
        self._taken = asyncio.Event()
        self._end: Exception | None = None
        self._ended = False
        self._task = asyncio.create_task(self._read())

    async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
        """See `ByteStream.receive`."""
        try:
            async with asyncio.timeout(idle_timeout):
                await self._ready.wait()
        except TimeoutError:
            await self.aclose()
            raise RequestTimeout(f"nothing came for {idle_timeout:g} s") from None
        data, self._waiting = self._waiting, b""
        self._taken.set()
        if not self._ended:
            self._ready.clear()
        elif not data and self._end is not None:
            raise self._end
        return data

    async def aclose(self) -> None:
        """Stop; the server notices."""
        self._open_streams.discard(self)
        if not self._task.done():
            self._end = self._end or ConnectionLost("the client was closed")
            self._task.cancel()
        await asyncio.wait((self._task,))

    async def _read(self) -> None:
        try:
            async for piece in self._pieces:
                self._waiting += piece
                self._ready.set()
                while len(self._waiting) > _ENOUGH:
                    self._taken.clear()
                    await self._taken.wait()
        except ConnectionCut:
            self._end = ConnectionLost("the connection was closed in the middle of the answer")
        finally:
            self._ended = True
            self._ready.set()
            close = getattr(self._pieces, "aclose", None)
            if close is not None:
                await close()


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body


class ControllersClient(Client):
    """The client of a control plane's own controllers. Its watches have no timeout and no bookmarks.

    Those are to detect dead connections, and there is no connection here. With them the watches of every
    kind would be most of what an idle control plane does.
    """

    def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        resource_version: str | None = None,
        initial_events: bool = False,
        bookmarks: bool = False,
        timeout: float = _FOR_EVER,
    ) -> Watch[T]:
        """See `Client.watch`; `bookmarks` and `timeout` are ignored."""
        return super().watch(
            kind,
            namespace=namespace,
            labels=labels,
            fields=fields,
            resource_version=resource_version,
            initial_events=initial_events,
            bookmarks=False,
            timeout=_FOR_EVER,
        )
