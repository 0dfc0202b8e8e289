"""Events for unit tests: a recorder that keeps events in memory.

events = RecordedEvents()
await WidgetReconciler(client, events).reconcile(request)
assert events.reasons == ["Scaled"]
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object


class EventCall(NamedTuple):
    """One event as the program recorded it."""

    type: Literal["Normal", "Warning"]
    kind: str
    key: ObjectKey
    reason: str
    note: str
    action: str = ""
    related: ObjectKey | None = None


class RecordedEvents:
    """A `kubewright.Recorder` that keeps what it is given, in order, repetitions included."""

    def __init__(self) -> None:
        self.calls: list[EventCall] = []

    @property
    def reasons(self) -> list[str]:
        """The reasons of all events, in order."""
        return [call.reason for call in self.calls]

    @property
    def warnings(self) -> list[EventCall]:
        """The events of type Warning, in order."""
        return [call for call in self.calls if call.type == "Warning"]

    def normal(
        self, regarding: Object, reason: str, note: str, *, action: str = "", related: Object | None = None
    ) -> None:
        """Record an event of type Normal."""
        self._record("Normal", regarding, reason, note, action, related)

    def warning(
        self, regarding: Object, reason: str, note: str, *, action: str = "", related: Object | None = None
    ) -> None:
        """Record an event of type Warning."""
        self._record("Warning", regarding, reason, note, action, related)

    async def once(self, type_: Literal["Normal", "Warning"], regarding: Object, reason: str, note: str) -> None:
        """Record the only event of its reason about an object; also again, so that a test sees it."""
        self._record(type_, regarding, reason, note, "", None)

    def _record(
        self,
        type_: Literal["Normal", "Warning"],
        regarding: Object,
        reason: str,
        note: str,
        action: str,
        related: Object | None,
    ) -> None:
        key = related.key if related is not None else None
        self.calls.append(EventCall(type_, regarding.kind, regarding.key, reason, note, action or reason, key))
