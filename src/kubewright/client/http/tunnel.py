"""The CONNECT request that makes a proxy forward bytes (RFC 9110, section 9.3.6)."""

from __future__ import annotations

import asyncio

from kubewright.client.errors import ConnectionFailed

_MAX_HEAD = 64 * 1024


class Tunnel(asyncio.Protocol):
    """Talks to the proxy until the tunnel is open; without a proxy it does nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop, proxy: str) -> None:
        self._loop = loop
        self._proxy = proxy
        self._received = b""
        self._status: asyncio.Future[int] | None = None

    async def open(self, transport: asyncio.Transport, target: str, authorization: str | None) -> None:
        """Return when the proxy has connected to `target` ("host:port"); `ConnectionFailed` when it refuses."""
        head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
        if authorization is not None:
            head += f"Proxy-Authorization: {authorization}\r\n"
        self._status = self._loop.create_future()
        if transport.is_closing():
            self._fail("it closed the connection")
        transport.write(f"{head}\r\n".encode())
        status = await self._status
        if status == 407:
            raise ConnectionFailed(
                f"the proxy {self._proxy} asks for a user name and password (407);"
                " give them in its address, as http://user:password@host:port"
            )
        if not 200 <= status < 300:
            raise ConnectionFailed(f"the proxy {self._proxy} does not connect to {target}: it answered {status}")

    def data_received(self, data: bytes) -> None:
        """Wait for the end of the proxy's head; TLS lets the client send first, so nothing of the server follows it."""
        if self._status is None or self._status.done():
            return
        self._received += data
        if b"\r\n\r\n" in self._received:
            version, _, rest = self._received.partition(b" ")
            if version.startswith(b"HTTP/1.") and rest[:3].isdigit():
                self._status.set_result(int(rest[:3]))
            else:
                self._fail("its response is not HTTP")
        elif len(self._received) > _MAX_HEAD:
            self._fail(f"the head of its response is longer than {_MAX_HEAD} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        """The proxy closed the connection."""
        self._fail(f"it closed the connection ({exc})" if exc else "it closed the connection")

    def _fail(self, reason: str) -> None:
        if self._status is not None and not self._status.done():
            self._status.set_exception(ConnectionFailed(f"the proxy {self._proxy} cannot be used: {reason}"))
