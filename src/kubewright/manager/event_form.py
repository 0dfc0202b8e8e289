"""How an event is written: as `events.k8s.io/v1`, or as the older `v1` (`core_event_form.py`)."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from kubewright.api.core.v1 import ObjectReference
from kubewright.api.events.v1 import Event, EventSeries
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.manager.event_correlator import Identity, RecordedEvent

SERIES_WINDOW = timedelta(minutes=6)
"""How long after its last occurrence an event still counts as the same, as client-go has it."""


class EventForm(Protocol):
    """One version of the API of events."""

    @property
    def series_window(self) -> timedelta | None:
        """How long after its last occurrence an event still counts as the same; None for no limit."""

    @property
    def needs_instance(self) -> bool:
        """Whether the server refuses events that do not name, in at most 128 bytes, the instance that reports them."""

    async def create(self, client: Client, event: RecordedEvent, count: int) -> None:
        """Create the event, which has happened `count` times."""

    async def raise_count(self, client: Client, event: RecordedEvent, count: int) -> None:
        """Change the count of the event that was created."""


class EventsV1:
    """`events.k8s.io/v1`: repetitions are a series. Of an event that exists only the series may change."""

    series_window = SERIES_WINDOW
    needs_instance = True

    async def create(self, client: Client, event: RecordedEvent, count: int) -> None:
        """See `EventForm`."""
        subject = event.subject
        await client.submit(
            Event(
                metadata=ObjectMeta(name=event.name, namespace=event.namespace),
                regarding=regarding_of(event),
                related=related_of(event),
                type=subject.type,
                reason=subject.reason,
                action=subject.action,
                note=event.note,
                event_time=event.first,
                series=EventSeries(count=count, last_observed_time=event.last) if count > 1 else None,
                reporting_controller=subject.component,
                reporting_instance=subject.instance,
            )
        )

    async def raise_count(self, client: Client, event: RecordedEvent, count: int) -> None:
        """See `EventForm`."""
        series: JSONValue = {"count": count, "lastObservedTime": event.last.to_json()}
        await client.patch(Event, event.name, MergePatch({"series": series}), namespace=event.namespace)


def regarding_of(event: RecordedEvent) -> ObjectReference:
    """The object that the event is about, or the part of it."""
    return _reference(event.subject.regarding, event.regarding_revision, event.subject.field_path)


def related_of(event: RecordedEvent) -> ObjectReference | None:
    """The other object that was involved."""
    related = event.subject.related
    return _reference(related, event.related_revision) if related is not None else None


def _reference(identity: Identity, revision: str, field_path: str = "") -> ObjectReference:
    return ObjectReference(
        api_version=identity.api_version,
        kind=identity.kind,
        namespace=identity.namespace or None,
        name=identity.name,
        uid=identity.uid or None,
        resource_version=revision or None,
        field_path=field_path or None,
    )
