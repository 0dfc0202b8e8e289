"""A small HTTP/1.1 server for the endpoints of a manager: health, metrics, debugging, webhooks.

    server = Server(":8080", option="metrics_address")
    server.route("/metrics", metrics.answer)
    async with server:
        ...

It answers GET and HEAD, or POST with bodies of a limited size, over TLS if given a context. Every request is answered
or its connection closed; nothing a client sends makes the server fail or leak.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Self, TypeAlias
from urllib.parse import parse_qs, unquote

import httptools
from msgspec import Struct

from kubewright.api.errors import KubernetesError

MAX_HEAD = 16 * 1024
"""Bytes of request line and header fields."""
HEAD_TIMEOUT = 10.0
"""Seconds in which a request has to arrive, once it has begun."""
FIRST_TIMEOUT = 5.0
"""Seconds in which the first request of a connection has to begin."""
IDLE_TIMEOUT = 90.0
"""Seconds for which a connection may be idle between requests."""
WRITE_TIMEOUT = 30.0
"""Seconds in which a client has to read a response."""
MAX_CONNECTIONS = 200
"""One more replaces the one whose client has been slow, or idle, for the longest time."""
CLOSE_GRACE = 5.0
"""Seconds that requests under way have left when the server closes."""

_LINGER = 1.0
_REASONS = {
    errno.EADDRINUSE: "another program listens there",
    errno.EACCES: "ports below 1024 need more rights than this program has",
}

_log = logging.getLogger(__name__)


class AddressError(KubernetesError):
    """The server cannot listen where it should; the message names the option."""


class EndpointRequest(Struct, frozen=True):
    """One request. Header names are in lower case; of one that was sent twice, the last counts."""

    path: str
    parameters: Mapping[str, list[str]] = {}
    headers: Mapping[str, str] = {}
    method: str = "GET"
    body: bytes = b""


class EndpointResponse(Struct, frozen=True):
    """One response."""

    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    body: bytes = b""


Handler: TypeAlias = Callable[[EndpointRequest], Awaitable[EndpointResponse]]


class Server:
    """Listens at `address` while it is used in `async with`.

    An address is ":8080" for all interfaces, "127.0.0.1:0", "[::1]:8080", or "0" for not at all. `option` is how the
    user calls it, for errors. Leaving closes idle connections at once and gives requests under way five seconds.
    """

    def __init__(
        self,
        address: str,
        *,
        option: str = "address",
        tls: Callable[[], ssl.SSLContext] | None = None,
        max_body_size: int = 0,
    ) -> None:
        """`tls` makes the context to serve with, when the server starts.

        With a `max_body_size`, in bytes, requests are POST and may have a body; otherwise they are GET or HEAD.
        """
        self._address = address = str(address)  # a number is no address: an error says so
        self._option = option
        self._tls = tls
        self.max_body_size = max_body_size
        self.methods = ("POST",) if max_body_size else ("GET", "HEAD")
        self._endpoint = None if address == "0" else _parse(address, option)
        self._routes: dict[str, Handler] = {}
        self._server: asyncio.Server | None = None
        self._port = 0
        self._connections: dict[asyncio.Task[None], _Connection] = {}
        self.listening = asyncio.Event()
        """Set while it listens."""
        self.is_closing = False
        """True once the connections that are open are to send no further requests."""

    def route(self, path: str, handler: Handler) -> None:
        """Let `handler` serve a path; one that ends in "/" stands for everything below it."""
        if path in self._routes:
            raise ValueError(f'the path "{path}" is answered already by another handler of {self._option}')
        self._routes[path] = handler

    @property
    def is_enabled(self) -> bool:
        """False when the address is "0"."""
        return self._endpoint is not None

    @property
    def routes(self) -> Mapping[str, Handler]:
        """The handlers, by path."""
        return self._routes

    @property
    def port(self) -> int:
        """The port it listens on; 0 when it does not."""
        return self._port

    async def __aenter__(self) -> Self:
        if self._endpoint is not None:
            context = self._tls() if self._tls is not None else None
            listener = await self._listen(*self._endpoint)
            self._port = listener.getsockname()[1]
            self.is_closing = False
            self._server = await asyncio.start_server(
                self._connected,
                sock=listener,
                ssl=context,
                ssl_handshake_timeout=HEAD_TIMEOUT if context is not None else None,
                ssl_shutdown_timeout=_LINGER if context is not None else None,
                limit=MAX_HEAD,
            )
            self.listening.set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        self._port = 0
        self.listening.clear()
        self.is_closing = True
        server.close()
        for task, connection in self._connections.items():
            if not connection.is_answering and not connection.is_receiving:
                task.cancel()
                connection.abort()
        try:
            if self._connections:
                await asyncio.wait(self._connections, timeout=CLOSE_GRACE)
        finally:
            tasks = list(self._connections)
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
        await server.wait_closed()

    async def answer(self, request: EndpointRequest) -> EndpointResponse:
        """The response of the handler of a path; 404 when there is none, 500 when it fails."""
        handler = self._routes.get(request.path)
        if handler is None:
            fitting = [path for path in self._routes if path.endswith("/") and request.path.startswith(path)]
            if not fitting:
                return EndpointResponse(404, body=b"404 page not found\n")
            handler = self._routes[max(fitting, key=len)]
        try:
            return await handler(request)
        except Exception:
            _log.exception("answering %s failed", request.path)
            return EndpointResponse(500, body=b"internal server error\n")

    async def _listen(self, host: str, port: int) -> socket.socket:
        try:
            if not host:
                return _listen_everywhere(port)
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            # One socket, as in Go: with port 0 two would get two ports.
            family, _, _, _, endpoint = min(found, key=lambda entry: entry[0] != socket.AF_INET)
            return socket.create_server(endpoint[:2], family=family, backlog=128)
        except (OSError, UnicodeError) as error:
            reason = str(error)
            if isinstance(error, OSError):
                reason = _REASONS.get(error.errno or 0) or error.strerror or reason
            raise AddressError(
                f'cannot listen on "{self._address}" ({self._option}): {reason}; '
                'choose another address, or "0" to do without'
            ) from None

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_closing or not self._has_room():
            writer.transport.abort()
            return
        connection = _Connection(self, reader, writer)
        task = asyncio.get_running_loop().create_task(connection.run())
        self._connections[task] = connection
        task.add_done_callback(self._connections.__delitem__)

    def _has_room(self) -> bool:
        """Whether there may be one more connection; one that waits for its client is closed for it."""
        if len(self._connections) < MAX_CONNECTIONS:
            return True
        # Those that were cancelled are still here until their tasks have ended.
        living = {task: each for task, each in self._connections.items() if not task.cancelling()}
        if len(living) < MAX_CONNECTIONS:
            return True
        slow = [task for task, each in living.items() if each.waits_since is not None]
        if not slow:
            return False
        slowest = min(slow, key=lambda task: living[task].waits_since or 0.0)
        slowest.cancel()
        living[slowest].abort()
        return True


class _Request(Struct, frozen=True):
    method: bytes
    url: bytes
    headers: dict[str, str]
    body: bytes
    is_last: bool


class _Connection:
    """One client: reads its requests one after the other and answers them in that order."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._parser = httptools.HttpRequestParser(self)
        # What is to be answered next: requests, and at the end the error of a malformed one.
        self._waiting: deque[_Request | EndpointResponse] = deque()
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_size = 0
        self._size = 0
        self._unfinished = 0
        self._time = asyncio.get_running_loop().time
        self._patience = FIRST_TIMEOUT
        self.is_answering = False
        self.is_receiving = False
        """From the end of the header fields of a request to the end of its body."""
        self.waits_since: float | None = self._time()
        """Since when it waits for its client to send or to take something; None while a handler is at work."""

    async def run(self) -> None:
        """Serve until the client leaves, misbehaves or got the last response."""
        # Sending ends only when all of a response is on its way, so that closing has nothing to wait for.
        self._writer.transport.set_write_buffer_limits(high=0)
        try:
            while await self._exchange():
                pass
        except OSError:
            # Gone, or too slow: nothing can be sent to it.
            self.abort()
        except asyncio.CancelledError:
            # The server closes, or needs the connection, and does not wait for the client.
            self.abort()
            raise
        finally:
            self._writer.close()

    def abort(self) -> None:
        """Close the socket at once; for the caller that cancels `run`, which may not have started."""
        self._writer.transport.abort()

    async def _exchange(self) -> bool:
        """Answer the next request. False when it was the last one."""
        if not self._waiting and not await self._read():
            return False
        self.is_answering = True
        next_one = self._waiting.popleft()
        if isinstance(next_one, EndpointResponse):
            await self._write(next_one, with_body=True, is_last=True)
            await self._linger()
            return False
        self.waits_since = None
        answer = await self._answer(next_one)
        self.waits_since = self._time()
        is_last = next_one.is_last or self._server.is_closing
        await self._write(answer, with_body=next_one.method != b"HEAD", is_last=is_last)
        self.is_answering = False
        self._patience = IDLE_TIMEOUT
        self.waits_since = self._time()
        return not is_last

    async def _read(self) -> bool:
        """Wait for a request, complete or refused. False when the client left."""
        has_begun = self._unfinished > 0
        async with asyncio.timeout(HEAD_TIMEOUT if has_begun else self._patience) as limit:
            while not self._waiting:
                data = await self._reader.read(MAX_HEAD)
                if not data:
                    return False
                if not has_begun:
                    has_begun = True
                    limit.reschedule(self._time() + HEAD_TIMEOUT)
                self._unfinished += len(data)
                try:
                    self._parser.feed_data(data)
                except httptools.HttpParserUpgrade:
                    pass  # the client offers an upgrade; the request itself is complete
                except httptools.HttpParserError:
                    self._refuse(400, "this is not a request that HTTP/1.1 knows")
                if self._unfinished > MAX_HEAD and not self.is_receiving and not self._waiting:
                    self._refuse(431, f"more than {MAX_HEAD} bytes of header fields")
        return True

    async def _answer(self, request: _Request) -> EndpointResponse:
        try:
            url = httptools.parse_url(request.url)
            path = unquote(url.path.decode("ascii"), errors="strict")
            parameters = parse_qs((url.query or b"").decode("ascii"), keep_blank_values=True)
        except (httptools.HttpParserError, ValueError, AttributeError):
            return EndpointResponse(400, body=b"this is not a path\n")
        return await self._server.answer(
            EndpointRequest(path, parameters, request.headers, request.method.decode(), request.body)
        )

    async def _write(self, answer: EndpointResponse, *, with_body: bool, is_last: bool) -> None:
        head = (
            f"HTTP/1.1 {answer.status} {_phrase(answer.status)}\r\n"
            f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n"
            f"X-Content-Type-Options: nosniff\r\nAllow: {', '.join(self._server.methods)}\r\n"
            f"Connection: {'close' if is_last else 'keep-alive'}\r\n\r\n"
        )
        self._writer.write(head.encode() + (answer.body if with_body else b""))
        async with asyncio.timeout(WRITE_TIMEOUT):
            await self._writer.drain()

    async def _linger(self) -> None:
        """Let a client finish sending: closing in the middle of it would discard the response."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                while await self._reader.read(MAX_HEAD):
                    pass

    def _refuse(self, status: int, reason: str) -> None:
        if not self._waiting or not isinstance(self._waiting[-1], EndpointResponse):
            self._waiting.append(EndpointResponse(status, body=f"{reason}\n".encode()))

    # Called by the parser

    def on_message_begin(self) -> None:
        self._url, self._headers, self._size = b"", {}, 0
        self._body, self._body_size = [], 0

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._size += len(name) + len(value) + 4

    def on_headers_complete(self) -> None:
        server = self._server
        if self._size > MAX_HEAD:
            self._refuse(431, f"more than {MAX_HEAD} bytes of header fields")
        elif self._parser.get_method().decode("latin-1") not in server.methods:
            self._refuse(405, f"only {' and '.join(server.methods)} are answered here")
        elif int(self._headers.get("content-length", "0")) > server.max_body_size or (
            not server.max_body_size and "transfer-encoding" in self._headers
        ):
            self._refuse_body()
        else:
            self.is_receiving = True

    def on_body(self, part: bytes) -> None:
        self._body_size += len(part)
        if self._body_size > self._server.max_body_size:
            self._body = []
            self._refuse_body()
        else:
            self._body.append(part)

    def _refuse_body(self) -> None:
        limit = self._server.max_body_size
        self._refuse(413, f"a body of more than {limit} bytes is not taken here" if limit else "no body is taken here")

    def on_message_complete(self) -> None:
        self._unfinished = 0
        self.is_receiving = False
        if not self._waiting or not isinstance(self._waiting[-1], EndpointResponse):
            is_last = not self._parser.should_keep_alive() or self._parser.should_upgrade()
            body = b"".join(self._body)
            self._waiting.append(_Request(self._parser.get_method(), self._url, self._headers, body, is_last))


def _parse(address: str, option: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise AddressError(
            f'"{address}" ({option}) is not an address to listen on: expected ":8080" for all interfaces, '
            '"127.0.0.1:8080", "[::1]:8080", or "0" to do without'
        )
    return host, int(port)


def _listen_everywhere(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, backlog=128, dualstack_ipv6=True)
        except OSError as error:
            # IPv6 is compiled in, but switched off.
            if error.errno != errno.EADDRNOTAVAIL:
                raise
    return socket.create_server(("", port), backlog=128)


@cache
def _phrase(status: int) -> str:
    from http import HTTPStatus  # not before there is something to answer

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
