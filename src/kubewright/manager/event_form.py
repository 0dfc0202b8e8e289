"""How an event is written: as `events.k8s.io/v1`, or as the older `v1`.

Operators, and kube-scheduler, use the first; kube-controller-manager and the kubelet still use the second, where the
count and the time of the last occurrence are fields of the event itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from kubewright.api.codec import to_json
from kubewright.api.core.v1 import Event as CoreEvent
from kubewright.api.core.v1 import EventSource, ObjectReference
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
        """How long after its last occurrence an event still counts as the same; None for ever."""

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
                regarding=_regarding(event),
                related=_related(event),
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


class CoreV1:
    """`v1`, for components of Kubernetes itself; what they report names the host, and never an action."""

    series_window = None
    needs_instance = False

    def __init__(self, *, field_manager: str) -> None:
        self._field_manager = field_manager

    async def create(self, client: Client, event: RecordedEvent, count: int) -> None:
        """See `EventForm`."""
        subject = event.subject
        await client.create(
            CoreEvent(
                metadata=ObjectMeta(name=event.name, namespace=event.namespace),
                involved_object=_regarding(event),
                related=_related(event),
                type=subject.type,
                reason=subject.reason,
                message=event.note,
                source=EventSource(component=subject.component, host=subject.instance or None),
                reporting_component=subject.component,
                reporting_instance=subject.instance or None,
                first_timestamp=event.first.replace(microsecond=0),
                last_timestamp=event.last.replace(microsecond=0),
                count=count,
            ),
            field_manager=self._field_manager,
        )

    async def raise_count(self, client: Client, event: RecordedEvent, count: int) -> None:
        """See `EventForm`."""
        changes: dict[str, JSONValue] = {
            "count": count,
            "lastTimestamp": to_json(event.last.replace(microsecond=0)),
            "message": event.note,
        }
        await client.patch(
            CoreEvent,
            event.name,
            MergePatch(changes),
            namespace=event.namespace,
            field_manager=self._field_manager,
        )


def _regarding(event: RecordedEvent) -> ObjectReference:
    reference = _reference(event.subject.regarding, event.regarding_revision)
    reference.field_path = event.subject.field_path or None
    return reference


def _related(event: RecordedEvent) -> ObjectReference | None:
    related = event.subject.related
    return _reference(related, event.related_revision) if related is not None else None


def _reference(identity: Identity, revision: str) -> ObjectReference:
    return ObjectReference(
        api_version=identity.api_version,
        kind=identity.kind,
        namespace=identity.namespace or None,
        name=identity.name,
        uid=identity.uid or None,
        resource_version=revision or None,
    )
