"""Connecting: name resolution, TCP, the proxy's tunnel, TLS. Knows nothing of what is sent over the connection."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from kubewright.client.errors import ConnectionFailed
from kubewright.client.http import tcp
from kubewright.client.http.connection import Connection
from kubewright.client.http.failure import connect_failure
from kubewright.client.http.server_url import ServerURL
from kubewright.client.http.tunnel import Tunnel

TLSSource: TypeAlias = Callable[[], Awaitable[ssl.SSLContext | None]] | ssl.SSLContext | None

_HANGUP = "cannot connect to {}: the connection was closed during the TLS handshake"


class Dialer:
    """Makes connections to one server, directly or through a proxy.

    Guarantee: it ends within `timeout` seconds, and leaves no socket behind unless it succeeds.
    """

    def __init__(
        self,
        server: ServerURL,
        *,
        tls: TLSSource,
        server_name: str | None,
        proxy: ServerURL | None,
        proxy_tls: ssl.SSLContext | None,
        timeout: float,
    ) -> None:
        self._server = server
        self._tls = tls
        self._server_name = server_name or server.host
        self._proxy = proxy
        self._proxy_tls = proxy_tls
        self._timeout = timeout

    async def dial(self, connection: Connection) -> None:
        """Attach `connection` to the server. The TLS context is requested each time, so credentials rotate."""
        context = await self._context() if self._server.tls else None
        try:
            async with asyncio.timeout(self._timeout) as scope:
                await self._dial(connection, context)
        except TimeoutError:
            if not scope.expired():
                raise
            address = (self._proxy or self._server).address
            raise ConnectionFailed(f"cannot connect to {address}: no connection within {self._timeout:g} s") from None

    async def _context(self) -> ssl.SSLContext:
        context = await self._tls() if callable(self._tls) else self._tls
        return context if context is not None else ssl.create_default_context()

    async def _dial(self, connection: Connection, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        first = self._proxy or self._server
        try:
            socket, tunnel = await tcp.connect(loop, partial(Tunnel, loop, first.address), first.host, first.port)
        except (OSError, UnicodeError) as error:
            raise connect_failure(first.address, error) from error.with_traceback(None)
        try:
            transport = socket
            if self._proxy is not None and self._proxy.tls:
                proxy_tls = self._proxy_tls or ssl.create_default_context()
                transport = await _start_tls(loop, transport, tunnel, proxy_tls, self._proxy.host, first.address)
            if self._proxy is not None and self._server.tls:
                await tunnel.open(transport, self._server.address, self._proxy.authorization)
            if context is not None:
                transport = await _start_tls(
                    loop, transport, connection, context, self._server_name, self._server.address
                )
            else:
                transport.set_protocol(connection)
            connection.attach(transport, socket)
        except BaseException:
            socket.abort()
            raise


async def _start_tls(
    loop: asyncio.AbstractEventLoop,
    transport: asyncio.Transport,
    protocol: asyncio.Protocol,
    context: ssl.SSLContext,
    server_name: str,
    address: str,
) -> asyncio.Transport:
    if transport.is_closing():
        # uvloop would begin the handshake even so, and log a stack trace when that fails.
        raise ConnectionFailed(_HANGUP.format(address))
    # Errors go without the frames of the loop: those hold the future that holds the error, and so the whole connection.
    try:
        secured = await loop.start_tls(transport, protocol, context, server_hostname=server_name)
    except ConnectionError as error:
        raise ConnectionFailed(_HANGUP.format(address)) from error.with_traceback(None)
    except OSError as error:
        raise connect_failure(address, error) from error.with_traceback(None)
    if secured is None:  # what the loops raise when the peer closed during the handshake
        raise ConnectionFailed(_HANGUP.format(address))
    return secured
