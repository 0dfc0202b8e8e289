"""Faults that a test asks for: requests that fail, wait or are cut, chosen by what they are and how often.

plane.faults.fail(lambda target: target.verb == "update", code=409, times=2)
plane.faults.cut_watches(lambda target: target.resource == "pods", after_events=3)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from kubewright.controlplane.embedded.request import Target
from kubewright.controlplane.embedded.status import StatusError

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
    """The connection ends here, without an answer or in the middle of one."""


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


class Faults:
    """What goes wrong. Each fault strikes `times` times (None: until `clear`), the first that matches first."""

    def __init__(self) -> None:
        self._faults: list[_Fault] = []
        self._cuts: list[_Cut] = []

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

    def delay(self, chooses: Chooser, until: Awaitable[object] | float, *, times: int | None = 1) -> None:
        """Wait for something, or for seconds, before anything is done."""

        async def act() -> None:
            if isinstance(until, float | int):
                await asyncio.sleep(until)
            else:
                await until

        self._faults.append(_Fault(chooses, times, act))

    def drop(self, chooses: Chooser, *, times: int | None = 1) -> None:
        """Close the connection without an answer."""

        async def act() -> None:
            raise ConnectionCut

        self._faults.append(_Fault(chooses, times, act))

    def cut_watches(self, chooses: Chooser, *, after_events: int = 0, times: int | None = 1) -> None:
        """Break the connection of a watch after that many further pieces of it."""
        self._cuts.append(_Cut(chooses, times, after_events))

    def clear(self) -> None:
        """Nothing goes wrong any more."""
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

    async def through(self, stream: AsyncIterator[bytes], target: Target) -> AsyncIterator[bytes]:
        """A stream, cut where a fault says so."""
        cut = next((cut for cut in self._cuts if cut.chooses(target)), None)
        if cut is not None and cut.left is not None:
            cut.left -= 1
            if cut.left == 0:
                self._cuts.remove(cut)
        count = 0
        async for piece in stream:
            if cut is not None and count >= cut.after:
                raise ConnectionCut
            count += 1
            yield piece
