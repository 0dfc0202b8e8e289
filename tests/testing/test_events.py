from __future__ import annotations

from kubewright import ObjectMeta, Recorder
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.kinds import ObjectKey
from kubewright.testing import EventCall, RecordedEvents


def record(events: Recorder) -> None:
    """What mypy makes sure of: it is a Recorder."""
    config_map = ConfigMap(metadata=ObjectMeta(name="a", namespace="x"))
    other = ConfigMap(metadata=ObjectMeta(name="b", namespace="x"))
    events.normal(config_map, "Created", "made", related=other)
    events.warning(config_map, "Failed", "no luck", action="Creating")
    events.warning(config_map, "Failed", "no luck", action="Creating")


def test_events_are_kept_in_order_and_not_written() -> None:
    events = RecordedEvents()

    record(events)

    failed = EventCall("Warning", "ConfigMap", ObjectKey("x", "a"), "Failed", "no luck", "Creating")
    assert events.calls[0] == EventCall(
        "Normal", "ConfigMap", ObjectKey("x", "a"), "Created", "made", "Created", ObjectKey("x", "b")
    )
    assert events.warnings == [failed, failed]
    assert events.reasons == ["Created", "Failed", "Failed"]


async def test_events_that_are_written_once_are_kept_as_often_as_they_come() -> None:
    events = RecordedEvents()
    recorder: Recorder = events
    for _ in range(2):
        await recorder.once("Normal", ConfigMap(metadata=ObjectMeta(name="a")), "Completed", "done")
    assert events.calls == [EventCall("Normal", "ConfigMap", ObjectKey("", "a"), "Completed", "done", "Completed")] * 2
