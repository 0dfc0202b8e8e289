"""What can happen to a watch, while Widgets come, change and go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kubewright.controlplane.embedded.endpoints.request import Target

if TYPE_CHECKING:
    from tests.faults.conftest import InWorld, World


def is_watch(target: Target) -> bool:
    return target.verb == "watch" and target.resource in ("widgets", "configmaps")


async def some_widgets(world: World) -> None:
    for name in ("kept", "changed", "removed", "robbed"):
        await world.make(name)
    await world.converged()


async def something_of_everything(world: World) -> None:
    await world.make("new")
    await world.change("changed", "two")
    await world.remove("removed")
    await world.lose_child("robbed")


@pytest.mark.parametrize("stream", [True, False])
def test_changes_while_every_watch_is_broken_are_not_lost(in_world: InWorld, stream: bool) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate(stream=stream)
        await some_widgets(world)
        world.embedded.faults.cut_open_watches(is_watch)
        await something_of_everything(world)
        await world.converged()
        assert all(informer.statistics.restarts for informer in operator.manager.cache.informers())
        assert all(not informer.statistics.relists for informer in operator.manager.cache.informers())

    in_world(scenario)


@pytest.mark.parametrize("after_events", [0, 1, 3])
def test_watches_that_break_after_every_few_events_lose_and_duplicate_nothing(
    in_world: InWorld, after_events: int
) -> None:
    async def scenario(world: World) -> None:
        world.embedded.faults.cut_watches(is_watch, after_events=after_events, times=20)
        world.operate()
        await some_widgets(world)
        await something_of_everything(world)
        await world.converged()

    in_world(scenario)


@pytest.mark.parametrize("stream", [True, False])
def test_a_watch_that_expires_is_relisted(in_world: InWorld, stream: bool) -> None:
    async def scenario(world: World) -> None:
        client, wire = world.connect()
        operator = world.operate(client, stream=stream)
        await some_widgets(world)
        for number in range(3):
            await wire.expire()
            await world.change("kept", f"after {number}")
        await something_of_everything(world)
        await world.converged()
        assert all(informer.statistics.relists for informer in operator.manager.cache.informers())

    in_world(scenario)


@pytest.mark.parametrize("stream", [True, False])
def test_a_watch_that_has_expired_when_it_is_resumed_is_relisted(in_world: InWorld, stream: bool) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate(stream=stream)
        await some_widgets(world)
        faults = world.embedded.faults
        faults.fail(is_watch, code=503, times=6)
        faults.cut_open_watches(is_watch)
        await something_of_everything(world)
        world.embedded.compact()
        await world.converged()
        assert all(informer.statistics.relists for informer in operator.manager.cache.informers())

    in_world(scenario)


def test_a_silent_watch_is_restarted(in_world: InWorld) -> None:
    """As when a load balancer forgets a connection: no data, no end, no error."""

    async def scenario(world: World) -> None:
        world.operate()
        await some_widgets(world)
        world.embedded.faults.silence_open_watches(is_watch)
        began = asyncio.get_running_loop().time()
        await something_of_everything(world)
        await world.converged()
        assert asyncio.get_running_loop().time() - began < 400

    in_world(scenario)


def test_a_server_that_refuses_every_list_and_watch_for_an_hour_is_waited_for(in_world: InWorld) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate()
        await some_widgets(world)
        faults = world.embedded.faults
        faults.fail(is_watch, code=500, times=None)
        faults.cut_open_watches(is_watch)
        await something_of_everything(world)
        await asyncio.sleep(3600)
        assert {informer.state for informer in operator.manager.cache.informers()} == {"unreachable"}
        faults.clear()
        await world.converged()

    in_world(scenario)
