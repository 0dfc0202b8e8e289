"""An operator's connection, to be counted, lost and cut at any call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from kubewright.client import Client
from kubewright.client.errors import ConnectionLost
from kubewright.client.http.response import ByteStream, Headers
from kubewright.client.http.transport import Response, StreamedResponse, Transport

EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version: 1 (2)","reason":"Expired","code":410}}\n'
)


class Wire:
    """An operator's way to the server, in the hands of a test: its calls are counted, and at one of them it may die.

    From then on nothing reaches the server and nothing comes back, as with a process that was killed.
    """

    def __init__(self, inner: Transport, *, dies_at: int = 0, takes_effect: bool = False) -> None:
        """At call number `dies_at` it dies: before the call reaches the server, or before the answer comes back."""
        self.calls = 0
        self.died = asyncio.Event()
        self.lost_answers: Counter[str] = Counter()
        """How many answers are still to be lost, by method."""
        self.unheard: list[str] = []
        """What took effect after it had died, or with its death: the method and path of each call."""
        self._inner = inner
        self._dies_at = dies_at
        self._takes_effect = takes_effect
        self._streams: list[_Tapped] = []

    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        is_last = await self._count()
        response = await self._inner.request(method, target, headers, body, timeout=timeout)
        await self._answered(is_last, f"{method} {target.partition('?')[0]}")
        if self.lost_answers[method]:
            self.lost_answers[method] -= 1
            raise ConnectionLost(f"{method}: the connection was closed without a response")
        return response

    async def stream(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> StreamedResponse:
        is_last = await self._count()
        response = await self._inner.stream(method, target, headers, body, timeout=timeout)
        self._streams.append(tapped := _Tapped(response.body))
        await self._answered(is_last, f"{method} {target.partition('?')[0]}")
        return StreamedResponse(response.status, response.headers, tapped)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def expire(self) -> None:
        """Have the server say, on every open watch, that it has expired."""
        for stream in self._streams:
            stream.last = EXPIRED
            await stream.inner.aclose()
        self._streams.clear()

    async def _count(self) -> bool:
        """Count a call; returns whether it is the last one. Never returns when the process is dead."""
        self.calls += 1
        is_last = self.calls == self._dies_at
        if is_last and not self._takes_effect:
            self.died.set()
        await self._live()
        return is_last

    async def _answered(self, is_last: bool, call: str) -> None:
        if is_last:
            self.died.set()
        if self.died.is_set():
            self.unheard.append(call)
        await self._live()

    async def _live(self) -> None:
        if self.died.is_set():
            await asyncio.Event().wait()


class _Tapped:
    """A stream that a test can end with a line of its own."""

    def __init__(self, inner: ByteStream) -> None:
        self.inner = inner
        self.last: bytes | None = None

    async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
        if self.last is None:
            try:
                return await self.inner.receive(idle_timeout, gather)
            except ConnectionLost:
                if self.last is None:
                    raise
        line, self.last = self.last, b""
        return line

    async def aclose(self) -> None:
        await self.inner.aclose()


class LostProxy:
    """A load balancer in front of a server that, for some requests, does not know where to send them."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.loses: Callable[[str], bool] = lambda target: False

    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        if self.loses(target):
            return Response(404, Headers([(b"Content-Type", b"text/html")]), b"<html>default backend - 404</html>")
        return await self._inner.request(method, target, headers, body, timeout=timeout)

    async def stream(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> StreamedResponse:
        if self.loses(target):
            return StreamedResponse(404, Headers([(b"Content-Type", b"text/html")]), _Page())
        return await self._inner.stream(method, target, headers, body, timeout=timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Page:
    """The body of a page that is no answer of an API server."""

    def __init__(self) -> None:
        self._left = [b"<html>default backend - 404</html>", b""]

    async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
        return self._left.pop(0)

    async def aclose(self) -> None:
        pass


def behind_a_proxy(client: Client) -> LostProxy:
    """From now on the client's requests go through it."""
    session = client._operations.session
    session._transport = proxy = LostProxy(session._transport)
    return proxy
