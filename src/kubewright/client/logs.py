"""The logs of a pod's containers, read whole or line by line while they are written."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime, timedelta

from kubewright.client.answer import described
from kubewright.client.endpoint import Endpoint
from kubewright.client.errors import TransportError
from kubewright.client.paths import query
from kubewright.client.session import Session

MAX_LINE_SIZE = 16 * 1024 * 1024
MAX_SILENCE = 60.0


async def log_lines(
    session: Session,
    endpoint: Endpoint,
    *,
    container: str | None,
    follow: bool,
    previous: bool,
    timestamps: bool,
    since: datetime | timedelta | int | None,
    tail: int | None,
    limit_bytes: int | None,
) -> AsyncGenerator[str, None]:
    """The lines of a log; with `follow` until the container ends. Bytes that are no UTF-8 are replaced."""
    if isinstance(since, timedelta):
        since = int(since.total_seconds())
    if since is not None and not isinstance(since, int | datetime):
        raise TypeError(f"since={since!r}: expected a number of seconds, a timedelta or a datetime")
    if isinstance(since, datetime) and since.tzinfo is None:
        raise ValueError(f"since={since.isoformat()} has no time zone: use datetime.now(UTC) or since.astimezone()")
    parameters = query(
        [
            ("container", container),
            ("follow", follow or None),
            ("previous", previous or None),
            ("timestamps", timestamps or None),
            ("sinceSeconds", since if isinstance(since, int) else None),
            ("sinceTime", since.isoformat() if isinstance(since, datetime) else None),
            ("tailLines", tail),
            ("limitBytes", limit_bytes),
        ]
    )
    request = endpoint.request("get")
    async with await session.stream("GET", endpoint.path + parameters, request=request) as response:
        try:
            # A log that is only read ends at once; one that is followed may be silent for days.
            async for line in response.lines(limit=MAX_LINE_SIZE, idle_timeout=None if follow else MAX_SILENCE):
                yield line.decode("utf-8", "replace")
        except TransportError as error:
            raise described(error, request) from error
