"""The server behind a port: TLS with optional client certificates, on uvicorn."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import Final, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from kubewright.controlplane.embedded.http.asgi import CLOSE, PEER, Application

_BACKLOG: Final = 2048
_GRACE: Final = 1.0

_log = logging.getLogger("kubewright.controlplane")


class _Protocol(HttpToolsProtocol):
    """Passes the client certificate of the connection to the application."""

    _peer: bytes | None = None

    def __init__(self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, object]) -> None:
        super().__init__(config, server_state, app_state)
        self.logger = _log

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Keep the client's certificate; TLS has checked it against our authority."""
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        self._peer = tls.getpeercert(binary_form=True) if tls is not None else None

    def on_message_begin(self) -> None:
        """Put it into the scope of each request, and a way to break the connection."""
        super().on_message_begin()
        cast("dict[str, object]", self.scope).update({PEER: self._peer, CLOSE: self.transport.close})

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: an upgrade to WebSocket is ignored and the request answered as any other."""


class Serving:
    """One listening socket. `start` returns when connections are accepted, `stop` when none is left.

    Of uvicorn it takes the protocol alone: what uvicorn's server adds (signals, a clock that ticks ten times a second,
    lines in the log of a program that has one) belongs to the program, not to a library.
    """

    def __init__(self, application: Application, tls: ssl.SSLContext, host: str, port: int) -> None:
        self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        # Accepted connections inherit it. asyncio sets it only on sockets that name their protocol, which these do not,
        # and without it the body of an answer waits some 40 ms for the acknowledgement of the headers.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._socket.getsockname()[1]
        self._application = application
        self._tls = tls
        self._config = uvicorn.Config(
            application,
            http=_Protocol,
            loop="none",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=90,
        )
        self._config.load()
        self._state = ServerState()
        self._listener: asyncio.Server | None = None

    async def start(self) -> None:
        """Start to accept connections."""
        self._listener = await asyncio.get_running_loop().create_server(
            lambda: _Protocol(self._config, self._state, {}), sock=self._socket, ssl=self._tls, backlog=_BACKLOG
        )

    async def stop(self) -> None:
        """Close the socket and every connection: watches end orderly, other requests have a second to be answered."""
        if self._listener is not None:
            self._listener.close()
        self._socket.close()
        self._application.end_streams()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_GRACE)
        # The remaining connections do not read or wait for something; their clients are gone, so errors are of no use.
        for connection in list(self._state.connections):
            cast(_Protocol, connection).transport.abort()
        await asyncio.sleep(0)
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
