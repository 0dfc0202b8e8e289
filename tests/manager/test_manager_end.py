"""How a manager ends: when it is stopped, when it is cancelled, and how long it waits for what is under way."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.manager.scripted import (
    Journal,
    Reconciles,
    Recording,
    RecordingSource,
    candidate,
    config_map,
    driven,
    fed,
    holder,
    now,
    running,
    virtually,
)

from kubewright.api.core.v1 import ConfigMap, Pod
from kubewright.api.events.v1 import Event
from kubewright.client import Client
from kubewright.controller import Controller, controller_for
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager, Permission


@virtually
async def test_reconciles_under_way_finish_and_no_further_ones_start(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    manager = Manager(client, grace=30)
    fed(manager, journal, "a", "b", "c", seconds=20, workers=2)
    async with running(manager):
        await journal.until("a begins", "b begins")
        stopped_at = now()
    assert journal.entries[:2] == ["a begins", "b begins"]
    assert sorted(journal.entries[2:]) == ["a is done", "b is done"]
    assert now() == stopped_at + 20


def test_reconciles_that_outlast_the_grace_time_are_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        journal = Journal()
        manager = Manager(client, grace=30)
        fed(manager, journal, "slow", seconds=3600, name="slow")
        fed(manager, journal, "quick", seconds=29, name="quick")
        fed(manager, journal, "unelected", seconds=3600, name="unelected", needs_leader=False)
        async with running(manager):
            await journal.until("slow begins", "quick begins", "unelected begins")
            stopped_at = now()
        assert sorted(journal.entries[3:]) == ["quick is done", "slow is cancelled", "unelected is cancelled"]
        assert now() == stopped_at + 30

    with caplog.at_level(logging.WARNING, "kubewright.manager"):
        scenario()
    assert caplog.messages == ["reconciles are still under way after 30 s; cancelling them"] * 2


@virtually
async def test_by_default_reconciles_have_less_time_than_a_kubelet_gives(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    manager = Manager(client)
    fed(manager, journal, "slow", seconds=3600)
    async with running(manager):
        await journal.until("slow begins")
        stopped_at = now()
    assert now() == stopped_at + 25


@virtually
async def test_without_a_grace_time_reconciles_take_as_long_as_they_need(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    manager = Manager(client, grace=None)
    fed(manager, journal, "long", seconds=1800)
    async with running(manager):
        await journal.until("long begins")
    assert journal.entries == ["long begins", "long is done"]


@virtually
async def test_stopped_in_the_middle_of_a_burst_it_uses_up_no_grace_time(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    manager = Manager(client, grace=30)
    channel = fed(manager, journal, "first", workers=4)
    async with running(manager):
        await journal.until("first is done")
        stopped_at = now()
        manager.stop()
        # Keys arrive in every step of the loop until the queue takes none, so that it is closed while some are ready.
        for number in range(1000):
            channel.send(f"{number}")
            await asyncio.sleep(0)
    assert now() == stopped_at


@virtually
async def test_a_runnable_that_is_called_as_a_controller_ends_at_once(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()

    async def fed_() -> None:
        await Recording("runnable", journal).run()

    fed_.__name__ = "fed"
    manager = Manager(client, grace=30)
    fed(manager, journal)
    manager.add(fed_)
    async with running(manager):
        await journal.until("runnable begins")
        stopped_at = now()
    assert now() == stopped_at


@pytest.mark.parametrize("times", [1, 2])
def test_cancelling_run_ends_it_in_the_same_way(times: int) -> None:
    """Twice, because a caller that waits for it with a time limit may be cancelled too."""

    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        journal = Journal()
        manager = Manager(client, election=candidate(client, "a"))
        manager.add(Recording("other", journal, needs_leader=False))
        sourced: Controller[str] = Controller("sourced", Reconciles(journal))
        sourced.watch(RecordingSource(journal))
        manager.add(sourced)
        controller_for(manager, ConfigMap).complete(Reconciles(journal))
        fed(manager, journal, "x", seconds=20)
        task = asyncio.create_task(manager.run())
        await journal.until("x begins")
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(1)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert {"x is done", "other ends", "source ends"} <= set(journal.entries)
        assert await holder(client) == ""

    scenario()


@virtually
async def test_cancelled_while_it_ends_it_ends_first_and_is_cancelled_then(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    manager = Manager(client)
    fed(manager, journal, "x", seconds=20)
    task = asyncio.create_task(manager.run())
    await journal.until("x begins")
    manager.stop()
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.entries == ["x begins", "x is done"]


@virtually
async def test_stopped_before_its_start_it_starts_nothing(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    manager = Manager(client)
    manager.add(Recording("leader", journal))
    manager.add(Recording("other", journal, needs_leader=False))
    manager.stop()
    await manager.run()
    assert journal.entries == []


@virtually
async def test_it_can_be_stopped_while_the_server_does_not_answer(plane: EmbeddedControlPlane, client: Client) -> None:
    plane.faults.delay(lambda target: target.resource == "selfsubjectaccessreviews", 3000, times=None)
    manager = Manager(client, permissions=[Permission(Pod, "list")])
    async with running(manager):
        await asyncio.sleep(5)
        stopped_at = now()
    assert now() == stopped_at


@virtually
async def test_the_last_events_are_written_before_the_end(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    manager = Manager(client)
    regarding = await client.create(config_map("regarded"))
    recorder = manager.recorder("operator")

    class Last:
        async def reconcile(self, key: str) -> None:
            journal("begins")
            await asyncio.sleep(5)
            recorder.normal(regarding, "Ending", "the last thing it did")

    driven(manager, Last(), "x", name="last")
    # The last one is under way when everything else has ended.
    plane.faults.delay(lambda target: target.resource == "events", 1.0)
    async with running(manager):
        await journal.until("begins")
    assert [event.note async for event in client.list(Event, namespace="default")] == ["the last thing it did"]
