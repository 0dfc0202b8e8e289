"""What a manager consists of: in which order it begins and ends, and what follows from failures."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine

import pytest
from tests.manager.scripted import (
    Journal,
    Reconciles,
    Recording,
    RecordingSource,
    another_leader,
    candidate,
    driven,
    fed,
    holder,
    running,
    virtually,
)

from kubewright.api.core.v1 import ConfigMap
from kubewright.client import Client
from kubewright.controller import Controller, Request, controller_for
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager, SetupError

# The order of things


def test_the_parts_of_a_program_start_and_end_in_order() -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        journal = Journal()
        manager = Manager(client, election=candidate(client, "a"), health_address="127.0.0.1:0")
        keep = manager.cache.run

        async def recorded_cache() -> None:
            assert manager.ports["health"]
            journal("cache begins")
            try:
                await keep()
            finally:
                assert manager.ports["health"]
                journal(f'cache ends, the lease is held by "{await holder(client)}"')

        manager.cache.run = recorded_cache  # type: ignore[method-assign]  # there is no other way to see it
        # In no order: the order of adding does not decide which starts first.
        manager.add(Recording("leader", journal))
        manager.add(Recording("other", journal, needs_leader=False))
        sourced: Controller[str] = Controller("sourced", Reconciles(journal))
        sourced.watch(RecordingSource(journal))
        manager.add(sourced)
        channel = fed(manager, journal, seconds=5)
        async with running(manager):
            await journal.until("leader begins")
            assert await holder(client) == "a"
            channel.send("reconcile")
            await journal.until("reconcile begins")
        assert manager.ports["health"] == 0
        began = ["cache begins", "other begins", "source begins", "leader begins", "reconcile begins"]
        assert journal.entries[:5] == began
        assert sorted(journal.entries[5:7]) == ["leader ends", "other ends"]
        assert journal.entries[7:] == ["reconcile is done", "source ends", 'cache ends, the lease is held by ""']

    scenario()


@virtually
async def test_the_lease_is_held_until_the_last_reconcile_has_ended(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    manager = Manager(client, election=candidate(client, "a"))
    holders: list[str] = []

    class Slow:
        async def reconcile(self, key: str) -> None:
            journal("begins")
            await asyncio.sleep(20)
            holders.append(await holder(client))

    driven(manager, Slow(), "x", name="slow")
    async with running(manager):
        await journal.until("begins")
    assert holders == ["a"]
    assert await holder(client) == ""


# What fails


@pytest.mark.parametrize("needs_leader", [True, False])
@pytest.mark.parametrize("is_elected", [True, False])
def test_a_failing_runnable_stops_everything_and_run_raises_it(needs_leader: bool, is_elected: bool) -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        journal, error = Journal(), ValueError("the printer is on fire")

        class Failing:
            def __init__(self) -> None:
                self.needs_leader = needs_leader

            async def run(self) -> None:
                await journal.until("other begins", "leader begins", "x begins")
                raise error

        manager = Manager(client, election=candidate(client, "a") if is_elected else None)
        manager.add(Failing())
        manager.add(Recording("other", journal, needs_leader=False))
        manager.add(Recording("leader", journal))
        fed(manager, journal, "x", seconds=10)
        with pytest.raises(ValueError, match="the printer is on fire") as raised:
            await manager.run()
        assert raised.value is error
        assert set(journal.entries[3:]) == {"other ends", "leader ends", "x is done"}
        assert await holder(client) == ""

    scenario()


@virtually
async def test_the_first_failure_is_the_one_that_is_raised(plane: EmbeddedControlPlane, client: Client) -> None:
    async def first() -> None:
        raise ValueError("first")

    async def second() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("second, because of the first")

    manager = Manager(client)
    manager.add(second)
    manager.add(first)
    with pytest.raises(ValueError, match=r"^first$"):
        await manager.run()


def test_the_cause_is_raised_and_logged_and_not_the_group_that_it_came_in(caplog: pytest.LogCaptureFixture) -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        error = ValueError("the printer is on fire")

        async def fail() -> None:
            raise error

        async def several() -> None:
            async with asyncio.TaskGroup() as outer:

                async def inner() -> None:
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(fail())

                outer.create_task(inner())

        manager = Manager(client)
        manager.add(several)
        with pytest.raises(ValueError, match="the printer is on fire") as raised:
            await manager.run()
        assert raised.value is error

    scenario()
    assert "stopping, because something failed: ValueError: the printer is on fire" in caplog.messages


@virtually
async def test_several_causes_are_all_named(plane: EmbeddedControlPlane, client: Client) -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def several() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail(ValueError("fire")))
            tasks.create_task(fail(LookupError("water")))

    manager = Manager(client)
    manager.add(several)
    with pytest.raises(ExceptionGroup, match=r"^ValueError: fire; LookupError: water") as raised:
        await manager.run()
    assert [type(each) for each in raised.value.exceptions] == [ValueError, LookupError]


@pytest.mark.parametrize("needs_leader", [True, False])
def test_a_failed_start_ends_what_was_started_before(needs_leader: bool) -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        journal = Journal()

        class Broken:
            def __init__(self) -> None:
                self.needs_leader = needs_leader

            def run(self) -> Coroutine[object, object, None]:
                raise ValueError("cannot even begin")

        manager = Manager(client)
        manager.add(Recording("before", journal, needs_leader=needs_leader))
        manager.add(Broken())
        with pytest.raises(ValueError, match="cannot even begin"):
            await manager.run()
        # Whether it got its first step depends on the event loop. That nothing is left is checked by `virtually`.
        assert journal.entries in ([], ["before begins", "before ends"])

    scenario()


@virtually
async def test_a_runnable_that_ends_by_itself_ends_nothing_else(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()

    async def short() -> None:
        journal("short ends")

    manager = Manager(client)
    manager.add(short)
    manager.add(Recording("long", journal))
    async with running(manager):
        await asyncio.sleep(600)
        assert journal.entries == ["short ends", "long begins"]


# What it consists of


@virtually
async def test_a_runnable_added_after_the_start_starts_at_once(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    manager = Manager(client)
    async with running(manager):
        await manager.elected.wait()
        manager.add(Recording("leader", journal))
        manager.add(Recording("other", journal, needs_leader=False))
        fed(manager, journal, "x")
        fed(manager, journal, "y", name="unelected", needs_leader=False)
        await journal.until("leader begins", "other begins", "x is done", "y is done")
    assert {"leader ends", "other ends"} <= set(journal.entries)


@virtually
async def test_a_runnable_added_to_a_standby_starts_when_it_leads(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    manager = Manager(client, election=candidate(client, "a"))
    async with another_leader(client):
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(60)
        manager.add(Recording("leader", journal))
        fed(manager, journal, "x")
        await asyncio.sleep(60)
        assert journal.entries == []
        assert not manager.elected.is_set()
    await journal.until("leader begins", "x is done")
    assert manager.elected.is_set()
    manager.stop()
    await task


@virtually
async def test_a_runnable_added_during_the_stop_does_not_start(plane: EmbeddedControlPlane, client: Client) -> None:
    """It would outlive `run`."""
    journal = Journal()
    manager = Manager(client)

    class Adding:
        async def reconcile(self, key: str) -> None:
            journal("reconcile begins")
            await asyncio.sleep(5)
            manager.add(Recording("late", journal))
            manager.add(Recording("late other", journal, needs_leader=False))
            fed(manager, journal, "late key", name="late-fed", needs_leader=False)
            journal("reconcile ends")

    driven(manager, Adding(), "x", name="adding")
    async with running(manager):
        await journal.until("reconcile begins")
    assert journal.entries == ["reconcile begins", "reconcile ends"]


@virtually
async def test_two_controllers_of_one_name_are_refused(plane: EmbeddedControlPlane, client: Client) -> None:
    """Their metrics and logs could not be journal apart."""
    manager = Manager(client)
    controller_for(manager, ConfigMap).complete(Reconciles(Journal()))
    with pytest.raises(ValueError, match='there is a controller "configmap" already; give this one another name='):
        controller_for(manager, ConfigMap).complete(Reconciles(Journal()))
    controller_for(manager, ConfigMap, name="another").complete(Reconciles(Journal()))


@virtually
async def test_an_object_that_cannot_be_run_is_refused(plane: EmbeddedControlPlane, client: Client) -> None:
    manager = Manager(client)
    with pytest.raises(TypeError, match="cannot run 3: expected a controller, an object with run"):
        manager.add(3)  # type: ignore[arg-type]  # that is what is tested
    async with running(manager):
        await manager.elected.wait()


@virtually
async def test_a_controller_without_a_reconciler_is_an_error_at_the_start(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    class Idle:
        async def reconcile(self, request: Request) -> None:
            pass

    manager = Manager(client)
    builder = controller_for(manager, ConfigMap)
    with pytest.raises(SetupError, match=r"^no reconciler for configmap: end .* with \.complete\(reconciler\)"):
        await manager.run()
    builder.complete(Idle())
    async with running(manager):
        await manager.elected.wait()


@virtually
async def test_a_manager_runs_once(plane: EmbeddedControlPlane, client: Client) -> None:
    manager = Manager(client)
    async with running(manager):
        await manager.elected.wait()
        with pytest.raises(RuntimeError, match="was started already, and runs only once"):
            await manager.run()
    with pytest.raises(RuntimeError, match="was started already, and runs only once"):
        await manager.run()


@virtually
async def test_a_manager_leaves_the_garbage_collector_as_it_is(plane: EmbeddedControlPlane, client: Client) -> None:
    """It is the whole process's, and a process may have many managers."""
    before = gc.get_threshold(), gc.get_freeze_count()
    for _ in range(2):
        manager = Manager(client)
        controller_for(manager, ConfigMap).complete(Reconciles(Journal()))
        async with running(manager):
            await manager.elected.wait()
            await manager.synced()
            await asyncio.sleep(1)
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
