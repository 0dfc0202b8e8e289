"""Human-readable ages: two or three significant figures, as kubectl shows them."""

from __future__ import annotations

import re
from datetime import datetime

from kubewright.api.markers import JSONValue

UNKNOWN = "<unknown>"

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)")
_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """`95s`, `5m3s`, `150m`, `3h7m`, `26h`, `2d3h`, `400d`, `3y12d`; clocks may differ by a second."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_name}{rest}{small_name}" if rest else f"{seconds // large}{large_name}"


def instant(value: JSONValue) -> float | None:
    """Seconds since the epoch of an RFC 3339 time; None for anything else."""
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None


def since(value: JSONValue, now: float) -> str:
    """How long ago a time was; `<unknown>` when there is none."""
    then = instant(value)
    return UNKNOWN if then is None else human_duration(now - then)
