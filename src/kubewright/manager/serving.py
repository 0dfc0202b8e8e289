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
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from msgspec import Struct

from kubewright.api.errors import KubernetesError

if TYPE_CHECKING:
    from kubewright.manager.served_connection import ServedConnection

CLOSE_GRACE = 5.0
"""Seconds that requests under way have left when the server closes."""

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


Handler: TypeAlias = Callable[[EndpointRequest], Awaitable[EndpointResponse] | EndpointResponse]
"""Answers requests. One that need not wait for anything may return the response itself, which saves a task."""


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
        max_connections: int = 200,
    ) -> None:
        """`tls` makes the context to serve with, when the server starts.

        With a `max_body_size`, in bytes, requests are POST and may have a body; otherwise they are GET or HEAD. One
        connection more than `max_connections` replaces the one whose client has been slow, or idle, for the longest
        time.
        """
        self._address = address = str(address)  # a number is no address: an error says so
        self._option = option
        self._tls = tls
        self.max_body_size = max_body_size
        self._body_limits: dict[str, int] = {}
        self._max_connections = max_connections
        self.methods = ("POST",) if max_body_size else ("GET", "HEAD")
        self._endpoint = None if address == "0" else _parse(address, option)
        self._routes: dict[str, Handler] = {}
        self._server: asyncio.Server | None = None
        self._port = 0
        self._connections: dict[ServedConnection, None] = {}  # in their order
        self._one_is_gone = asyncio.Event()
        self.listening = asyncio.Event()
        """Set while it listens."""
        self.is_closing = False
        """True once the connections that are open are to send no further requests."""

    def route(self, path: str, handler: Handler, *, max_body_size: int | None = None) -> None:
        """Let `handler` serve a path; one that ends in "/" stands for everything below it.

        With a `max_body_size` it takes larger bodies than other paths of the server do.
        """
        if path in self._routes:
            raise ValueError(f'the path "{path}" is answered already by another handler of {self._option}')
        self._routes[path] = handler
        if max_body_size is not None:
            self._body_limits[path] = max_body_size

    def body_limit(self, url: bytes) -> int:
        """The size in bytes of the largest body that is taken at a URL."""
        return self._body_limits.get(url.partition(b"?")[0].decode("latin-1"), self.max_body_size)

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
            # Not before there is something to serve.
            from kubewright.manager.served_connection import HEAD_TIMEOUT, LINGER, ServedConnection

            self._server = await asyncio.get_running_loop().create_server(
                lambda: ServedConnection(self),
                sock=listener,
                ssl=context,
                ssl_handshake_timeout=HEAD_TIMEOUT if context is not None else None,
                ssl_shutdown_timeout=LINGER if context is not None else None,
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
        try:
            await asyncio.sleep(0)  # what was answered just now is on its way then
            for connection in list(self._connections):
                if not connection.is_busy:
                    connection.abort()
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_GRACE):
                    await self._all_gone()
        finally:
            for connection in list(self._connections):
                connection.abort()
            await self._all_gone()
        # Not `wait_closed`: from Python 3.12 on it also waits for clients that have not done their TLS handshake.

    async def _all_gone(self) -> None:
        while self._connections:
            self._one_is_gone.clear()
            await self._one_is_gone.wait()

    # Called by its connections

    def admit(self, connection: ServedConnection) -> bool:
        """Whether there may be one more; one that waits for its client is closed for it."""
        if self.is_closing:
            return False
        # Those that were aborted are still here until nothing works on their requests any more.
        living = [each for each in self._connections if not each.is_aborted]
        if len(living) >= self._max_connections:
            slow = [each for each in living if each.waits_since is not None]
            if not slow:
                return False
            min(slow, key=lambda each: each.waits_since or 0.0).abort()
        self._connections[connection] = None
        return True

    def gone(self, connection: ServedConnection) -> None:
        """A connection is closed, and nothing works on a request of it any more."""
        self._connections.pop(connection, None)
        self._one_is_gone.set()

    def answer(self, request: EndpointRequest) -> EndpointResponse | Coroutine[None, None, EndpointResponse]:
        """The response of the handler of a path, or a coroutine for it; 404 when there is none, 500 when it fails."""
        handler = self._routes.get(request.path)
        if handler is None:
            fitting = [path for path in self._routes if path.endswith("/") and request.path.startswith(path)]
            if not fitting:
                return EndpointResponse(404, body=b"404 page not found\n")
            handler = self._routes[max(fitting, key=len)]
        try:
            answer = handler(request)
        except Exception:
            return _failed(request)
        return answer if isinstance(answer, EndpointResponse) else _awaited(request, answer)

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


async def _awaited(request: EndpointRequest, answer: Awaitable[EndpointResponse]) -> EndpointResponse:
    try:
        return await answer
    except Exception:
        return _failed(request)


def _failed(request: EndpointRequest) -> EndpointResponse:
    _log.exception("answering %s failed", request.path)
    return EndpointResponse(500, body=b"internal server error\n")


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
