"""An operator's connection to the API server, on which its calls are numbered and faults strike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from kubewright.client.errors import ConnectionLost, RequestTimeout
from kubewright.client.http.response import ByteStream, Headers
from kubewright.client.http.transport import Response, StreamedResponse, Transport
from kubewright.testing.exploration.faults import SECONDS_DOWN, SECONDS_LATE, APICall, FaultKind

_RESTART = 1.0
_TIMEOUT = 30.0
_LEASES = "/apis/coordination.k8s.io/"
# Not the operator's own doing, or without a part in how its work ends.
_REVIEWS = "/apis/authorization.k8s.io/"
_EVENTS = "/events"
_MODIFIED = (
    "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version "
    "and try again"
)
_EXPIRED_LINE = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)


class Script(Protocol):
    """What happens in a world: the faults of its calls."""

    async def ready(self, wire: Wire) -> None:
        """Return when the first call may be sent."""

    def begin(self, wire: Wire, method: str, path: str) -> tuple[APICall, FaultKind | None]:
        """A call is about to be sent: its number, and the fault that strikes at it."""

    def pause(self) -> float:
        """For how many seconds the next thing is late."""

    def kill(self, wire: Wire, seconds: float) -> None:
        """End the process of this wire, and start another one in so many seconds."""

    def depose(self, wire: Wire) -> None:
        """The process of this wire is cut off from the server."""


class Wire:
    """A `Transport` that does with each call what the script says.

    A dead wire is that of a process that was killed, or cut off: nothing reaches the server and nothing comes back.
    """

    def __init__(self, inner: Transport, script: Script) -> None:
        self._inner = inner
        self._script = script
        self._streams: set[_Stream] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._release: asyncio.TimerHandle | None = None
        self.is_dead = False

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
        await self._alive()
        path, _, query = target.partition("?")

        async def send() -> Response:
            response = await self._inner.request(method, target, headers, body, timeout=timeout)
            await self._alive()
            return response

        if not _is_numbered(method, path, query):
            return await send()
        await self._script.ready(self)
        call, fault = self._script.begin(self, method, path)
        if pause := self._script.pause():
            await asyncio.sleep(pause)
            await self._alive()
        response = await self._struck(call, fault, send, timeout)
        call.status = str(response.status)
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
        """See `Transport.stream`."""
        await self._alive()
        response = await self._inner.stream(method, target, headers, body, timeout=timeout)
        await self._alive()
        stream = _Stream(response, self)
        self._streams.add(stream)
        return StreamedResponse(response.status, response.headers, stream)

    async def aclose(self) -> None:
        """Close every connection."""
        self.release()
        await self._inner.aclose()

    def die(self) -> None:
        """From now on nothing arrives, on either side."""
        self.is_dead = True
        self._open.clear()

    @property
    def is_held(self) -> bool:
        """Whether watches bring nothing at present, although the process lives."""
        return not self.is_dead and not self._open.is_set()

    def hold(self) -> None:
        """Keep back what watches bring, until `release`."""
        self._open.clear()

    def release(self) -> None:
        """Let watches bring what they have kept back."""
        if not self.is_dead:
            self._open.set()

    async def passed(self) -> None:
        """Return when watches bring something again."""
        await self._open.wait()
        if pause := self._script.pause():
            await asyncio.sleep(pause)

    def forget(self, stream: _Stream) -> None:
        """A stream was closed."""
        self._streams.discard(stream)

    async def _alive(self) -> None:
        if self.is_dead:
            await asyncio.Event().wait()

    async def _struck(
        self, call: APICall, fault: FaultKind | None, send: Callable[[], Awaitable[Response]], timeout: float | None
    ) -> Response:
        match fault:
            case None:
                return await send()
            case "crash-before":
                self._script.kill(self, _RESTART)
            case "crash-after" | "down":
                await send()
                self._script.kill(self, _RESTART if fault == "crash-after" else SECONDS_DOWN)
            case "takeover" | "stale":
                await send()
                self._script.depose(self)
            case "conflict":
                return _failure(409, "Conflict", _MODIFIED)
            case "throttle":
                return _failure(429, "TooManyRequests", "too many requests", ("Retry-After", "1"))
            case "error" | "errors":
                return _failure(500, "InternalError", "an error on the server that explore has injected")
            case "timeout" | "lost-answer":
                if fault == "lost-answer":
                    await send()
                seconds = timeout or _TIMEOUT
                await asyncio.sleep(seconds)
                raise RequestTimeout(f"{call.method}: no answer within {seconds:g} s")
            case "late":
                self.hold()
                self._release = asyncio.get_running_loop().call_later(SECONDS_LATE, self.release)
                return await send()
            case "cut" | "expired":
                for stream in list(self._streams):
                    await (stream.end(_EXPIRED_LINE) if fault == "expired" else stream.end())
                return await send()
        await self._alive()
        raise AssertionError("the wire is dead")


class _Stream:
    """The body of a watch, which can be held and ended."""

    def __init__(self, response: StreamedResponse, wire: Wire) -> None:
        self._inner: ByteStream = response.body
        self._wire = wire
        self._arrived = b""
        self._last: list[bytes] = []  # what the server ends it with

    async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
        """See `ByteStream.receive`."""
        if not self._arrived and not self._last:
            try:
                self._arrived = await self._inner.receive(idle_timeout, gather)
            except ConnectionLost:
                if not self._last:
                    raise
        if not self._arrived and self._last:
            return self._last.pop(0)
        # Kept until it has passed: a cancelled call must not lose it.
        await self._wire.passed()
        arrived, self._arrived = self._arrived, b""
        return arrived

    async def end(self, *lines: bytes) -> None:
        """Break the connection; or end it in order, with lines of the server's."""
        self._last += lines and (*lines, b"")
        await self._inner.aclose()

    async def aclose(self) -> None:
        """See `ByteStream.aclose`."""
        self._wire.forget(self)
        await self._inner.aclose()


def _is_numbered(method: str, path: str, query: str) -> bool:
    """Whether faults strike at it: requests for objects, except for those that each operator makes by itself."""
    if "limit=1" in query.split("&"):  # a cache makes sure that the server has not gone back
        return False
    parts = path.strip("/").split("/")
    # /api/v1/pods and /apis/apps/v1/deployments; what is shorter is discovery.
    is_of_objects = len(parts) >= (3 if parts[0] == "api" else 4) and parts[0] in ("api", "apis")
    is_event = method != "GET" and (path.endswith(_EVENTS) or f"{_EVENTS}/" in path)
    return is_of_objects and not is_event and not path.startswith((_LEASES, _REVIEWS))


def _failure(code: int, reason: str, message: str, *headers: tuple[str, str]) -> Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    fields = [(b"Content-Type", b"application/json"), *((name.encode(), value.encode()) for name, value in headers)]
    return Response(code, Headers(fields), msgspec.json.encode(status))
