"""An operator that is killed at any of its API calls, and started again, ends where one ends that was not.

Killed means that nothing more of it reaches the server: no grace, no release of the lease. The calls are counted, and
the scenario is played once for each of them: killed before the call reaches the server, or before its answer comes
back; started again at once, or when the users have done all they wanted.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest
from tests.faults.widgets import Operator
from tests.faults.wire import Wire

from kubewright import Client
from kubewright.manager.leader_election import LeaderElection

if TYPE_CHECKING:
    from tests.faults.conftest import InWorld, World


class Play:
    """The scenario, with an operator that dies at one of its calls."""

    def __init__(self, world: World, call: int, *, takes_effect: bool, at_once: bool, is_elected: bool) -> None:
        self.world = world
        self.at_once = at_once
        self.is_elected = is_elected
        self.successors = 0
        client, self.wire = world.connect(dies_at=call, takes_effect=takes_effect)
        self.operator: Operator | None = world.operate(client, grace=0, election=self.election(client))

    def election(self, client: Client) -> LeaderElection | None:
        return LeaderElection(client, "widgets", namespace=self.world.namespace) if self.is_elected else None

    def succeed(self) -> None:
        client, _ = self.world.connect()
        self.operator = self.world.operate(client, election=self.election(client))
        self.successors += 1

    async def run(self) -> list[str]:
        """What there is when everything has been done, in words."""
        world = self.world
        await world.make("stays")
        await world.make("goes")
        await self.settle()
        await world.change("stays", "two")
        await self.settle()
        await world.lose_child("stays")
        await self.settle()
        await world.remove("goes")
        await self.settle()
        if self.operator is None:
            self.succeed()
        await world.converged()
        end = await world.described()
        await world.remove("stays")
        await self.settle()
        if self.operator is None:
            self.succeed()
        await world.converged()
        assert self.operator is not None
        await world.dismiss(self.operator)
        return end

    async def settle(self) -> None:
        """Wait until the desired state is reached, unless no operator runs."""
        if self.operator is None:
            return
        converging = asyncio.create_task(self.world.converged())
        dying = asyncio.create_task(self.wire.died.wait())
        is_first = not self.successors
        await asyncio.wait((converging, dying) if is_first else (converging,), return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if is_first and self.wire.died.is_set():
            converging.cancel()
            await asyncio.wait((converging,))
            await self.bury(self.operator)
            if self.at_once:
                self.succeed()
                await self.world.converged()
        else:
            await converging

    async def bury(self, operator: Operator) -> None:
        await operator.kill()
        self.world.operators.remove(operator)
        self.world.unanswered += unheard_creates(self.wire)
        self.operator = None


def unheard_creates(wire: Wire) -> int:
    return sum(call.startswith("POST") and call.endswith("/configmaps") for call in wire.unheard)


@pytest.mark.parametrize("is_elected", [False, True], ids=["alone", "elected"])
@pytest.mark.parametrize("at_once", [True, False], ids=["started again at once", "started again in the end"])
@pytest.mark.parametrize("takes_effect", [False, True], ids=["before the call", "after the call"])
def test_killed_at_any_call_it_reaches_the_same_state(
    in_world: InWorld, takes_effect: bool, at_once: bool, is_elected: bool
) -> None:
    async def scenario(world: World) -> None:
        undisturbed = Play(world, 0, takes_effect=False, at_once=True, is_elected=is_elected)
        expected = await undisturbed.run()
        assert len(expected) == 2
        for call in itertools.count(1):
            play = Play(world, call, takes_effect=takes_effect, at_once=at_once, is_elected=is_elected)
            try:
                assert await play.run() == expected
                assert world.creates[201] == world.births
            except Exception as error:
                raise AssertionError(f"killed at call {call} ({play.wire.calls} were made): {error}") from error
            if not play.wire.died.is_set():
                break
        # Each Widget has a finalizer, a child and a status to be written, and all that to be undone.
        assert call > 15

    in_world(scenario)
