"""The server behind a port: TLS with optional client certificates, on uvicorn."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kubewright.controlplane.embedded.asgi import CLOSE, PEER, Application


class _Protocol(HttpToolsProtocol):
    """Tells the application who is at the other end of the connection."""

    _peer: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Remember the client's certificate; TLS has checked it against our authority."""
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        self._peer = tls.getpeercert(binary_form=True) if tls is not None else None

    def on_message_begin(self) -> None:
        """Put it into the scope of each request, and a way to break the connection."""
        super().on_message_begin()
        cast("dict[str, object]", self.scope).update({PEER: self._peer, CLOSE: self.transport.close})

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: clients that would rather have a WebSocket are answered as if they had not asked."""


class _Server(uvicorn.Server):
    """Leaves the signals of the process to the process, and does nothing while nobody asks for anything."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()

    async def main_loop(self) -> None:
        """Wait for the end. uvicorn's own wakes ten times a second for a Date header, which is not wanted here."""
        await self.ended.wait()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Do nothing."""
        yield


class Serving:
    """One listening socket. `start` returns when connections are taken, `stop` when none is left."""

    def __init__(self, application: Application, tls: ssl.SSLContext, host: str, port: int) -> None:
        self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        # Accepted connections inherit it. asyncio sets it only on sockets that name their protocol, which these do not,
        # and without it the body of an answer waits some 40 ms for the acknowledgement of the headers.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application,
            http=_Protocol,
            loop="none",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=90,
            timeout_graceful_shutdown=1,
        )
        config.load()
        config.ssl = tls
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to take connections."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                self._task.result()
            await asyncio.sleep(0)

    async def stop(self) -> None:
        """Close the socket and every connection."""
        self._server.should_exit = True
        self._server.force_exit = True
        self._server.ended.set()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task
        self._socket.close()
