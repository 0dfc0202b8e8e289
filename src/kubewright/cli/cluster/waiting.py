"""Waiting for a cluster: until nothing is left to wait for, or the time is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from kubewright.api.errors import KubernetesError
from kubewright.cli.cluster.status_line import StatusLine

_PAUSE: Final = 0.5
# Also at the deadline it is worth to know what is left.
_LAST_LOOK: Final = 5.0


class TimedOut(KubernetesError):
    """The time of the command was over before the server had answered. The message has what it was doing."""

    temporary = True


class Deadline:
    """When something has to be over, so many seconds after this was made."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._end = time.monotonic() + timeout

    @property
    def remaining(self) -> float:
        """Seconds; 0 when it is over."""
        return max(0.0, self._end - time.monotonic())

    @asynccontextmanager
    async def limit(self, line: StatusLine) -> AsyncIterator[None]:
        """Raises `TimedOut` where the block is not over in time."""
        scope = asyncio.timeout(self.remaining)
        try:
            async with scope:
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise TimedOut(f"{line.status}: not over after {self.timeout:g} s (--timeout)") from None


async def wait_until_none(
    reasons: Callable[[], Awaitable[list[str]]], *, deadline: Deadline, line: StatusLine
) -> list[str]:
    """Wait until there are no reasons to wait for. Returns those that are left at the deadline.

    A server that does not answer is such a reason, too.
    """
    found = ["the server has not answered"]
    while True:
        try:
            async with asyncio.timeout(max(deadline.remaining, _LAST_LOOK)) as scope:
                found = await reasons()
        except TimeoutError:
            if not scope.expired():
                raise
            return found
        except KubernetesError as error:
            if not error.is_temporary:
                raise
            found = [str(error)]
        if not found:
            return []
        line.waiting("; ".join(found))
        if not deadline.remaining:
            return found
        await asyncio.sleep(min(_PAUSE, deadline.remaining))
