"""Durations and timestamps: reading, printing and taking them apart, as Go's `time` does."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.cel.library.overload import Overload, method
from kubewright.controlplane.embedded.cel.types import DURATION, INT, STRING, TIMESTAMP
from kubewright.controlplane.embedded.cel.values import MAX_INT, MIN_INT, Duration, EvaluationError, Timestamp

SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,  # the Greek letter, beside the micro sign
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_GO_PART: Final = re.compile(r"([0-9]*+)(?:\.([0-9]*+))?+([^0-9.]++)")
_MAX_FRACTION: Final = 18
# What OpenAPI's "duration" understands besides: "3 days". The last name of a unit may have any ending.
_WORD_PART: Final = re.compile(r"(?<![0-9])([0-9]++)\s*+([A-Za-zµ]+)")
_WORDS: Final = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 1_000),
    (("ms", "milli"), 1_000_000),
    (("s", "sec"), SECOND),
    (("m", "min"), 60 * SECOND),
    (("h", "hr", "hour"), 3600 * SECOND),
    (("d", "day"), 86400 * SECOND),
    (("w", "wk", "week"), 7 * 86400 * SECOND),
)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DATE_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_FIRST: Final = -62135596800
_LAST: Final = 253402300799


def parsed_duration(text: str) -> Duration:
    """`1h30m`; ValueError when it is none."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return Duration(0)
    total, position = 0, 0
    while part := _GO_PART.match(rest, position):
        whole, fraction, unit = part.groups()
        if not (whole or fraction) or unit not in _UNITS:
            break
        scale = _UNITS[unit]
        # More digits than that make no nanosecond.
        fraction = (fraction or "")[:_MAX_FRACTION]
        total += bounded_integer(whole) * scale + int(fraction or 0) * scale // 10 ** len(fraction)
        position = part.end()
    if not rest or position != len(rest) or not MIN_INT <= sign * total <= MAX_INT:
        raise ValueError(f'time: invalid duration "{text}"')
    return Duration(sign * total)


def parsed_json_duration(text: str) -> Duration:
    """What the format "duration" of a schema allows: Go's durations, or words such as `3 days`."""
    try:
        return parsed_duration(text)
    except ValueError:
        pass
    total, known = 0, False
    for number, unit in _WORD_PART.findall(text):
        for names, scale in _WORDS:
            if unit.lower() in names or unit.lower().startswith(names[-1]):
                total, known = total + bounded_integer(number) * scale, True
    if not known:
        raise ValueError(f"unable to parse {text} as duration")
    return Duration(total)


def parsed_date(text: str) -> Timestamp:
    """`2024-12-31`."""
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError(f'parsing time "{text}" as "2006-01-02": cannot parse "{text}" as "2006"')
    year, month, day = map(int, found.groups())
    return Timestamp(_seconds(text, year, month, day, 0, 0, 0) * SECOND)


def parsed_timestamp(text: str) -> Timestamp:
    """`2024-12-31T23:59:59.5+01:00`; ValueError when it is none or has no zone."""
    found = _DATE_TIME.fullmatch(text)
    if found is None or found[8] is None:
        raise ValueError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"')
    return _timestamp(found, text)


def parsed_date_time(text: str) -> Timestamp:
    """What the format "date-time" of a schema allows: RFC 3339, also without a zone; nothing is the epoch."""
    if not text:
        return Timestamp(0)
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        raise ValueError(f'parsing time "{text}" as "2006-01-02T15:04:05": cannot parse "{text}" as "2006"')
    return _timestamp(found, text)


def _timestamp(found: re.Match[str], text: str) -> Timestamp:
    year, month, day, hour, minute, second = (int(found[group]) for group in range(1, 7))
    nanoseconds = int((found[7] or "")[:9].ljust(9, "0"))
    zone = found[8] or "Z"
    offset = 0
    if zone != "Z":
        if int(zone[1:3]) > 23 or int(zone[4:6]) > 59:
            raise ValueError(f'parsing time "{text}": time zone offset out of range')
        offset = (int(zone[1:3]) * 60 + int(zone[4:6])) * (-60 if zone[0] == "-" else 60)
    seconds = _seconds(text, year, month, day, hour, minute, second) - offset
    return Timestamp(seconds * SECOND + nanoseconds, offset)


