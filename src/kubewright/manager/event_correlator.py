"""Which occurrences are one event, and which are too many: client-go's event correlator.

The same event again raises the count of the first. Of events that differ in their note alone, the tenth within ten
minutes and those after it are combined into one. About one object there are at most 25 writes in a row, of each type,
and one every five minutes after that. Nothing here talks to a server or takes a lock; the caller does both.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Generic, Literal, TypeAlias, TypeVar
from zlib import crc32

import msgspec

from kubewright.api.time import MicroTime
from kubewright.client.token_bucket import TokenBucket

BURST = 25
"""Writes about one object that may follow each other at once."""
REFILL = timedelta(minutes=5)
"""After that, one write each."""
_RATE = 1 / REFILL.total_seconds()
MAX_NOTES = 10
"""From this number of different notes on, similar events are combined."""
SIMILAR_WINDOW = timedelta(minutes=10)
"""How long after the last of them another event still counts as similar."""
MAX_REMEMBERED = 4096

MAX_NAME = 253
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_V = TypeVar("_V")

EventType: TypeAlias = Literal["Normal", "Warning"]


class Identity(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """The identity of an object: the same while it exists, whatever its revision."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Subject(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Everything in which similar events are equal: all but their notes."""

    component: str
    instance: str
    regarding: Identity
    field_path: str
    related: Identity | None
    type: EventType
    reason: str
    action: str

    def __str__(self) -> str:
        about = self.regarding
        name = f"{about.namespace}/{about.name}" if about.namespace else about.name
        return f"{self.reason} of {about.kind} {name}"


class RecordedEvent(msgspec.Struct, eq=False, gc=False):
    """One event, how often it has happened, and the count that the server has.

    Thousands are kept, so an API object is made of it only when it is written.
    """

    subject: Subject
    is_combined: bool
    note: str
    name: str
    namespace: str
    regarding_revision: str
    related_revision: str
    first: MicroTime
    last: MicroTime
    count: int = 1
    written: int = 0
    """The count that the server has; 0 when it does not know the event."""

    def __str__(self) -> str:
        return str(self.subject)

    @property
    def regarding(self) -> Identity:
        """The object that the event is about."""
        return self.subject.regarding


class EventCorrelator:
    """Keeps the latest events, by what makes them the same."""

    def __init__(self, series_window: timedelta | None) -> None:
        """`series_window` is how long after its last occurrence an event counts as the same; None for no limit."""
        self._series_window = series_window
        self._events = _Latest[RecordedEvent]()
        self._notes = _Latest[_Notes]()
        self._buckets = _Latest[TokenBucket]()
        self._last_name = 0

    def correlate(
        self,
        subject: Subject,
        note: str,
        now: MicroTime,
        regarding_revision: str,
        related_revision: str,
        is_queued: Callable[[RecordedEvent], bool],
    ) -> RecordedEvent | None:
        """Count one occurrence. Returns the event to write, or None when nothing is to be written for it.

        `is_queued` returns whether an event waits to be written anyway, so that it costs no further write.
        """
        notes = self._notes.get(subject) or self._notes.add(subject, _Notes(now))
        is_combined = notes.add(note, now) >= MAX_NOTES
        if is_combined:
            notes.seen.pop()
            note = f"(combined from similar events): {note}"
        key = subject, None if is_combined else note
        event = self._events.get(key)
        if event is not None and not self._is_over(event, now):
            event.count += 1
            event.last = now
            event.note = note
            return event if not is_queued(event) and self._may_write(subject, now.timestamp()) else None
        seconds = now.timestamp()
        if not self._may_write(subject, seconds):
            return None
        about = subject.regarding
        name, namespace = self._name(subject, seconds), about.namespace or "default"
        event = RecordedEvent(
            subject, is_combined, note, name, namespace, regarding_revision, related_revision, now, now
        )
        self._events.add(key, event)
        while (oldest := self._events.oldest()) is not event and self._is_over(oldest, now):
            self._events.drop_oldest()
        return event

    def forget(self, event: RecordedEvent) -> None:
        """Its next occurrence is a new event."""
        self._events.discard((event.subject, None if event.is_combined else event.note), event)

    def _is_over(self, event: RecordedEvent, now: datetime) -> bool:
        return self._series_window is not None and now - event.last >= self._series_window

    def _may_write(self, subject: Subject, now: float) -> bool:
        # Each type has its own bucket, so that no number of normal events suppresses a warning.
        source = subject.component, subject.instance, subject.regarding, subject.type
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = self._buckets.add(source, TokenBucket(_RATE, BURST))
        return bucket.take(now)

    def _name(self, subject: Subject, now: float) -> str:
        """A name of the usual form: the object's, and the time in nanoseconds; unique also where clocks are coarse.

        What the clock does not show, nanoseconds, is taken from who reports: others may at the same time.
        """
        reporter = crc32(f"{subject.component} {subject.instance}".encode()) % 1000
        self._last_name = max(self._last_name + 1, int(now * 1_000_000) * 1000 + reporter)
        return _valid(f"{subject.regarding.name}.{self._last_name:x}") or str(uuid.uuid4())


def only_name(subject: Subject) -> str:
    """The name of the only event of its reason about an object, whichever process writes it."""
    about = subject.regarding
    of_both = hashlib.sha256(f"{about.uid} {about.namespace}/{about.name} {subject.reason}".encode()).hexdigest()[:16]
    return _valid(f"{about.name}.{of_both}") or of_both


def _valid(name: str) -> str | None:
    """RBAC objects may be called "system:node"; events may not."""
    return name if len(name) <= MAX_NAME and SUBDOMAIN.fullmatch(name) else None


class _Notes:
    """The different recent notes of similar events."""

    __slots__ = ("last", "seen")

    def __init__(self, now: datetime) -> None:
        self.last = now
        self.seen: set[str] = set()

    def add(self, note: str, now: datetime) -> int:
        """Add a note. Returns how many different ones there are."""
        if now - self.last > SIMILAR_WINDOW:
            self.seen.clear()
        self.last = now
        self.seen.add(note)
        return len(self.seen)


class _Latest(Generic[_V]):
    """The most recently used items, up to a limit, in the order of their last use."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, _V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> _V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def add(self, key: Hashable, value: _V) -> _V:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > MAX_REMEMBERED:
            self.drop_oldest()
        return value

    def oldest(self) -> _V:
        return next(iter(self._values.values()))

    def drop_oldest(self) -> None:
        self._values.popitem(last=False)

    def discard(self, key: Hashable, value: _V) -> None:
        if self._values.get(key) is value:
            del self._values[key]
