"""A Devbox for which there is nothing to do costs nothing, whatever has become of it. In virtual time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from operators.devbox import Devbox, Options
from operators.devbox.names import PRIVATE_KEY
from operators.devbox.tests.world import COMMITS, LONG, World, running_world
from operators.devbox.types import Phase, State

from kubewright import Field
from kubewright.api.core.v1 import Pod, Secret
from kubewright.client import MergePatch
from kubewright.testing import count_requests, run_virtual, settled

RESUMED = re.compile("[?&](watch=true|limit=1)")
"""How watches are resumed, every few minutes."""

TERMINATING = Field("metadata.deletionTimestamp").satisfies(lambda time: time is not None, "is set")


async def is_set(state: State, world: World) -> None:
    await world.set_state(state)
    await world.reaches(state)


async def commit_fails_for_good(world: World) -> None:
    world.plane.pods.where(labels=COMMITS).behave(run=1, exit_code=1)
    await world.set_state("Stopped")
    given_up = Field("status.conditions").satisfies(lambda found: "it was the last one" in str(found), "say so")
    await world.admin.wait_for(Devbox, "it", given_up, timeout=LONG)


async def node_is_lost(world: World) -> None:
    world.plane.nodes.fail((await world.read()).status.node)
    await world.admin.wait_for(Pod, "it", TERMINATING, timeout=LONG)


async def node_is_lost_and_it_is_to_stop(world: World) -> None:
    await node_is_lost(world)
    await world.set_state("Stopped")


async def private_key_is_unreadable(world: World) -> None:
    await world.admin.patch(Secret, "it", MergePatch({"data": {PRIVATE_KEY: "bm8="}}))


async def pod_needs_a_restart(world: World) -> None:
    await world.change(lambda found: setattr(found.spec.config, "args", ["more"]))


CASES: dict[str, tuple[Callable[[World], Awaitable[None]], Phase]] = {
    "Running": (partial(is_set, "Running"), "Running"),
    "Paused": (partial(is_set, "Paused"), "Paused"),
    "Stopped": (partial(is_set, "Stopped"), "Stopped"),
    "Shutdown": (partial(is_set, "Shutdown"), "Shutdown"),
    "failed commit": (commit_fails_for_good, "Stopping"),
    "lost node": (node_is_lost, "Pending"),
    "lost node, to be stopped": (node_is_lost_and_it_is_to_stop, "Stopping"),
    "unreadable key": (private_key_is_unreadable, "Running"),
    "outdated pod": (pod_needs_a_restart, "Running"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_devbox_at_rest_costs_no_request_and_no_reconcile(case: str) -> None:
    prepare, phase = CASES[case]

    async def main() -> None:
        async with running_world(nodes=2, options=Options(commit_tries=1)) as world:
            await world.run()
            await prepare(world)
            await settled(world.manager, quiet=20, timeout=LONG)
            assert (await world.read()).status.phase == phase
            before = [dict(each.statistics.results) for each in world.manager.controllers]
            with count_requests(world.own) as requests:
                await asyncio.sleep(400)  # longer than any timer of the operator
            assert [each.target for each in requests.attempts if not RESUMED.search(each.target)] == []
            assert [dict(each.statistics.results) for each in world.manager.controllers] == before

    run_virtual(main)
