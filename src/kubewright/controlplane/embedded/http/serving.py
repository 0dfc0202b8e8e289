"""The server behind a port: TLS with optional client certificates, on uvicorn.

What a client sends is bounded in size and time as by the real server: a head has a mebibyte and 32 seconds, an idle
connection 90. What it does not read is not buffered here.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from typing import Final, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from kubewright.controlplane.embedded.http.asgi import CLOSE, PEER, Application

MAX_HEAD: Final = 1 << 20
"""Bytes of request line and header fields, as in the real server."""
HEAD_SECONDS: Final = 32
"""In which a head has to arrive, once it has begun, and the first of a connection at all."""
_BODY_SECONDS: Final = 60
_IDLE_SECONDS: Final = 90
_BACKLOG: Final = 2048
_GRACE: Final = 1.0
_TOO_LARGE: Final = b"431 Request Header Fields Too Large"

_log = logging.getLogger("kubewright.controlplane")


class _TLS(SSLProtocol):
    """As asyncio's own, with a buffer of 16 KiB instead of 256 for each connection: most are idle watches."""

    max_size = 16 * 1024


class _Protocol(HttpToolsProtocol):
    """Passes the client certificate of the connection to the application, and ends what takes too much or too long."""

    _peer: bytes | None = None
    _timer: asyncio.TimerHandle | None = None
    _head_size = 0
    _patience: float | None = None
    """Seconds that what is being received may take; None between requests."""

    def __init__(self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, object]) -> None:
        super().__init__(config, server_state, app_state)
        self.logger = _log

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Keep the client's certificate; TLS has checked it against our authority."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=64 * 1024)
        tls = transport.get_extra_info("ssl_object")
        self._peer = tls.getpeercert(binary_form=True) if tls is not None else None
        self._timer = self.loop.call_later(HEAD_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._no_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come. What is then incomplete has a deadline."""
        super().data_received(data)
        if self._patience is None or self.transport.is_closing():
            return
        if self._patience == HEAD_SECONDS:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse_head()
                return
        if self._timer is None:
            self._timer = self.loop.call_later(self._patience, self.transport.abort)

    def on_message_begin(self) -> None:
        """Put it into the scope of each request, and a way to break the connection."""
        super().on_message_begin()
        self._patience = HEAD_SECONDS
        cast("dict[str, object]", self.scope).update({PEER: self._peer, CLOSE: self.transport.close})

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._patience, self._head_size = _BODY_SECONDS, 0
        self._no_deadline()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is there."""
        self._patience = None
        self._no_deadline()
        super().on_message_complete()

    def _no_deadline(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse_head(self) -> None:
        head = (
            b"HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"
            b"Connection: close\r\n\r\n%s" % (_TOO_LARGE, len(_TOO_LARGE), _TOO_LARGE)
        )
        self.transport.write(head)
        self.transport.close()

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
            timeout_keep_alive=_IDLE_SECONDS,
        )
        self._config.load()
        self._state = ServerState()
        self._listener: asyncio.Server | None = None

    async def start(self) -> None:
        """Start to accept connections."""
        loop = asyncio.get_running_loop()

        def accepted() -> SSLProtocol:
            return _TLS(
                loop,
                _Protocol(self._config, self._state, {}),
                self._tls,
                # No one waits for the handshake: the connection is made when it is done.
                cast("asyncio.Future[None]", None),
                server_side=True,
                ssl_handshake_timeout=HEAD_SECONDS,
                ssl_shutdown_timeout=_GRACE,
            )

        self._listener = await loop.create_server(accepted, sock=self._socket, backlog=_BACKLOG)

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
