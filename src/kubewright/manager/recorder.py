"""Events that tell people what an operator did to their object: `kubectl events`, `kubectl describe`.

    broadcaster = EventBroadcaster(client, instance="operator-7d9f")
    recorder = broadcaster.recorder("podmanager")
    recorder.normal(manager, "Scaled", "2 pods became 3")

Recording is best effort and never in the way: it does not wait, does not raise and may be done from any thread.
`broadcaster.run()` writes what was recorded. The role of the operator needs `create` and `patch` on `events` of
the group `events.k8s.io`, and nothing else for it.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal, Protocol

import msgspec

from kubewright.api.core.v1 import ObjectReference
from kubewright.api.events.v1 import Event, EventSeries
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, resource_info
from kubewright.api.time import MicroTime, micro_now
from kubewright.client import Client, MergePatch
from kubewright.client.errors import AlreadyExists, NotFound
from kubewright.manager.event_queue import EventQueue

SERIES_WINDOW = timedelta(minutes=6)
"""How long after its last occurrence an event still counts as the same, as client-go has it."""
BURST = 25
"""Writes about one object that may follow each other at once."""
REFILL = timedelta(minutes=5)
"""After that, one write each."""

_MOST_REMEMBERED = 4096

# The server's limits, in bytes.
_LONGEST_NOTE, _LONGEST_WORD, _LONGEST_NAME = 1024, 128, 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_COMPONENT = rf"({_SUBDOMAIN.pattern}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?"

_log = logging.getLogger(__name__)


class Recorder(Protocol):
    """Tells of what happens to objects. Neither method ever waits, raises or fails."""

    def normal(
        self, regarding: Object, reason: str, note: str, *, action: str = "", related: Object | None = None
    ) -> None:
        """What went as it should. `reason` is a CamelCase word for programs, `note` a sentence for people.

        `action` is what was done, and the reason again by default; `related` another object that had a part in it.
        """

    def warning(
        self, regarding: Object, reason: str, note: str, *, action: str = "", related: Object | None = None
    ) -> None:
        """The same of what somebody should look into."""


class _Identity(msgspec.Struct, frozen=True, gc=False):
    """Which object: the same as long as it lives, whatever its revision."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class _Likeness(msgspec.Struct, frozen=True, gc=False):
    """Events that have this in common are one event that happened several times."""

    component: str
    regarding: _Identity
    related: _Identity | None
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str

    def __str__(self) -> str:
        about = self.regarding
        name = f"{about.namespace}/{about.name}" if about.namespace else about.name
        return f"{self.reason} of {about.kind} {name}"


class _Occurrences(msgspec.Struct, eq=False, gc=False):
    """The event that likeness has become, how often it has happened, and how much of that the server knows.

    Thousands are remembered, so an event is made of it only when it is written.
    """

    likeness: _Likeness
    name: str
    namespace: str
    regarding_revision: str
    related_revision: str
    first: MicroTime
    last: MicroTime
    count: int = 1
    told: int = 0

    def __str__(self) -> str:
        return str(self.likeness)

    @property
    def regarding(self) -> _Identity:
        return self.likeness.regarding


