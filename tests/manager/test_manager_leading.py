"""Managers that lead, that stand by, and that lose the lease."""

from __future__ import annotations

import asyncio

import pytest
from tests.manager.candidates import BlockableLoop
from tests.manager.scripted import (
    LEASE,
    Journal,
    Reconciles,
    Recording,
    another_leader,
    candidate,
    config_map,
    driven,
    eventually,
    fed,
    is_ready,
    now,
    running,
    virtually,
)

from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap
from kubewright.client import Client
from kubewright.controller import Request, controller_for
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager
from kubewright.manager.leader_election import LeaderElection, LeadershipLost


@virtually
async def test_what_needs_no_leader_runs_without_the_lease(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    manager = Manager(client, election=candidate(client, "a"))
    manager.add(Recording("other", journal, needs_leader=False))
    manager.add(Recording("leader", journal))
    fed(manager, journal, "unelected", name="unelected", needs_leader=False)
    fed(manager, journal, "elected", name="elected")
    async with another_leader(client), running(manager):
        await journal.until("other begins", "unelected is done")
        await asyncio.sleep(600)
        assert sorted(journal.entries) == ["other begins", "unelected begins", "unelected is done"]


@virtually
async def test_a_standby_is_warm_and_its_first_reconciles_come_at_once(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    for number in range(5):
        await client.create(config_map(f"object-{number}"))
    manager = Manager(client, election=candidate(client, "a"))
    elected_at: list[float] = []

    async def note() -> None:
        elected_at.append(now())

    manager.add(note)
    built = controller_for(manager, ConfigMap, namespace="default").complete(Reconciles(journal))

    def reads() -> int:
        return sum(event.resource == "configmaps" for event in plane.audit.events)

    async with another_leader(client):
        task = asyncio.create_task(manager.run())
        await eventually(lambda: sum(informer.statistics.objects for informer in manager.cache.informers()) == 5)
        assert await is_ready(manager)
        assert len(built.queue) == 0, "it is filled when there are workers"
        assert journal.entries == []
        before = reads()
    await journal.until(*(f"object-{number} is done" for number in range(5)))
    assert elected_at == [now()]
    assert reads() == before + 1, "of metadata: whether the cache shows the last writes of the leader before"
    manager.stop()
    await task


@virtually
async def test_a_new_leader_sees_the_last_writes_of_the_one_before(plane: EmbeddedControlPlane, client: Client) -> None:
    """The watch of its cache may be behind by any time, and what was deleted is made for an object that is gone."""
    journal = Journal()
    await client.create(config_map("kept"))
    gone, changed = await client.create(config_map("gone")), await client.create(config_map("changed"))
    manager = Manager(client, election=candidate(client, "a"))

    async def reconcile(request: Request) -> None:
        found = await manager.client.get(ConfigMap, request)
        journal(f"{request.name}: {found.data}")

    controller_for(manager, ConfigMap, namespace="default").complete(reconcile)
    async with another_leader(client):
        task = asyncio.create_task(manager.run())
        await eventually(lambda: sum(informer.statistics.objects for informer in manager.cache.informers()) == 3)
        plane.faults.silence_open_watches(lambda target: target.resource == "configmaps")
        await client.delete(gone)
        changed.data = {"by": "the leader before"}
        await client.patch(changed)
        await client.create(config_map("new"))
    await journal.until("kept: {}", "changed: {'by': 'the leader before'}", "new: {}")
    assert len(journal.entries) == 3
    manager.stop()
    await task


@virtually
async def test_a_program_that_finds_the_lease_free_starts_without_a_second_look(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    await client.create(config_map("kept"))
    async with another_leader(client):
        pass

    for expected in (1, 2):
        manager = Manager(client, election=candidate(client, "a"))
        controller_for(manager, ConfigMap, namespace="default").complete(Reconciles(journal))
        async with running(manager):
            await eventually(lambda: journal.entries.count("kept is done") == expected)  # noqa: B023
    verbs = [event.verb for event in plane.audit.events if event.resource == "configmaps"]
    assert verbs == ["create", "watch", "watch"]


@virtually
async def test_the_queue_of_a_standby_does_not_grow_with_objects_that_come_and_go(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    """Objects that a leader has seen come and go: a new leader would not know of them either."""
    journal = Journal()
    manager = Manager(client, election=candidate(client, "a"))
    built = (
        controller_for(manager, ConfigMap, namespace="default")
        .owns(ConfigMap, namespace="default")
        .complete(Reconciles(journal))
    )

    async with another_leader(client):
        task = asyncio.create_task(manager.run())
        owner = await client.create(config_map("stays"))
        await eventually(lambda: built.not_ready_reason is None)
        for number in range(50):
            passing, child = config_map(f"passing-{number}"), config_map(f"child-{number}")
            passing = await client.create(passing)
            child.metadata.owner_references = [passing.as_owner(), owner.as_owner(controller=False)]
            await client.create(child)
            await client.delete(passing)
            await client.delete(child)
        await asyncio.sleep(10)
        assert len(built.queue) <= 1
    await journal.until("stays is done")
    assert {words for words in journal.entries if words.startswith(("passing", "child"))} == set()
    manager.stop()
    await task


@virtually
async def test_a_cold_standby_watches_nothing_until_it_leads_and_is_still_ready(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    """A roll-out waits for the new pod to be ready before it ends the old one, which leads."""
    journal = Journal()
    await client.create(config_map("object"))
    manager = Manager(client, election=candidate(client, "a"), warm_standby=False)
    built = controller_for(manager, ConfigMap, namespace="default").complete(Reconciles(journal))
    async with another_leader(client):
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(60)
        assert built.queue.depth().get(-100, 0) == 0
        assert manager.cache.informers() == []
        assert await is_ready(manager)
    await journal.until("object is done")
    assert await is_ready(manager)
    manager.stop()
    await task


@virtually
async def test_a_controller_that_is_added_to_a_cold_standby_watches_nothing_until_it_leads(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    await client.create(config_map("object"))
    manager = Manager(client, election=candidate(client, "a"), warm_standby=False)
    async with another_leader(client):
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(60)
        controller_for(manager, ConfigMap, namespace="default").complete(Reconciles(journal))
        await asyncio.sleep(60)
        assert manager.cache.informers() == []
    await journal.until("object is done")
    manager.stop()
    await task


@virtually
async def test_one_manager_hands_over_to_the_other_within_three_seconds(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    await client.create(config_map("object"))
    managers = [Manager(client, election=candidate(client, identity)) for identity in ("a", "b")]

    class Noted:
        def __init__(self, name: str) -> None:
            self.name = name

        async def reconcile(self, request: Request) -> None:
            journal(f"{self.name} begins")
            await asyncio.sleep(1)
            journal(f"{self.name} is done")

    for name, manager in zip(("a", "b"), managers, strict=True):
        controller_for(manager, ConfigMap, namespace="default").complete(Noted(name))
    async with running(managers[0]):
        await journal.until("a begins")
        task = asyncio.create_task(managers[1].run())
        await journal.until("a is done")
        # Long enough for the standby to be between any two of its tries.
        await asyncio.sleep(60)
        stopped_at = now()
    await journal.until("b begins")
    assert now() - stopped_at < 3
    assert journal.entries == ["a begins", "a is done", "b begins"]
    managers[1].stop()
    await task


async def test_one_manager_hands_over_to_the_other_on_every_control_plane(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    """With a lease of a minute, so that waiting for its end is not what this succeeds by."""
    journal = Journal()
    await admin.create(config_map("object", namespace))

    def new(identity: str) -> Manager:
        election = LeaderElection(
            admin,
            LEASE,
            namespace=namespace,
            identity=identity,
            lease_duration=60,
            renew_deadline=40,
            retry_period=1,
        )
        manager = Manager(admin, namespaces=[namespace], election=election)

        class Noted:
            async def reconcile(self, request: Request) -> None:
                if request.name == "object":
                    journal(f"{identity} reconciles")

        controller_for(manager, ConfigMap).complete(Noted())
        return manager

    first, second = new("a"), new("b")
    async with asyncio.timeout(30):
        async with running(first):
            await journal.until("a reconciles")
            task = asyncio.create_task(second.run())
            await eventually(lambda: is_ready(second))
        await journal.until("b reconciles")
        second.stop()
        await task
    lease = await admin.get(Lease, LEASE, namespace=namespace)
    assert (lease.spec.holder_identity or "", lease.spec.lease_transitions) == ("", 1)


def is_of_leases(target: Target) -> bool:
    return target.resource == "leases"


class Timed:
    """A reconciler that does not end by itself, and that records how long before the deadline it does."""

    def __init__(self, journal: Journal, election: LeaderElection) -> None:
        self.journal = journal
        self.election = election
        self.left: list[float] = []

    async def reconcile(self, key: str) -> None:
        self.journal("reconcile begins")
        try:
            await asyncio.sleep(1000)
        finally:
            assert self.election.hard_deadline is not None
            self.left.append(self.election.hard_deadline - now())


@virtually
async def test_when_the_lease_is_lost_the_leaders_work_ends_in_time_and_run_raises_it(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    election = candidate(client, "a")
    manager = Manager(client, election=election, grace=100)
    timed = Timed(journal, election)
    driven(manager, timed, "x", name="timed")
    manager.add(Recording("leader", journal))
    manager.add(Recording("other", journal, needs_leader=False))
    fed(manager, journal, "unelected", name="unelected", seconds=30, needs_leader=False)
    task = asyncio.create_task(manager.run())
    await journal.until("reconcile begins", "leader begins", "unelected begins")
    plane.faults.fail(is_of_leases, code=500, times=None)
    with pytest.raises(LeadershipLost, match="could not be renewed for 12 s") as lost:
        await task
    assert lost.value.is_work_over
    assert len(timed.left) == 1
    assert timed.left[0] > 0
    # What needs no lease has its grace time as ever.
    assert set(journal.entries[3:]) >= {"leader ends", "other ends", "unelected is done"}
    assert not manager.elected.is_set()


@virtually
async def test_when_the_lease_is_lost_while_reconciles_finish_they_end_in_time_too(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    election = candidate(client, "a")
    manager = Manager(client, election=election, grace=100)
    timed = Timed(journal, election)
    driven(manager, timed, "x", name="timed")
    async with running(manager):
        await journal.until("reconcile begins")
        plane.faults.fail(is_of_leases, code=500, times=None)
    assert len(timed.left) == 1
    assert timed.left[0] > 0


@virtually
async def test_work_that_does_not_end_in_time_is_reported_as_such(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    is_released = asyncio.Event()
    manager = Manager(client, election=candidate(client, "a"))

    async def stubborn() -> None:
        journal("begins")
        while not is_released.is_set():
            try:
                await is_released.wait()
            except asyncio.CancelledError:
                journal("is journal")

    manager.add(stubborn)
    task = asyncio.create_task(manager.run())
    await journal.until("begins")
    plane.faults.fail(is_of_leases, code=500, times=None)
    with pytest.raises(LeadershipLost, match="this process has to exit now") as lost:
        await task
    assert not lost.value.is_work_over
    is_released.set()
    await asyncio.sleep(1)


@virtually
async def test_work_that_goes_on_without_the_lease_is_reported_whatever_failed_before(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    """The process has to exit on it. Something else may fail first, for the same reason even."""
    journal = Journal()
    is_released = asyncio.Event()
    manager = Manager(client, election=candidate(client, "a"))

    async def stubborn() -> None:
        journal("begins")
        while not is_released.is_set():
            try:
                await is_released.wait()
            except asyncio.CancelledError:
                journal("is journal")

    async def tidying() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise LookupError("no farewell")

    manager.add(stubborn)
    manager.add(tidying)
    task = asyncio.create_task(manager.run())
    await journal.until("begins")
    plane.faults.fail(is_of_leases, code=500, times=None)
    with pytest.raises(LeadershipLost, match="this process has to exit now") as lost:
        await task
    assert not lost.value.is_work_over
    is_released.set()
    await asyncio.sleep(1)


@virtually
async def test_a_refused_write_is_not_reported_as_the_cause_of_a_lost_lease(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    manager = Manager(client, election=candidate(client, "a"))

    async def tidying() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await client.create(config_map("farewell"))

    manager.add(tidying)
    task = asyncio.create_task(manager.run())
    await manager.elected.wait()
    plane.faults.fail(is_of_leases, code=500, times=None)
    with pytest.raises(LeadershipLost, match="could not be renewed for 12 s"):
        await task


@virtually
async def test_there_is_no_deadline_once_the_leaders_work_has_ended(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    """A server that is slow in taking the lease back is no reason to strike a process that does nothing any more."""
    election = candidate(client, "a")
    manager = Manager(client, election=election)
    slow = asyncio.Event()
    task = asyncio.create_task(manager.run())
    await manager.elected.wait()
    deadlines = [election.hard_deadline]
    plane.faults.delay(lambda target: is_of_leases(target) and target.verb == "update", slow, times=None)
    manager.stop()
    await asyncio.sleep(1)
    assert not task.done()
    deadlines.append(election.hard_deadline)
    slow.set()
    await task
    assert [deadline is not None for deadline in deadlines] == [True, False]


class Writing:
    """A reconciler that writes a ConfigMap of its key's name, and reports whether it could."""

    def __init__(self, client: Client, journal: Journal) -> None:
        self.client = client
        self.journal = journal

    async def reconcile(self, key: str) -> None:
        try:
            await self.client.create(config_map(key))
        except LeadershipLost as error:
            self.journal(f"{key}: {error}")
        else:
            self.journal(f"{key} is written")


def test_leader_only_work_sends_no_write_once_the_lease_is_over_and_everything_else_does() -> None:
    """A process that was frozen does not know it yet when it goes on. What is added later is no exception."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BlockableLoop)
        async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
            journal = Journal()
            manager = Manager(client, election=candidate(client, "a"))
            led = driven(manager, Writing(manager.client, journal), name="led")
            free = driven(manager, Writing(manager.live, journal), name="free", needs_leader=False)
            task = asyncio.create_task(manager.run())
            await manager.elected.wait()
            late = driven(manager, Writing(manager.live.in_namespace("default"), journal), name="late")
            for name, channel in ("led-1", led), ("late-1", late), ("free-1", free):
                channel.send(name)
            await journal.until("led-1 is written", "late-1 is written", "free-1 is written")
            loop.block(20)
            for name, channel in ("led-2", led), ("late-2", late), ("free-2", free):
                channel.send(name)
            with pytest.raises(LeadershipLost, match="could not be renewed"):
                await task
            words = "not sent, because the lease default/operator is no longer ours: another may lead"
            assert set(journal.entries[3:]) == {f"led-2: {words}", f"late-2: {words}", "free-2 is written"}
            names = {each.metadata.name for each in await client.list(ConfigMap, namespace="default")}
            assert names == {"led-1", "late-1", "free-1", "free-2"}

    with asyncio.Runner(loop_factory=BlockableLoop) as runner:
        runner.run(main())


def test_when_the_lease_is_lost_writes_under_way_are_dropped_before_anything_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Journal by the call: what it does to a connection is tested where there are connections."""

    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        journal = Journal()
        monkeypatch.setattr(Client, "drop_writes", lambda client: journal("writes are dropped"))
        async with running(manager := Manager(client, election=candidate(client, "a"))):
            await manager.elected.wait()
        assert journal.entries == []
        manager = Manager(client, election=candidate(client, "b"))
        manager.add(Recording("leader", journal))
        task = asyncio.create_task(manager.run())
        await journal.until("leader begins")
        plane.faults.fail(is_of_leases, code=500, times=None)
        with pytest.raises(LeadershipLost):
            await task
        assert journal.entries == ["leader begins", "writes are dropped", "leader ends"]

    scenario()
