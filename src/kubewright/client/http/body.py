"""The buffer between a connection and the reader of a streamed body."""

from __future__ import annotations

import asyncio
import copy
from typing import Protocol

from kubewright.client.errors import ConnectionLost, RequestTimeout
from kubewright.client.http.deadlines import Deadlines

# Above this many unread bytes the socket is not read any more, until the reader has taken them.
HIGH_WATER = 256 * 1024


class PausableSource(Protocol):
    """The connection that a body arrives on."""

    def pause_reading(self) -> None:
        """Leave further bytes in the socket."""

    def resume_reading(self) -> None:
        """Continue after `pause_reading`."""

    def fail(self, error: Exception) -> None:
        """End the exchange with `error`, and the connection with it."""


class Body:
    """A `ByteStream` fed by a connection; at most `HIGH_WATER` plus one read of the socket is kept.

    It outlives its connection: when the whole body is here, the connection carries the next request already.
    """

    __slots__ = (
        "_chunks",
        "_deadlines",
        "_error",
        "_loop",
        "_paused",
        "_size",
        "_source",
        "_timeout",
        "_waiter",
        "_what",
    )

    def __init__(
        self, source: PausableSource, loop: asyncio.AbstractEventLoop, deadlines: Deadlines, what: str
    ) -> None:
        self._source: PausableSource | None = source  # None after the end
        self._loop = loop
        self._deadlines = deadlines
        self._what = what
        self._chunks: list[bytes] = []
        self._size = 0
        self._paused = False
        self._error: Exception | None = None
        self._timeout = 0.0
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, data: bytes) -> None:
        """More bytes came."""
        self._chunks.append(data)
        self._size += len(data)
        if self._size > HIGH_WATER and not self._paused and self._source is not None:
            self._paused = True
            self._source.pause_reading()
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """No more bytes will come: the body is complete, or `error` says why it is not."""
        if self._paused and self._source is not None:
            # The connection goes on without this reader.
            self._source.resume_reading()
        self._source = None
        self._error = error
        self._wake()

    async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
        """See `ByteStream.receive`."""
        if self._waiter is not None:
            raise RuntimeError(f"{self._what}: two tasks read the same body")
        if gather and not self._chunks:
            await self._gather(gather)
        while not self._chunks:
            if self._source is None:
                if self._error is not None:
                    # A copy: what is raised holds its traceback, and with it the frames that hold this body.
                    raise copy.copy(self._error)
                return b""
            await self._wait(idle_timeout)
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        self._size = 0
        self._resume()
        return data

    async def aclose(self) -> None:
        """Discard the rest, and close the connection if the body is not complete."""
        self._chunks = []
        if self._source is not None:
            self._source.fail(ConnectionLost(f"{self._what}: the response was closed while it was read"))

    def expire(self) -> None:
        """No byte came within the idle timeout."""
        if self._source is not None:
            self._source.fail(RequestTimeout(f"{self._what}: the server sent nothing for {self._timeout:g} s"))

    async def _gather(self, seconds: float) -> None:
        """Let bytes gather in the socket for a while: reading many of them costs no more than reading a few."""
        if self._source is None:
            return
        self._paused = True
        self._source.pause_reading()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._resume()

    async def _wait(self, idle_timeout: float | None) -> None:
        self._waiter = self._loop.create_future()
        if idle_timeout is not None:
            self._timeout = idle_timeout
            self._deadlines.add(self, self._loop.time() + idle_timeout)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if idle_timeout is not None:
                self._deadlines.discard(self)

    def _resume(self) -> None:
        if self._paused and self._source is not None:
            self._paused = False
            self._source.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
