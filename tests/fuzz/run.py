"""Sends fuzzed requests to an embedded control plane over HTTP, and collects what must not happen."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

from tests.fuzz.requests import FuzzRequest, described, fuzz_requests

from kubewright.client.errors import KubernetesError
from kubewright.client.http.transport import HTTPTransport
from kubewright.controlplane import ControlPlane

_SECONDS = 120.0
"""In which a request is answered, even by a machine that is busy with others."""
_INTERNAL = b"see the server's log"


@dataclass
class Outcome:
    """What came of a run."""

    statuses: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    """Seconds of CPU, of this process, that the most expensive requests took."""


class _Errors(logging.Handler):
    """Collects what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(self.format(record))


async def fuzz(seed: int, count: int, *, until: float = float("inf")) -> Outcome:
    """Send the first `count` requests of a seed, one after the other, but none after `until` (by `time.monotonic`)."""
    outcome, errors = Outcome(), _Errors()
    logging.getLogger().addHandler(errors)
    try:
        async with ControlPlane.embedded() as plane:
            transport = HTTPTransport(plane.url, tls=plane.admin.ssl_context())
            for request in islice(fuzz_requests(seed), count):
                if time.monotonic() > until:
                    break
                await _send(transport, request, outcome)
                for record in errors.records:
                    outcome.problems.append(f"logged after {described(request)}:\n{record}")
                errors.records.clear()
            outcome.statuses[(await transport.request("GET", "/version", timeout=_SECONDS)).status] += 1
            await transport.aclose()
    finally:
        logging.getLogger().removeHandler(errors)
    outcome.problems += errors.records
    return outcome


async def _send(transport: HTTPTransport, request: FuzzRequest, outcome: Outcome) -> None:
    before = time.process_time()
    try:
        async with asyncio.timeout(_SECONDS):
            stream = await transport.stream(*request)
            status, received = stream.status, b""
            # Of a watch, the beginning; of everything else, all.
            if "watch" in request.target:
                await stream.aclose()
            else:
                received = b"".join([piece async for piece in stream])
    except TimeoutError:
        outcome.problems.append(f"no response to {described(request)}")
        return
    except (KubernetesError, ValueError) as error:
        outcome.problems.append(f"{error!r} for {described(request)}")
        return
    outcome.statuses[status] += 1
    if _INTERNAL in received:
        outcome.problems.append(f"{status} for {described(request)}")
    outcome.slowest = sorted([*outcome.slowest, (time.process_time() - before, described(request))])[-5:]