class _Bucket(msgspec.Struct, gc=False):
    """What may still be written about one object."""

    filled_at: datetime
    tokens: float = BURST - 1  # made for a first write

    def take(self, now: datetime) -> bool:
        self.tokens = min(BURST, self.tokens + max(0.0, (now - self.filled_at) / REFILL))
        self.filled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class EventBroadcaster:
    """Writes what its recorders are told, about one object in order; everything is owned by the task of `run`.

    The same event again within six minutes raises the count of the one that is there. About one object there are at
    most 25 writes in a row, of each type, and one every five minutes after that: what is new is then dropped, what is a
    repetition is counted and told with the next write. When the server is away, up to 10,000 events wait for it for a
    minute or two; which one is written when says `EventQueue`.
    """

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        now: Callable[[], datetime] = micro_now,
    ) -> None:
        """`instance` tells which of several replicas speaks: the name of the pod, or of the host."""
        if not 0 < len(instance.encode()) <= _LONGEST_WORD:
            raise ValueError(f'"{instance}" cannot be the instance of events: expected 1 to {_LONGEST_WORD} bytes')
        self._client = client
        self._instance = instance
        self._now = now
        self._known: OrderedDict[_Likeness, _Occurrences] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, _Identity, str], _Bucket] = OrderedDict()
        # Reconcilers may run in threads: its lock is for the two above as well.
        self._queue = EventQueue(self._write, self._forget)
        self._last_name = 0

    def recorder(self, component: str) -> Recorder:
        """A recorder for one part of the program, such as a controller; `component` becomes `reportingController`."""
        if len(component) > _LONGEST_NAME or not re.fullmatch(_COMPONENT, component):
            raise ValueError(
                f'"{component}" cannot be the component of a recorder: expected a name of at most 63 letters, digits, '
                '"-", "_" and ".", such as "podmanager" or "example.com/podmanager"'
            )
        return _BroadcastingRecorder(self, component)

    async def run(self) -> None:
        """Write events until cancelled. No error ends it."""
        await self._queue.run()

    async def flush(self, timeout: float) -> None:
        """Return when all that was recorded has been written or given up, or after `timeout` seconds.

        For shutdown: before or after `run` is cancelled.
        """
        await self._queue.flush(timeout)

    # Taking in: any thread, at any time

    def record(
        self,
        component: str,
        kind: Literal["Normal", "Warning"],
        regarding: Object,
        reason: str,
        note: str,
        action: str,
        related: Object | None,
    ) -> None:
        """What the recorders call: take in one occurrence of an event."""
        try:
            now = MicroTime.from_datetime(self._now())
            reason = _cut(reason, _LONGEST_WORD)
            likeness = _Likeness(
                component,
                _identity(regarding),
                _identity(related) if related is not None else None,
                kind,
                reason,
                _cut(action, _LONGEST_WORD) or reason,
                _cut(note, _LONGEST_NOTE),
            )
            related_revision = related.metadata.resource_version if related is not None else ""
            with self._queue.lock:
                self._take(likeness, now, regarding.metadata.resource_version, related_revision)
        except Exception:
            # Whatever is wrong with an event, the reconcile that tells of it must not suffer.
            _log.exception("an event was not recorded: reason %r", reason)

    def _take(self, likeness: _Likeness, now: MicroTime, regarding_revision: str, related_revision: str) -> None:
        known = self._known.get(likeness)
        if known is not None and not _is_over(known, now):
            known.count += 1
            known.last = now
            self._known.move_to_end(likeness)
            # One that waits to be written anyway costs no further write.
            if known not in self._queue and self._may_write(likeness, now):
                self._enqueue(known)
        elif self._may_write(likeness, now):
            about = likeness.regarding
            name = self._name(about.name, now)
            namespace = about.namespace or "default"
            self._enqueue(_Occurrences(likeness, name, namespace, regarding_revision, related_revision, now, now))

    def _enqueue(self, occurrences: _Occurrences) -> None:
        if not self._queue.put(occurrences):
            return
        self._known[occurrences.likeness] = occurrences
        self._known.move_to_end(occurrences.likeness)
        # In the order of their last occurrence, so that what is over is in front.
        while len(self._known) > _MOST_REMEMBERED or _is_over(next(iter(self._known.values())), occurrences.last):
            self._known.popitem(last=False)

    def _forget(self, occurrences: _Occurrences) -> None:
        """The next time it happens is a new event, which may fare better."""
        if self._known.get(occurrences.likeness) is occurrences:
            del self._known[occurrences.likeness]

    def _may_write(self, likeness: _Likeness, now: datetime) -> bool:
        # Each type has its own, so that no number of good news keeps a warning from being told.
        source = likeness.component, likeness.regarding, likeness.type
        bucket = self._buckets.get(source)
        if bucket is not None:
            self._buckets.move_to_end(source)
            return bucket.take(now)
        self._buckets[source] = _Bucket(now)
        if len(self._buckets) > _MOST_REMEMBERED:
            self._buckets.popitem(last=False)
        return True

    def _name(self, regarding: str, now: datetime) -> str:
        """A name of the usual form: the object's, and the time in nanoseconds; unique also where clocks are coarse."""
        self._last_name = max(self._last_name + 1, int(now.timestamp() * 1_000_000) * 1000)
        name = f"{regarding}.{self._last_name:x}"
        is_valid = len(name) <= _LONGEST_NAME and _SUBDOMAIN.fullmatch(name)
        # RBAC objects may be called "system:node"; events may not.
        return name if is_valid else str(uuid.uuid4())

    # Writing: the tasks of the queue

    async def _write(self, occurrences: _Occurrences) -> None:
        count = occurrences.count
        if count == occurrences.told:
            return
        is_stored = occurrences.told > 0
        if is_stored:
            try:
                await self._raise_count(occurrences, count)
            except NotFound:  # the server forgets events after an hour, and anybody may delete them
                is_stored = False
        if not is_stored:
            try:
                await self._client.submit(self._event(occurrences, count))
            except AlreadyExists:
                # By an earlier attempt, whose answer was lost.
                if count > 1:
                    await self._raise_count(occurrences, count)
        occurrences.told = count

    def _event(self, occurrences: _Occurrences, count: int) -> Event:
        likeness = occurrences.likeness
        related = likeness.related
        return Event(
            metadata=ObjectMeta(name=occurrences.name, namespace=occurrences.namespace),
            regarding=_reference(likeness.regarding, occurrences.regarding_revision),
            related=_reference(related, occurrences.related_revision) if related is not None else None,
            type=likeness.type,
            reason=likeness.reason,
            action=likeness.action,
            note=likeness.note,
            event_time=occurrences.first,
            series=EventSeries(count=count, last_observed_time=occurrences.last) if count > 1 else None,
            reporting_controller=likeness.component,
            reporting_instance=self._instance,
        )

    async def _raise_count(self, occurrences: _Occurrences, count: int) -> None:
        series: JSONValue = {"count": count, "lastObservedTime": occurrences.last.to_json()}
        patch = MergePatch({"series": series})
        await self._client.patch(Event, patch, name=occurrences.name, namespace=occurrences.namespace)


