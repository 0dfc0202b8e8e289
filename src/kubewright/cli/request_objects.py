"""Requests as commands show and delete them: which ones are meant, how old they are, and whose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kubewright.api.codec import decode_model, encode
from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import DecodeError
from kubewright.api.time import now
from kubewright.cli.request_kinds import KindOfRequests
from kubewright.client import Client
from kubewright.patterns.request_status import FINISHED, RequestStatus

_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


class RequestObject(Struct, frozen=True):
    """One request."""

    obj: Dynamic
    status: RequestStatus

    @property
    def user(self) -> str:
        """Who it is about, by `spec.user`; empty where the kind has no such field."""
        user = self.obj.get("spec", "user")
        return user if isinstance(user, str) else ""

    @property
    def since(self) -> datetime | None:
        """When it ended; when it was created, if it has not ended."""
        if self.status.phase in FINISHED:
            return self.status.completion_time
        return self.obj.metadata.creation_timestamp

    @property
    def age(self) -> str:
        """The time since then, in its greatest unit, as kubectl shows ages."""
        if self.since is None:
            return "<unknown>"
        seconds = max(0, int((now() - self.since).total_seconds()))
        unit, length = next(((unit, length) for unit, length in _UNITS if seconds >= length), ("s", 1))
        return f"{seconds // length}{unit}"


class RequestFilter(Struct, frozen=True):
    """Which requests are meant. Empty fields mean all."""

    phases: Collection[str] = ()
    user: str = ""
    older_than: timedelta | None = None

    def matches(self, request: RequestObject) -> bool:
        """Whether a request is meant. One that has no time to count from is not older than anything."""
        if self.older_than is not None and (request.since is None or now() - request.since < self.older_than):
            return False
        return (not self.phases or request.status.phase in self.phases) and self.user in ("", request.user)


async def requests_of(
    client: Client, kinds: Sequence[KindOfRequests], namespace: str, wanted: RequestFilter
) -> AsyncIterator[RequestObject]:
    """The requests of these kinds in a namespace, or in all, and those that are in none; page by page.

    What has a status that is not one of a request is left out.
    """
    for each in kinds:
        where = namespace or None if each.is_namespaced else None
        async for obj in client.list(each.kind, namespace=where):
            request = request_of(obj)
            if request is not None and wanted.matches(request):
                yield request


def request_of(obj: Dynamic) -> RequestObject | None:
    """The request that an object is; None if its status is of another form."""
    try:
        return RequestObject(obj, decode_model(RequestStatus, encode(obj.content.get("status") or {})))
    except DecodeError:
        return None
