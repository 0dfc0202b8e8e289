"""The deadline of a request: its `timeout`, a duration as Go writes it."""

from __future__ import annotations

import re

import msgspec

from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import bad_request
from kubewright.controlplane.embedded.endpoints.request import QueryParameters, Target
from kubewright.controlplane.embedded.http.exchange import HTTPResponse

_MAX_TIMEOUT = 60.0
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_AMOUNT = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([^0-9.]*)", re.ASCII)
_MAX_SECONDS = 2**63 / 1e9


def deadline(target: Target, query: QueryParameters) -> float:
    """The seconds a request may take, at most 60. Raises 400 for a `timeout` that is no duration."""
    text = query.text("timeout")
    if not text or target.verb == "watch":
        return _MAX_TIMEOUT
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return min(seconds, _MAX_TIMEOUT) if seconds > 0 else _MAX_TIMEOUT


def out_of_time() -> HTTPResponse:
    """504 for a request whose own time is over; the real server writes this Status by hand, without its kind."""
    message = "Timeout: request did not complete within the allotted timeout"
    status = {"metadata": {}, "status": "Failure", "message": message, "reason": "Timeout", "details": {}, "code": 504}
    return HTTPResponse(504, msgspec.json.encode(status) + b"\n", "text/plain; charset=utf-8")


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError with Go's message."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0.0
    seconds, position = 0.0, 0
    while position < len(unsigned) or not unsigned:
        found = _AMOUNT.match(unsigned, position)
        if found is None:
            raise ValueError(f"time: invalid duration {quoted(text)}")
        if not found[2]:
            raise ValueError(f"time: missing unit in duration {quoted(text)}")
        if found[2] not in _SECONDS:
            raise ValueError(f"time: unknown unit {quoted(found[2])} in duration {quoted(text)}")
        seconds += float(found[1]) * _SECONDS[found[2]]
        if seconds > _MAX_SECONDS:
            raise ValueError(f"time: invalid duration {quoted(text)}")
        position = found.end()
    return -seconds if text[0] == "-" else seconds
