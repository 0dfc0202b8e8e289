"""Whether a cron schedule can be parsed, with the messages of the library that kube-apiserver uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer

_DESCRIPTORS = frozenset(("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"))
_DURATION = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))*")
_EVERY = "@every "


@dataclass(frozen=True)
class _Bounds:
    lowest: int
    highest: int
    names: Mapping[str, int] = field(default_factory=dict)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class _Unreadable(Exception):
    """Why a part of a schedule is invalid."""


def schedule_complaint(schedule: str) -> str | None:
    """What is wrong with a schedule; None when nothing is."""
    schedule = schedule.strip()
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    if schedule.startswith("@"):
        return _descriptor_complaint(schedule)
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]"
    try:
        for part, bounds in zip(parts, _FIELDS, strict=True):
            for expression in filter(None, part.split(",")):
                _check(expression, bounds)
    except _Unreadable as error:
        return str(error)
    return None


def _descriptor_complaint(schedule: str) -> str | None:
    if schedule in _DESCRIPTORS:
        return None
    if not schedule.startswith(_EVERY):
        return f"unrecognized descriptor: {schedule}"
    duration = schedule.removeprefix(_EVERY)
    if duration == "0" or _DURATION.fullmatch(duration):
        return None
    return f'failed to parse duration {schedule}: time: invalid duration "{duration}"'


def _check(expression: str, bounds: _Bounds) -> None:
    """One range: `*`, `5`, `1-5`, each with an optional step."""
    steps = expression.split("/")
    ends = steps[0].split("-")
    if ends[0] in ("*", "?"):
        start, end = bounds.lowest, bounds.highest
    else:
        start = _number(ends[0], bounds)
        if len(ends) > 2:
            raise _Unreadable(f"too many hyphens: {expression}")
        end = _number(ends[1], bounds) if len(ends) == 2 else start
    if len(steps) > 2:
        raise _Unreadable(f"too many slashes: {expression}")
    step = 1
    if len(steps) == 2:
        step = _number(steps[1], _Bounds(0, 0))
        if len(ends) == 1 and ends[0] not in ("*", "?"):
            end = bounds.highest
    if start < bounds.lowest:
        raise _Unreadable(f"beginning of range ({start}) below minimum ({bounds.lowest}): {expression}")
    if end > bounds.highest:
        raise _Unreadable(f"end of range ({end}) above maximum ({bounds.highest}): {expression}")
    if start > end:
        raise _Unreadable(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise _Unreadable(f"step of range should be a positive number: {expression}")


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    if named is not None:
        return named
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        raise _Unreadable(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = bounded_integer(text)
    if not -(2**63) <= number < 2**63:
        raise _Unreadable(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range')
    if number < 0:
        raise _Unreadable(f"negative number ({text}) not allowed: {text}")
    return number
