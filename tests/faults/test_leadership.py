"""Two replicas of which one works: whatever happens to lease, clocks and event loop, never both, and soon one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.faults.widgets import Operator
from tests.faults.wire import Wire

from kubewright import Request
from kubewright.api.coordination.v1 import Lease
from kubewright.api.time import MicroTime, micro_now
from kubewright.controlplane.controllers.clock import SystemClock
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.manager.leader_election import LeaderElection, LeadershipLost
from kubewright.testing.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from tests.faults.conftest import InWorld, World

LEASE = "widgets"
NAMES = [f"widget-{number}" for number in range(4)]


class WallClock(SystemClock):
    """A wall clock that the test sets. Timers do not use it, as on any machine."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def micro_now(self) -> MicroTime:
        return micro_now() + self.ahead


def replica(world: World, identity: str, now: Callable[[], MicroTime] = micro_now) -> tuple[Operator, Wire]:
    client, wire = world.connect()
    election = LeaderElection(client, LEASE, namespace=world.namespace, identity=identity, now=now)
    return world.operate(client, election=election, now=now), wire


async def leader_and_standby(world: World) -> tuple[Operator, Wire, Operator]:
    leader, wire = replica(world, "leader")
    await leader.manager.elected.wait()
    standby, _ = replica(world, "standby")
    for name in NAMES:
        await world.make(name)
    await world.converged()
    return leader, wire, standby


async def lost(world: World, operator: Operator) -> None:
    """Wait until an operator has ended because it lost its lease."""
    world.operators.remove(operator)
    with pytest.raises(LeadershipLost) as failure:
        await operator.task
    assert failure.value.is_work_over


async def new_wishes(world: World) -> None:
    for name in NAMES:
        await world.change(name, "two")
    await world.make("new")
    await world.remove(NAMES[0])


def is_lease(target: Target) -> bool:
    return target.resource == "leases"


def test_an_isolated_leader_ends_its_work_before_another_starts(in_world: InWorld) -> None:
    async def scenario(world: World) -> None:
        time = asyncio.get_running_loop().time
        leader, wire, standby = await leader_and_standby(world)
        wire.died.set()
        began = time()
        # Passes of the leader begin now and hang in the middle, as nothing is answered any more.
        await new_wishes(world)
        await lost(world, leader)
        assert time() - began < 15
        assert not standby.is_at_work()
        await world.converged()
        assert standby.is_at_work()
        assert time() - began < 20
        # What it had written when it was cut off, and did not hear of.
        world.unanswered += sum(call.startswith("POST") and call.endswith("/configmaps") for call in wire.unheard)

    in_world(scenario)


def test_a_lease_that_another_takes_is_lost_at_once(in_world: InWorld) -> None:
    async def scenario(world: World) -> None:
        leader, _, standby = await leader_and_standby(world)
        lease = await world.admin.get(Lease, LEASE, namespace=world.namespace)
        lease.spec.holder_identity = "thief"
        await world.admin.update(lease)
        await lost(world, leader)
        await new_wishes(world)
        await world.converged()
        assert standby.is_at_work()

    in_world(scenario)


def test_a_lease_that_is_deleted_is_held_again_by_one(in_world: InWorld) -> None:
    """The first candidate to find it missing takes it; until the other has noticed, the two cannot be distinguished."""

    async def scenario(world: World) -> None:
        leader, _, standby = await leader_and_standby(world)
        await world.admin.delete(Lease, LEASE, namespace=world.namespace)
        await asyncio.sleep(15)
        if leader.task.done():
            await lost(world, leader)
        await new_wishes(world)
        await world.converged()
        lease = await world.admin.get(Lease, LEASE, namespace=world.namespace)
        assert lease.spec.holder_identity == ("standby" if standby.is_at_work() else "leader")

    in_world(scenario)


@pytest.mark.parametrize(("seconds", "is_kept"), [(7.0, True), (60.0, False)])
def test_a_server_that_fails_all_leases_for_a_while(in_world: InWorld, seconds: float, is_kept: bool) -> None:
    async def scenario(world: World) -> None:
        leader, _, standby = await leader_and_standby(world)
        world.embedded.faults.fail(is_lease, code=500, times=None)
        await new_wishes(world)
        await asyncio.sleep(seconds)
        world.embedded.faults.clear()
        if not is_kept:
            await lost(world, leader)
        await world.converged()
        assert leader.is_at_work() is is_kept
        assert standby.is_at_work() is not is_kept

    in_world(scenario)


@pytest.mark.parametrize("hours", [1, -1, 24 * 365, -24 * 365])
@pytest.mark.parametrize("whose", ["leader", "standby", "server", "all"])
def test_a_wall_clock_that_jumps_changes_no_leader(in_world: InWorld, hours: int, whose: str) -> None:
    clocks = {each: WallClock() for each in ("leader", "standby", "server")}

    async def scenario(world: World) -> None:
        leader, _ = replica(world, "leader", clocks["leader"].micro_now)
        await leader.manager.elected.wait()
        standby, _ = replica(world, "standby", clocks["standby"].micro_now)
        for name in NAMES:
            await world.make(name)
        await world.converged()
        for each, clock in clocks.items():
            if whose in (each, "all"):
                clock.ahead = timedelta(hours=hours)
        await new_wishes(world)
        for _ in range(30):
            await asyncio.sleep(2)
            assert leader.is_at_work()
            assert not standby.is_at_work()
        await world.converged()
        began = asyncio.get_running_loop().time()
        await world.dismiss(leader)
        await standby.manager.elected.wait()
        assert asyncio.get_running_loop().time() - began < 3
        await world.make("later")
        await world.converged()

    in_world(scenario, clocks["server"])


@pytest.mark.parametrize(("seconds", "is_kept"), [(5.0, True), (12.0, False)])
def test_a_reconcile_that_blocks_the_event_loop(in_world: InWorld, seconds: float, is_kept: bool) -> None:
    """Blocked for longer than its renew deadline, but not so long that the fence would have to end the process."""

    async def scenario(world: World) -> None:
        leader, _, standby = await leader_and_standby(world)
        blocked: list[Request] = []

        async def blocks_once(request: Request) -> None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualTimeLoop)
            if not blocked:
                blocked.append(request)
                loop._jumping.now += seconds

        leader.reconciler.before = blocks_once
        await new_wishes(world)
        if not is_kept:
            await lost(world, leader)
        await world.converged()
        assert leader.is_at_work() is is_kept
        assert standby.is_at_work() is not is_kept

    in_world(scenario)
