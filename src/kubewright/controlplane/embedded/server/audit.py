"""The audit log: every request that the server answered, without bodies and credentials."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import astuple, dataclass, field
from types import MappingProxyType
from weakref import WeakSet

from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.http.exchange import HTTPRequest

_KEPT = 10_000
_MAX_LENGTH = 1024
"""Characters that are kept of a path or a user agent."""
_APPLY = "application/apply-patch"
_NO_ANNOTATIONS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One request: when, who, what, the status of the response, and what admission noted about it."""

    time: float
    user: str
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    path: str
    user_agent: str
    status: int
    annotations: Mapping[str, str] = field(hash=False)
    is_apply: bool = False
    """Whether it is a server-side apply, which needs the verb `create` as well as `patch`."""

    @classmethod
    def of(
        cls,
        request: HTTPRequest,
        target: Target,
        user: UserInfo | None,
        status: int,
        time: float,
        annotations: Mapping[str, str] = _NO_ANNOTATIONS,
    ) -> AuditEvent:
        """The event of an answered request; the user is empty when authentication failed."""
        if len(target.path) > _MAX_LENGTH:
            target = Target(*(_truncated(part) for part in astuple(target)))
        return cls(
            time,
            user.name if user is not None else "",
            target.verb,
            target.group,
            target.version,
            target.resource,
            target.subresource,
            target.namespace,
            target.name,
            target.path,
            _truncated(request.header("user-agent")),
            status,
            annotations or _NO_ANNOTATIONS,
            target.verb == "patch" and request.header("content-type").startswith(_APPLY),
        )


def _truncated(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}...TRUNCATED"


class AuditLog:
    """The last requests, and a stream of those to come."""

    def __init__(self) -> None:
        self.events: deque[AuditEvent] = deque(maxlen=_KEPT)
        self.counts: Counter[tuple[str, str, str, str, str, int]] = Counter()
        """How many requests there were in all, by verb, group, version, resource, subresource and status."""
        # Weakly: who stops following just lets go of the iterator.
        self._followers: WeakSet[asyncio.Queue[AuditEvent]] = WeakSet()

    def record(self, event: AuditEvent) -> None:
        """Append the event and notify all followers."""
        self.events.append(event)
        key = (event.verb, event.group, event.version, event.resource, event.subresource, event.status)
        # Clients can make up resources; the first ten thousand are counted.
        if key in self.counts or len(self.counts) < _KEPT:
            self.counts[key] += 1
        for follower in self._followers:
            follower.put_nowait(event)

    def follow(self) -> AsyncIterator[AuditEvent]:
        """The requests from this call on; it has no end."""
        queue: asyncio.Queue[AuditEvent] = asyncio.Queue()
        self._followers.add(queue)
        return _taken_from(queue)


async def _taken_from(queue: asyncio.Queue[AuditEvent]) -> AsyncIterator[AuditEvent]:
    while True:
        yield await queue.get()