def _seconds(text: str, year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    if not (1 <= month <= 12 and hour < 24 and minute < 60 and second < 60 and 1 <= day <= _days(year, month)):
        raise ValueError(f'parsing time "{text}": out of range')
    # There is no year 0: it is as good as any other that is too early.
    return timegm((year, month, day, hour, minute, second)) if year else _FIRST - 1


def _days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def checked_timestamp(timestamp: Timestamp) -> Timestamp:
    """The timestamp, which must be of the years 1 to 9999."""
    if not _FIRST <= timestamp.nanoseconds // SECOND <= _LAST:
        raise EvaluationError("timestamp overflow")
    return timestamp


def checked_duration(nanoseconds: int) -> Duration:
    """The duration, which must fit in 64 bits."""
    if not MIN_INT <= nanoseconds <= MAX_INT:
        raise EvaluationError("duration overflow")
    return Duration(nanoseconds)


def duration_text(duration: Duration) -> str:
    """In seconds: `1.5s`."""
    whole, rest = divmod(abs(duration.nanoseconds), SECOND)
    sign = "-" if duration.nanoseconds < 0 else ""
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{sign}{whole}{fraction}s"


def timestamp_text(timestamp: Timestamp) -> str:
    """RFC 3339 in the zone it was written in."""
    moment = _moment(timestamp, timezone(timedelta(seconds=timestamp.offset)))
    rest = timestamp.nanoseconds % SECOND
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    if timestamp.offset == 0:
        zone = "Z"
    else:
        hours, minutes = divmod(abs(timestamp.offset) // 60, 60)
        zone = f"{'-' if timestamp.offset < 0 else '+'}{hours:02d}:{minutes:02d}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + zone


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(timestamp: Timestamp, zone: tzinfo) -> datetime:
    try:
        return (_EPOCH + timedelta(seconds=timestamp.nanoseconds // SECOND)).astimezone(zone)
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None


_OFFSET: Final = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})")


def _zone(name: str) -> tzinfo:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _part(name: str, of: Callable[[datetime], int]) -> list[Overload]:
    def in_utc(timestamp: Timestamp) -> int:
        return of(_moment(timestamp, UTC))

    def in_zone(timestamp: Timestamp, zone: str) -> int:
        return of(_moment(timestamp, _zone(zone)))

    return [method(name, [TIMESTAMP], INT, in_utc), method(name, [TIMESTAMP, STRING], INT, in_zone)]


def _whole(scale: int) -> Callable[[Duration], int]:
    def of(duration: Duration) -> int:
        count = abs(duration.nanoseconds) // scale
        return -count if duration.nanoseconds < 0 else count

    return of


def _milliseconds(timestamp: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return timestamp.nanoseconds % SECOND // 1_000_000


TIME_FUNCTIONS: Final[list[Overload]] = [
    *_part("getFullYear", lambda moment: moment.year),
    *_part("getMonth", lambda moment: moment.month - 1),
    *_part("getDayOfYear", lambda moment: moment.timetuple().tm_yday - 1),
    *_part("getDayOfMonth", lambda moment: moment.day - 1),
    *_part("getDate", lambda moment: moment.day),
    *_part("getDayOfWeek", lambda moment: moment.isoweekday() % 7),
    *_part("getHours", lambda moment: moment.hour),
    *_part("getMinutes", lambda moment: moment.minute),
    *_part("getSeconds", lambda moment: moment.second),
    method("getMilliseconds", [TIMESTAMP], INT, _milliseconds),
    method("getMilliseconds", [TIMESTAMP, STRING], INT, _milliseconds),
    method("getHours", [DURATION], INT, _whole(3600 * SECOND)),
    method("getMinutes", [DURATION], INT, _whole(60 * SECOND)),
    method("getSeconds", [DURATION], INT, _whole(SECOND)),
    method("getMilliseconds", [DURATION], INT, _whole(1_000_000)),
]
