"""Events as `v1` has them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
from tests.manager.event_server import ManualTime

from kubewright.api.core.v1 import ConfigMap, Event, ObjectReference
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.manager.core_event_form import CoreV1
from kubewright.manager.recorder import EventBroadcaster, EventRecorder

ABOUT = ConfigMap(metadata=ObjectMeta(name="settings", namespace="default", uid="1", resource_version="5"))


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """No other program writes events here."""
    async with ControlPlane.embedded(controllers=["namespaces"], nodes=0) as plane, plane.client() as client:
        yield client


@pytest.fixture
async def recorder(client: Client, time: ManualTime) -> AsyncIterator[EventRecorder]:
    form = CoreV1(field_manager="the-program")
    broadcaster = EventBroadcaster(client, instance="node-1", now=time.now, form=form)
    task = asyncio.create_task(broadcaster.run())
    yield broadcaster.recorder("the-controller")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _settled(client: Client, holds: Callable[[list[Event]], bool]) -> list[Event]:
    async with asyncio.timeout(60):
        while not holds(events := await client.list(Event, namespace="default", page_size=0)):
            await asyncio.sleep(0)
    return events


async def test_an_event_of_the_core_api_counts_in_itself_and_names_its_host(
    client: Client, recorder: EventRecorder, time: ManualTime
) -> None:
    about = ObjectReference(api_version="v1", kind="ConfigMap", namespace="default", name="settings", uid="1")
    about.resource_version, about.field_path = "5", "data{a}"
    recorder.warning(about, "Failed", "It did not work")

    (event,) = await _settled(client, lambda events: len(events) == 1)

    about = event.involved_object
    assert (about.api_version, about.kind, about.namespace, about.name) == ("v1", "ConfigMap", "default", "settings")
    assert (about.uid, about.resource_version, about.field_path) == ("1", "5", "data{a}")
    assert (event.type, event.reason, event.message, event.count) == ("Warning", "Failed", "It did not work", 1)
    assert (event.source.component, event.source.host) == ("the-controller", "node-1")
    assert (event.reporting_component, event.reporting_instance) == ("the-controller", "node-1")
    assert event.first_timestamp == event.last_timestamp == time.now()
    assert (event.event_time, event.series, event.action) == (None, None, None)
    assert event.metadata.name.startswith(f"settings.{int(time.now().timestamp()) * 1_000_000_000:x}"[:-3])
    assert event.metadata.managed_fields[0].manager == "the-program"


async def test_an_event_that_repeats_is_counted(client: Client, recorder: EventRecorder, time: ManualTime) -> None:
    first = time.now()
    for _ in range(3):
        recorder.normal(ABOUT, "Synced", "done")
        (event,) = await _settled(client, lambda events: [event.last_timestamp for event in events] == [time.now()])
        time.advance(timedelta(seconds=60))

    assert event.count == 3
    assert event.first_timestamp == first
    assert event.last_timestamp == first + timedelta(seconds=120)


async def test_from_the_tenth_on_events_that_differ_in_their_message_alone_become_one(
    client: Client, recorder: EventRecorder
) -> None:
    for number in range(12):
        recorder.normal(ABOUT, "Created", f"Created pod: {number}")
        recorder.normal(ABOUT, "Other", "the same")

    events = await _settled(client, lambda events: len(events) == 11)

    words = {event.message: event.count for event in events}
    assert words == {
        **{f"Created pod: {number}": 1 for number in range(9)},
        "the same": 12,
        "(combined from similar events): Created pod: 11": 3,
    }


async def test_an_event_that_was_deleted_is_written_again(client: Client, recorder: EventRecorder) -> None:
    recorder.normal(ABOUT, "Synced", "done")
    (event,) = await _settled(client, lambda events: len(events) == 1)
    await client.delete(event)
    recorder.normal(ABOUT, "Synced", "done")

    (event,) = await _settled(client, lambda events: len(events) == 1)
    assert event.count == 2


async def test_an_absent_namespace_does_not_stop_the_others(client: Client, recorder: EventRecorder) -> None:
    recorder.normal(ConfigMap(metadata=ObjectMeta(name="a", namespace="nowhere")), "Synced", "done")
    recorder.normal(ABOUT, "Synced", "done")

    (event,) = await _settled(client, lambda events: len(events) == 1)
    assert event.involved_object.name == "settings"


async def test_both_servers_accept_repeated_and_combined_events_of_the_core_api(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    about = await admin.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace=namespace)))
    broadcaster = EventBroadcaster(admin, instance="node-1", form=CoreV1(field_manager="the-program"))
    recorder = broadcaster.recorder("the-controller")
    for number in range(12):
        recorder.normal(about, "Created", f"pod {number}")
        recorder.warning(about, "Failed", "again")
        await broadcaster.flush(5)

    shown = (await control_plane.kubectl("events", "-n", namespace, "--no-headers")).stdout

    assert re.search(r"\(x12 over \S+\) +Warning +Failed +ConfigMap/settings +again\n", shown)
    assert re.search(r"\(x3 over \S+\) +Normal +Created +ConfigMap/settings +\(combined [^)]*\): pod 11\n", shown)
