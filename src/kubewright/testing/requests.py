"""Counting the requests of a client.

    with count_requests(client) as requests:
        await reconciler.reconcile(request)
    assert (requests.reads, requests.writes) == (0, 1)

Every attempt is counted, so that a retried request counts twice. Views of the client (`in_namespace`, a manager's
client) are counted with it; what a cache answers is no request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kubewright.client import Client
from kubewright.client.request_observer import RequestAttempt

_READS: Final = frozenset({"GET", "HEAD"})


class RequestCount:
    """The requests that were made while it counted, in the order in which they ended."""

    def __init__(self) -> None:
        self.attempts: list[RequestAttempt] = []

    @property
    def reads(self) -> int:
        """How many requests only read: get, list, watch."""
        return len(self.attempts) - self.writes

    @property
    def writes(self) -> int:
        """How many requests were to change something, whatever the server answered."""
        return sum(map(self.is_write, self.attempts))

    @staticmethod
    def is_write(attempt: RequestAttempt) -> bool:
        """Whether an attempt was to change something."""
        return attempt.method not in _READS

    @property
    def by_path(self) -> Counter[str]:
        """How many there were by method and path, without names: `GET /api/v1/namespaces/{namespace}/pods/{name}`."""
        return Counter(f"{attempt.method} {attempt.template}" for attempt in self.attempts)


@contextmanager
def count_requests(client: Client) -> Iterator[RequestCount]:
    """Count the requests of a client, its views included, while the block runs."""
    if not isinstance(client, Client):
        raise TypeError(f"count_requests({client!r}): expected the client whose requests are counted")
    count = RequestCount()
    unsubscribe = client.observe_requests(count.attempts.append)
    try:
        yield count
    finally:
        unsubscribe()
