"""Fault injection: requests that fail, are delayed or are cut, selected by target and count.

plane.faults.fail(lambda target: target.verb == "update", code=409, times=2)
plane.faults.cut_watches(lambda target: target.resource == "pods", after_events=3)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.endpoints.request import Target

Chooser: TypeAlias = Callable[[Target], bool]

_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ConnectionCut(Exception):
    """The connection ends here, without a response or in the middle of one."""


@dataclass(slots=True)
class _Fault:
    chooses: Chooser
    left: int | None
    act: Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _Cut:
    chooses: Chooser
    left: int | None
    after: int


@dataclass(slots=True, eq=False)
class _OpenStream:
    target: Target
    reader: asyncio.Task[object] | None
    is_internal: bool
    is_cut: bool = False
    is_silent: bool = False


class Faults:
    """The injected faults. Each applies `times` times (None: until `clear`), the first that matches first."""

    def __init__(self) -> None:
        self._faults: list[_Fault] = []
        self._cuts: list[_Cut] = []
        self._open: set[_OpenStream] = set()

    def fail(
        self,
        chooses: Chooser,
        *,
        code: int = 500,
        message: str = "injected fault",
        retry_after: int = 0,
        times: int | None = 1,
    ) -> None:
        """Answer with this status instead of doing anything."""

        async def act() -> None:
            details: dict[str, int] = {"retryAfterSeconds": retry_after} if retry_after else {}
            raise StatusError(code, _REASONS.get(code, ""), message, details={**details})

        self._faults.append(_Fault(chooses, times, act))

    def delay(self, chooses: Chooser, until: asyncio.Event | float, *, times: int | None = 1) -> None:
        """Wait until the event is set, or for that many seconds, before anything is done."""

        async def act() -> None:
            if isinstance(until, asyncio.Event):
                await until.wait()
            else:
                await asyncio.sleep(until)

        self._faults.append(_Fault(chooses, times, act))

    def drop(self, chooses: Chooser, *, times: int | None = 1) -> None:
        """Close the connection without a response."""

        async def act() -> None:
            raise ConnectionCut

        self._faults.append(_Fault(chooses, times, act))

    def cut_watches(self, chooses: Chooser, *, after_events: int = 0, times: int | None = 1) -> None:
        """Break the connection of a watch that begins from now on, right after that many events of it."""
        self._cuts.append(_Cut(chooses, times, after_events))

    def cut_open_watches(self, chooses: Chooser) -> None:
        """Break the connections of watches that are open now."""
        for stream in self._open:
            if chooses(stream.target) and stream.reader is not None:
                stream.is_cut = True
                stream.reader.cancel()

    def silence_open_watches(self, chooses: Chooser) -> None:
        """Let nothing through any more on watches that are open now, not even their end, as when the peer has vanished.

        Those of the control plane's own controllers go on: they have no connection that could fall silent.
        """
        for stream in self._open:
            if chooses(stream.target) and not stream.is_internal:
                stream.is_silent = True

    def open_streams(self) -> list[Target]:
        """The requests whose streams are open now."""
        return [stream.target for stream in self._open]

    def clear(self) -> None:
        """Remove all faults."""
        self._faults.clear()
        self._cuts.clear()

    async def strike(self, target: Target) -> None:
        """Let the first fault for this request act. Raises StatusError or ConnectionCut."""
        for fault in self._faults:
            if fault.chooses(target):
                if fault.left is not None:
                    fault.left -= 1
                    if fault.left == 0:
                        self._faults.remove(fault)
                await fault.act()
                return

    async def through(
        self, stream: AsyncIterator[bytes], target: Target, *, is_internal: bool = False, is_framed: bool = False
    ) -> AsyncIterator[bytes]:
        """The events of a stream, cut where a fault applies. Closing it closes the stream.

        Each event is a line, or, if `is_framed`, has its length before it.
        """
        cut = next((cut for cut in self._cuts if cut.chooses(target)), None)
        if cut is not None and cut.left is not None:
            cut.left -= 1
            if cut.left == 0:
                self._cuts.remove(cut)
        left = cut.after if cut is not None else None
        own = _OpenStream(target, asyncio.current_task(), is_internal)
        self._open.add(own)
        try:
            if left == 0:
                raise ConnectionCut
            async for piece in stream:
                if own.is_silent:
                    continue
                if left is None:
                    yield piece
                    continue
                events = _frames(piece) if is_framed else piece.splitlines(keepends=True)
                yield b"".join(events[:left])
                left -= len(events)
                if left <= 0:
                    raise ConnectionCut
            if own.is_silent:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            if own.is_cut and own.reader is not None and own.reader.uncancel() == 0:
                raise ConnectionCut from None
            raise
        finally:
            self._open.discard(own)
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()


def _frames(piece: bytes) -> list[bytes]:
    frames: list[bytes] = []
    start = 0
    while start < len(piece):
        end = start + 4 + int.from_bytes(piece[start : start + 4], "big")
        frames.append(piece[start:end])
        start = end
    return frames
