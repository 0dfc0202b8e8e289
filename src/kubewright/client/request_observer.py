"""Observing requests: how long each attempt took, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct


class RequestAttempt(Struct, frozen=True, gc=False):
    """One attempt at a request: a request that is retried has several.

    `seconds` lasted from the moment it was sent, after any wait for the rate limit, to its complete response; for a
    watch or a log to the head of it. `code` is that of the response, `<error>` where none came.
    """

    method: str
    host: str
    target: str
    code: str
    seconds: float

    @property
    def template(self) -> str:
        """The path without names: `/api/v1/namespaces/{namespace}/pods/{name}/log`. Few values, as a label needs."""
        steps = self.target.partition("?")[0].split("/")[1:]
        resource = {"api": 2, "apis": 3}.get(steps[0], len(steps))  # where the resource stands
        below = steps[resource + 2] if len(steps) > resource + 2 else "status"
        if steps[resource : resource + 1] == ["namespaces"] and below not in ("status", "finalize"):
            steps[resource + 1] = "{namespace}"
            resource += 2
        if len(steps) > resource + 1:
            steps[resource + 1] = "{name}"
        return "/" + "/".join(steps)


RequestObserver: TypeAlias = Callable[[RequestAttempt], None]
"""Called in the event loop when an attempt has ended; it must neither block nor raise."""