class _BroadcastingRecorder:
    """The recorder of one component."""

    __slots__ = ("_broadcaster", "_component")

    def __init__(self, broadcaster: EventBroadcaster, component: str) -> None:
        self._broadcaster = broadcaster
        self._component = component

    def normal(
        self, regarding: Object, reason: str, note: str, *, action: str = "", related: Object | None = None
    ) -> None:
        self._broadcaster.record(self._component, "Normal", regarding, reason, note, action, related)

    def warning(
        self, regarding: Object, reason: str, note: str, *, action: str = "", related: Object | None = None
    ) -> None:
        self._broadcaster.record(self._component, "Warning", regarding, reason, note, action, related)


def _identity(obj: Object) -> _Identity:
    # The class knows the kind better than the object: one seen without its body calls itself PartialObjectMetadata.
    gvk, metadata = resource_info(type(obj)).gvk, obj.metadata
    return _Identity(gvk.api_version, gvk.kind, metadata.namespace, metadata.name, metadata.uid)


def _reference(identity: _Identity, revision: str) -> ObjectReference:
    return ObjectReference(
        api_version=identity.api_version,
        kind=identity.kind,
        namespace=identity.namespace or None,
        name=identity.name,
        uid=identity.uid or None,
        resource_version=revision or None,
    )


def _cut(text: str, longest: int) -> str:
    """At most that many bytes of valid UTF-8, with an ellipsis where something is missing."""
    if len(text) <= longest and text.isascii():
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= longest:
        return encoded.decode()
    return encoded[: longest - 3].decode(errors="ignore") + "..."


def _is_over(occurrences: _Occurrences, now: datetime) -> bool:
    return now - occurrences.last >= SERIES_WINDOW
