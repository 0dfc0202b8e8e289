"""Sending requests and receiving responses, over HTTP/1.1.

`Transport` is all the client knows: method, target, header fields, body in; status, header fields, body out. It does
not know about Kubernetes, credentials in header fields, or retries of responses; `HTTPTransport` is the one with
sockets.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from kubewright.client.errors import ConnectionLost
from kubewright.client.http.connection import SAFE, Connection
from kubewright.client.http.deadlines import Deadlines
from kubewright.client.http.dial import Dialer, TLSSource
from kubewright.client.http.pool import Pool
from kubewright.client.http.response import MAX_BODY, Headers, Response, StreamedResponse
from kubewright.client.http.server_url import ServerURL
from kubewright.client.write_guard import check_write

__all__ = ["HTTPTransport", "Headers", "Response", "StreamedResponse", "Transport"]

_WITH_BODY = frozenset({"PUT", "POST", "PATCH"})
# A body up to this size is copied behind the head, which is cheaper than a second write through TLS.
_JOINED = 64 * 1024


class Transport(Protocol):
    """Sends requests to one API server."""

    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        """The complete response, whatever its status; a `TransportError` when there is none.

        `target` is the path with its query, percent-encoded. `RequestTimeout` when the response is not complete after
        `timeout` seconds. Cancelling is safe at any point.
        """

    async def stream(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> StreamedResponse:
        """The response as soon as its head has arrived, which `timeout` is for. The caller closes it."""

    async def aclose(self) -> None:
        """Close every connection. Requests under way end with `ConnectionLost`; later ones are an error."""


class HTTPTransport:
    """Requests over a pool of keep-alive connections to `server`, whose path is put before every target.

    Guarantee: a read that was lost because the server had closed the idle connection is sent again, once. A write is
    sent again only when certainly no byte of it has left; any other loss is raised to the caller. Belongs to the
    event loop of its first request.

    `tls` is a context, or a function that returns one for each new connection; None is the system's trust. `proxy` is
    an http:// or https:// URL, with user and password if needed; the certificate of an https:// one is checked with
    `proxy_tls`, by default the system's trust.
    """

    def __init__(
        self,
        server: str,
        *,
        tls: TLSSource = None,
        server_name: str | None = None,
        proxy: str | None = None,
        proxy_tls: ssl.SSLContext | None = None,
        max_connections: int = 100,
        connect_timeout: float = 10.0,
        max_body: int = MAX_BODY,
    ) -> None:
        self._server = ServerURL.of_server(server)
        proxy_url = ServerURL.of_proxy(proxy) if proxy is not None else None
        self._dialer = Dialer(
            self._server,
            tls=tls,
            server_name=server_name,
            proxy=proxy_url,
            proxy_tls=proxy_tls,
            timeout=connect_timeout,
        )
        self._max_connections = max_connections
        self._max_body = max_body
        self._pool: Pool | None = None
        self._is_closed = False
        self._prefix = self._server.path
        self._fields = f" HTTP/1.1\r\nHost: {self._server.authority}\r\n"
        if proxy_url is not None and not self._server.tls:
            # No tunnel is needed: the proxy forwards requests that name the server.
            self._prefix = f"http://{self._server.authority}{self._server.path}"
            if proxy_url.authorization is not None:
                self._fields += f"Proxy-Authorization: {proxy_url.authorization}\r\n"

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
        message = self._compose(method, target, headers, body)
        pool = self._pool or self._start()
        now = pool.time()
        due = None if timeout is None else now + timeout
        patience = timeout or 0.0
        connection = pool.take(now) or await pool.wait(f"{method} {self._server.address}", due, patience)
        for is_last in (False, True):
            if method not in SAFE:
                # Asked before, and it may have been a long wait for the connection.
                try:
                    check_write()
                except BaseException:
                    connection.abort()
                    raise
            answer = connection.request(method, message, due, patience)
            try:
                return await answer
            except asyncio.CancelledError:
                connection.give_up(answer)
                raise
            except ConnectionLost:
                if is_last or not _may_repeat(method, connection):
                    raise
            finally:
                del answer  # it holds its error, whose traceback holds this frame
            connection = await pool.open(f"{method} {self._server.address}", due, patience, counted=True)
        raise AssertionError("the last attempt returns or raises")

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
        message = self._compose(method, target, headers, body)
        pool = self._pool or self._start()
        now = pool.time()
        due = None if timeout is None else now + timeout
        patience = timeout or 0.0
        what = f"{method} {self._server.address}"
        connection = pool.take_for_stream(now) or await pool.open(what, due, patience, counted=False)
        try:
            return await connection.stream(method, message, due, patience)
        except ConnectionLost:
            if not _may_repeat(method, connection):
                raise
        connection = await pool.open(what, due, patience, counted=False)
        return await connection.stream(method, message, due, patience)

    def drop_idle(self) -> None:
        """Use new credentials: idle connections are closed now, busy ones after their response."""
        if self._pool is not None:
            self._pool.drop_idle()

    def drop_writes(self) -> None:
        """Reset the connections of writes under way, so that what the server has not received never arrives."""
        if self._pool is not None:
            self._pool.drop_writes()

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        self._is_closed = True
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.aclose()

    def __repr__(self) -> str:
        return f"<HTTPTransport {self._server.address}>"

    def _start(self) -> Pool:
        if self._is_closed:
            raise RuntimeError(f"{self!r} is closed")
        loop = asyncio.get_running_loop()
        self._pool = Pool(
            loop,
            Deadlines(loop),
            self._dialer.dial,
            peer=self._server.address,
            limit=self._max_connections,
            max_body=self._max_body,
        )
        return self._pool

    def _compose(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes | None
    ) -> Sequence[bytes]:
        fields = _fields(tuple(headers))
        if not target.startswith("/") or not target.isascii() or not target.isprintable() or " " in target:
            path = target.partition("?")[0]
            raise ValueError(f"{path!r} is not a request target; expected a percent-encoded path that starts with /")
        head = f"{method} {self._prefix}{target}{self._fields}{fields}"
        if body:
            head += f"Content-Length: {len(body)}\r\n\r\n"
            if len(body) <= _JOINED:
                return (head.encode() + body,)
            return (head.encode(), body)
        if method in _WITH_BODY:
            head += "Content-Length: 0\r\n"
        return (f"{head}\r\n".encode(),)


# A program sends the same few sets of fields over and over.
@lru_cache(32)
def _fields(headers: tuple[tuple[str, str], ...]) -> str:
    fields = "".join([f"{name}: {value}\r\n" for name, value in headers])
    if fields.count("\n") != len(headers) or fields.count("\r") != len(headers):
        names = [name for name, value in headers if not set("\r\n").isdisjoint(name + value)]
        raise ValueError(f"a header field holds a line break: {', '.join(map(repr, names))}")
    return fields


def _may_repeat(method: str, connection: Connection) -> bool:
    # Only a loss that looks like an idle connection closed by the server; one on a fresh connection has another cause.
    return not connection.answered and (not connection.sent or (connection.reused and method in SAFE))
