"""What a transport returns: a whole response, or one whose body is still arriving.

Nothing here knows about sockets. A transport without them implements `ByteStream` and returns the same classes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from kubewright.client.errors import ProtocolError
from kubewright.client.http.lines import LineSplitter

MAX_BODY = 512 * 1024 * 1024
MAX_LINE = 16 * 1024 * 1024


class Headers:
    """The header fields of a response, in the order they came; names are case-insensitive."""

    __slots__ = ("_raw",)

    def __init__(self, raw: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._raw = raw

    def get(self, name: str) -> str | None:
        """The first value of `name`, None when there is none."""
        wanted = name.lower().encode()
        for found, value in self._raw:
            if found.lower() == wanted:
                return value.decode("utf-8", "replace")
        return None

    def getall(self, name: str) -> list[str]:
        """Every value of `name`, in the order they came."""
        length = len(name)
        named = [field for field in self._raw if len(field[0]) == length]
        if not named:
            return []
        wanted = name.lower().encode()
        return [value.decode("utf-8", "replace") for found, value in named if found.lower() == wanted]

    def __repr__(self) -> str:
        # Values may be secrets; names never are.
        return f"<Headers {', '.join(name.decode('utf-8', 'replace') for name, _ in self._raw)}>"


class Response(msgspec.Struct, frozen=True):
    """A complete response."""

    status: int
    headers: Headers
    body: bytes

    def __repr__(self) -> str:
        return f"<Response {self.status}, {len(self.body)} bytes>"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("status", self.status)]  # to the package rich, which would show the body, too


class ByteStream(Protocol):
    """The body of a response while it arrives."""

    async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
        """All bytes that have arrived, after waiting for at least one; empty at the end of the body.

        An empty socket is left alone for `gather` seconds, so that what arrives meanwhile is read at once.
        Cancelling loses nothing: the next call returns the same bytes. `RequestTimeout` when no byte came for
        `idle_timeout` seconds, which also ends the stream.
        """

    async def aclose(self) -> None:
        """Discard the rest. May be called at any time, more than once."""


class Lines:
    """The lines of a body; an async iterator. Bytes after the last newline are a line too."""

    __slots__ = ("_body", "_ended", "_ready", "_splitter", "gather", "idle_timeout")

    def __init__(self, body: ByteStream, limit: int, idle_timeout: float | None) -> None:
        self._body = body
        self._splitter = LineSplitter(limit)
        self._ready: list[bytes] = []  # in reverse, so that taking the next one is a pop
        self._ended = False
        # See `ByteStream.receive`; both may be changed between two lines.
        self.idle_timeout = idle_timeout
        self.gather = 0.0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready:
            if self._ended:
                raise StopAsyncIteration
            data = await self._body.receive(self.idle_timeout, self.gather)
            if data:
                try:
                    self._ready = self._splitter.feed(data)
                except ProtocolError:
                    self._ended = True
                    await self._body.aclose()
                    raise
                self._ready.reverse()
            else:
                self._ended = True
                rest = self._splitter.finish()
                if rest:
                    return rest
        return self._ready.pop()


class StreamedResponse:
    """A response whose body is read as it arrives. Use it with `async with`, or call `aclose`.

    Guarantee: a body that ends before its announced end raises `ConnectionLost`, after everything that did arrive
    was returned.
    """

    __slots__ = ("_max_body", "body", "headers", "status")

    def __init__(self, status: int, headers: Headers, body: ByteStream, *, max_body: int = MAX_BODY) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self._max_body = max_body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data = await self.body.receive()
        if not data:
            raise StopAsyncIteration
        return data

    def lines(self, *, limit: int = MAX_LINE, idle_timeout: float | None = None) -> Lines:
        """The lines of the body, without their newline.

        A line over `limit` bytes raises `ProtocolError`; silence for `idle_timeout` seconds raises `RequestTimeout`.
        """
        return Lines(self.body, limit, idle_timeout)

    async def read(self) -> bytes:
        """The rest of the body; `ProtocolError` when it is longer than the transport's `max_body`."""
        chunks: list[bytes] = []
        size = 0
        while data := await self.body.receive():
            chunks.append(data)
            size += len(data)
            if size > self._max_body:
                await self.body.aclose()
                raise ProtocolError(f"the body of the response is longer than max_body, {self._max_body} bytes")
        return b"".join(chunks)

    async def aclose(self) -> None:
        """Stop reading. An unfinished body costs its connection."""
        await self.body.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<StreamedResponse {self.status}>"
