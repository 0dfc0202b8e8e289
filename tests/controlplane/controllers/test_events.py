from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from kubewright.api.core.v1 import ConfigMap, Event
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.events import EventLog
from kubewright.testing.clock import VirtualClock

ABOUT = ConfigMap(metadata=ObjectMeta(name="settings", namespace="default", uid="1", resource_version="5"))


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Nobody else writes events here."""
    async with ControlPlane.embedded(controllers=["namespaces"], nodes=0) as plane, plane.client() as client:
        yield client


@pytest.fixture
async def log(client: Client, clock: VirtualClock) -> AsyncIterator[EventLog]:
    log = EventLog(client, "the-controller", program="the-program", clock=clock)
    task = asyncio.create_task(log.run())
    yield log
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _settled(client: Client, holds: Callable[[list[Event]], bool]) -> list[Event]:
    async with asyncio.timeout(60):
        while not holds(events := await client.list(Event, namespace="default", page_size=0)):
            await asyncio.sleep(0)
    return events


async def test_an_event_has_the_form_of_the_older_recorder(client: Client, log: EventLog, clock: VirtualClock) -> None:
    log.warning(ABOUT, "Failed", "It did not work", host="node-1", field_path="data{a}")

    (event,) = await _settled(client, lambda events: len(events) == 1)

    about = event.involved_object
    assert (about.api_version, about.kind, about.namespace, about.name) == ("v1", "ConfigMap", "default", "settings")
    assert (about.uid, about.resource_version, about.field_path) == ("1", "5", "data{a}")
    assert (event.type, event.reason, event.message, event.count) == ("Warning", "Failed", "It did not work", 1)
    assert (event.source.component, event.source.host) == ("the-controller", "node-1")
    assert (event.reporting_component, event.reporting_instance) == ("the-controller", "node-1")
    assert event.first_timestamp == event.last_timestamp == clock.now()
    assert (event.event_time, event.series, event.action) == (None, None, None)
    assert event.metadata.name == f"settings.{int(clock.now().timestamp()) * 1_000_000_000:x}"
    assert event.metadata.managed_fields[0].manager == "the-program"


async def test_an_event_that_repeats_is_counted(client: Client, log: EventLog, clock: VirtualClock) -> None:
    first = clock.now()
    for _ in range(3):
        log.normal(ABOUT, "Synced", "done")
        (event,) = await _settled(client, lambda events: [event.last_timestamp for event in events] == [clock.now()])
        clock.advance(60)

    assert event.count == 3
    assert event.first_timestamp == first
    assert event.last_timestamp == first + timedelta(seconds=120)


async def test_ten_events_that_differ_in_their_words_become_one(client: Client, log: EventLog) -> None:
    for number in range(12):
        log.normal(ABOUT, "Created", f"Created pod: {number}")
        log.normal(ABOUT, "Other", "the same")

    events = await _settled(client, lambda events: len(events) == 11)

    words = {event.message: event.count for event in events}
    assert words == {
        **{f"Created pod: {number}": 1 for number in range(9)},
        "the same": 12,
        "(combined from similar events): Created pod: 11": 3,
    }


async def test_of_one_object_no_more_is_told_than_its_share(client: Client, log: EventLog, clock: VirtualClock) -> None:
    for number in range(40):
        log.normal(ABOUT, f"Reason{number}", "done")
    log.warning(ABOUT, "Failed", "a warning")
    log.normal(ConfigMap(metadata=ObjectMeta(name="other", namespace="default", uid="2")), "Reason", "done")

    events = await _settled(client, lambda events: any(event.involved_object.name == "other" for event in events))
    assert len(events) == 25 + 2

    clock.advance(300)
    log.normal(ABOUT, "Later", "done")
    log.normal(ABOUT, "TooSoon", "done")
    log.normal(ConfigMap(metadata=ObjectMeta(name="third", namespace="default", uid="3")), "Reason", "done")
    events = await _settled(client, lambda events: any(event.involved_object.name == "third" for event in events))
    assert len(events) == 25 + 4


async def test_an_event_that_somebody_deleted_is_written_again(client: Client, log: EventLog) -> None:
    log.normal(ABOUT, "Synced", "done")
    (event,) = await _settled(client, lambda events: len(events) == 1)
    await client.delete(event)
    log.normal(ABOUT, "Synced", "done")

    (event,) = await _settled(client, lambda events: len(events) == 1)
    assert event.count == 2


async def test_a_namespace_that_is_not_there_does_not_stop_the_log(client: Client, log: EventLog) -> None:
    log.normal(ConfigMap(metadata=ObjectMeta(name="a", namespace="nowhere")), "Synced", "done")
    log.normal(ABOUT, "Synced", "done")

    (event,) = await _settled(client, lambda events: len(events) == 1)
    assert event.involved_object.name == "settings"
