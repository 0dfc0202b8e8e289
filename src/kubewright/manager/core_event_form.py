"""Events as `v1`, which kube-controller-manager and the kubelet still write; operators write `events.k8s.io/v1`.

The count and the time of the last occurrence are fields of the event itself.
"""

from __future__ import annotations

from kubewright.api.codec import to_json
from kubewright.api.core.v1 import Event, EventSource
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.manager.event_correlator import RecordedEvent
from kubewright.manager.event_form import regarding_of, related_of


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
            Event(
                metadata=ObjectMeta(name=event.name, namespace=event.namespace),
                involved_object=regarding_of(event),
                related=related_of(event),
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
            Event,
            event.name,
            MergePatch(changes),
            namespace=event.namespace,
            field_manager=self._field_manager,
        )
