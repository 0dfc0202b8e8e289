"""A request and its response, independent of sockets: over a network or within the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import StatusError


@dataclass(frozen=True, slots=True)
class HTTPRequest:
    """What a client sent. Header names are in lower case; `certificate` is its TLS certificate, DER."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    repeated: tuple[tuple[str, str], ...] = ()
    """All header fields in order, for those that may be repeated."""
    body: bytes = b""
    certificate: bytes | None = None
    is_internal: bool = False
    """It is from the control plane's own controllers, over a connection that cannot fall silent."""

    def header(self, name: str) -> str:
        """The value of a header field; empty when it is not there."""
        return self.headers.get(name, "")


@dataclass(slots=True)
class HTTPResponse:
    """What the server returns: all at once, or piece by piece.

    A body that is long work is made by `pieces`: it is complete when they are through, and between two of them other
    requests are answered.
    """

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None
    pieces: Iterator[bytes] | None = None

    async def complete(self) -> None:
        """Make the body."""
        if self.pieces is not None:
            made: list[bytes] = []
            for piece in self.pieces:
                made.append(piece)
                await asyncio.sleep(0)
            self.body, self.pieces = b"".join(made), None


def json_response(content: object, status: int = 200) -> HTTPResponse:
    """A response of plain values."""
    return HTTPResponse(status, msgspec.json.encode(content) + b"\n")


def failure(error: StatusError) -> HTTPResponse:
    """The response to a request that failed."""
    response = json_response(error.body(), error.code)
    details: JSONObject = error.details or {}
    seconds = details.get("retryAfterSeconds")
    if isinstance(seconds, int) and seconds > 0:
        response.headers.append(("Retry-After", str(seconds)))
    return response
