"""Points in time, as the API writes them.

`Time` fields (creationTimestamp, lastTransitionTime …) are RFC 3339 with whole seconds. They hold ordinary datetimes
with a time zone, which msgspec reads and writes natively. The server accepts a fraction, but cuts it off.

`MicroTime` fields (a Lease's renewTime, an Event's eventTime) need exactly six digits of fraction: the server refuses
`2026-01-01T00:00:00Z` there. As msgspec leaves zero fractions out, they are a datetime type of their own.

All timestamps come from one clock, `now` and its variants: the machine's, and inside `run_virtual` the virtual one.
Durations (timeouts, pauses, ages of connections) use the event loop's clock instead.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Annotated, Final, Self, TypeAlias

import msgspec

Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]

_NAIVE_TIME: Final = re.compile(rb'T\d\d:\d\d:\d\d(?:\.\d{6})?"')


class MicroTime(datetime):
    """A datetime whose JSON always has six digits of fraction, in UTC. Arithmetic with timedelta keeps the type."""

    @classmethod
    def from_datetime(cls, value: datetime) -> Self:
        """The same point in time, in UTC; ValueError when `value` has no time zone."""
        if type(value) is cls and value.tzinfo is UTC:
            return value
        if value.tzinfo is not UTC:
            if value.utcoffset() is None:
                raise ValueError(_naive(value))
            value = value.astimezone(UTC)
        return cls.combine(value.date(), value.timetz())

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Any RFC 3339 time with a time zone, to the microsecond; ValueError for anything else."""
        if isinstance(value, str):
            try:
                return cls.from_datetime(msgspec.convert(value, Time))
            except (msgspec.ValidationError, OverflowError):
                found = repr(value[:40])
        else:
            found = type(value).__name__
        raise ValueError(f'expected a time such as "2026-01-01T00:00:00.000000Z", found {found}')

    def to_json(self) -> str:
        """`2026-01-01T00:00:00.000000Z`; ValueError when there is no time zone."""
        if self.tzinfo is UTC:
            return self.isoformat(timespec="microseconds")[: -len("+00:00")] + "Z"
        if self.utcoffset() is None:
            raise ValueError(_naive(self))
        return self.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def now() -> datetime:
    """The present for a `Time` field: UTC, whole seconds, so that what is written is what will be read back.

    Inside `kubewright.testing.virtual_time.run_virtual` it is the virtual present.
    """
    return exact_now().replace(microsecond=0)


def micro_now() -> MicroTime:
    """The present for a `MicroTime` field, in UTC."""
    return MicroTime.from_datetime(exact_now())


def unix_now() -> float:
    """The present as seconds since 1970, as `time.time` has it."""
    return exact_now().timestamp()


def exact_now() -> datetime:
    """The present in UTC, to the microsecond: for comparisons, not for a field."""
    return _clock.get()()


@contextmanager
def clock_set_to(clock: Callable[[], datetime]) -> Iterator[None]:
    """Within the block, `clock` returns the present in UTC, also for tasks and `asyncio.to_thread` started there."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


def _machine_time() -> datetime:
    return datetime.now(UTC)


_clock: ContextVar[Callable[[], datetime]] = ContextVar("kubewright.clock", default=_machine_time)


def refuse_naive_times(value: object, encoded: bytes, enc_hook: Callable[[object], object]) -> None:
    """Raise ValueError, naming the field, when a datetime in `value` has no time zone.

    msgspec writes such datetimes without complaint. `encoded` is the JSON it made of `value` with `enc_hook`: a scan
    of it is cheap, and `value` is only walked when something in there looks like a time without zone.
    """
    if _NAIVE_TIME.search(encoded):
        plain = msgspec.to_builtins(
            value,
            builtin_types=(datetime,),
            # What is JSON already has no datetimes.
            enc_hook=lambda value: None if isinstance(value, msgspec.Raw) else enc_hook(value),
        )
        _refuse_naive_times(plain, "")


def _refuse_naive_times(value: object, path: str) -> None:
    match value:
        case dict():
            for name, item in value.items():
                _refuse_naive_times(item, f"{path}.{name}" if path else str(name))
        case list() | tuple():
            for index, item in enumerate(value):
                _refuse_naive_times(item, f"{path}[{index}]")
        case datetime() if value.utcoffset() is None:
            raise ValueError(f"{path}: {_naive(value)}" if path else _naive(value))


def _naive(value: datetime) -> str:
    return (
        f"the time {value.isoformat()} has no time zone: use datetime.now(UTC) instead of datetime.now() or utcnow(), "
        "or add one with .replace(tzinfo=UTC)"
    )
