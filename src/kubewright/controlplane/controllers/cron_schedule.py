"""When a cron schedule is due: five fields, `@daily` and the like, or `@every 5m`, in a time zone.

Nothing here validates: the server has accepted the schedule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {
    name: number
    for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)  # noqa: SIM905
}
_DAYS = {name: number for number, name in enumerate("sun mon tue wed thu fri sat".split())}  # noqa: SIM905
_BOUNDS: tuple[tuple[int, int, Mapping[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_YEARS = 5


@dataclass(frozen=True, slots=True)
class Schedule:
    """The minutes, hours, days, months and weekdays of a schedule; or a fixed interval."""

    fields: tuple[frozenset[int], ...]
    any_day: bool
    zone: tzinfo
    every: float = 0.0

    def after(self, time: datetime) -> datetime | None:
        """The first time after another one; None when there is none within five years."""
        if self.every:
            return time.replace(microsecond=0) + timedelta(seconds=self.every)
        minutes, hours, _, months, _ = self.fields
        found = time.astimezone(self.zone).replace(second=0, microsecond=0)
        found = self._later(found, timedelta(minutes=1))
        last = found.year + _YEARS
        while found.year <= last:
            if found.month not in months:
                found = self._midnight((found.replace(day=1) + timedelta(days=32)).replace(day=1))
            elif not self._is_day(found):
                found = self._midnight(found + timedelta(days=1))
            elif found.hour not in hours:
                found = self._later(found.replace(minute=0), timedelta(hours=1))
            elif found.minute not in minutes:
                found = self._later(found, timedelta(minutes=1))
            else:
                return found.astimezone(time.tzinfo)
        return None

    def _later(self, time: datetime, step: timedelta) -> datetime:
        """By the clock of no zone: an hour that is left out is not found, and one that comes twice is found twice."""
        return (time.astimezone(UTC) + step).astimezone(self.zone)

    def _midnight(self, time: datetime) -> datetime:
        """The begin of the day; where a zone leaves out that hour, what its clocks show instead."""
        return time.replace(hour=0, minute=0, fold=0).astimezone(UTC).astimezone(self.zone)

    def _is_day(self, time: datetime) -> bool:
        in_month, in_week = time.day in self.fields[2], time.isoweekday() % 7 in self.fields[4]
        return in_month and in_week if self.any_day else in_month or in_week


def parsed_schedule(text: str, zone: tzinfo) -> Schedule:
    """The schedule of a text, in a time zone."""
    text = text.strip()
    if text.startswith("@every "):
        parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", text)
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        return Schedule((), True, zone, max(1.0, float(int(seconds))))
    fields = _DESCRIPTORS.get(text, text).split()
    values = tuple(_values(field, *bounds) for field, bounds in zip(fields, _BOUNDS, strict=True))
    # Of days of the month and of the week both have to fit when one of them is any, else either.
    any_day = any(part[:1] in ("*", "?") for field in (fields[2], fields[4]) for part in field.split(","))
    return Schedule(values, any_day, zone)


def _values(field: str, lowest: int, highest: int, names: Mapping[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, field.split(",")):
        ends, _, step = part.partition("/")
        first, hyphen, last = ends.partition("-")
        if first in ("*", "?"):
            start, end = lowest, highest
        else:
            start = names.get(first.lower(), -1) if not first.isdecimal() else int(first)
            end = (names.get(last.lower(), -1) if not last.isdecimal() else int(last)) if hyphen else start
            if step and not hyphen:
                end = highest
        found.update(range(start, end + 1, int(step or 1)))
    return frozenset(found)
