"""Waiting for a cluster: until nothing is left to wait for, or the time is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from kubewright.api.errors import KubernetesError
from kubewright.cli.cluster.status_line import StatusLine

_PAUSE: Final = 0.5


class Deadline:
    """When waiting ends, so many seconds after it was made."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._end = time.monotonic() + timeout

    @property
    def remaining(self) -> float:
        """Seconds; 0 when it is over."""
        return max(0.0, self._end - time.monotonic())


async def wait_until_none(
    reasons: Callable[[], Awaitable[list[str]]], *, deadline: Deadline, line: StatusLine
) -> list[str]:
    """Wait until there are no reasons to wait for. Returns those that are left at the deadline.

    A server that does not answer is such a reason, too.
    """
    while True:
        try:
            found = await reasons()
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
