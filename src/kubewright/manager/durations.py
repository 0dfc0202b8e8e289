"""Durations as texts, as Go has them, and days: `90s`, `1h30m`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def parse_duration(text: str) -> timedelta:
    """The duration. ValueError for a text that is none."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError('Expected a duration such as "90s", "5m" or "1h30m"')
    try:
        return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError:
        raise ValueError("Expected a shorter duration") from None


def duration_text(value: timedelta) -> str:
    """The shortest text of a duration, in hours, minutes and seconds."""
    whole, rest = divmod(value, timedelta(seconds=1))
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest.microseconds:06}".rstrip("0") if rest else ""
    parts = [f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m")) if number]
    if seconds or rest:
        parts.append(f"{seconds}{fraction}s")
    return "".join(parts) or "0s"
