"""A server that refuses, fails, hesitates or hangs up, while Widgets come, change and go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import pytest

from kubewright.controlplane.embedded.endpoints.request import Target

if TYPE_CHECKING:
    from tests.faults.conftest import InWorld, World

Chooser: TypeAlias = Callable[[Target], bool]
Confine: TypeAlias = Callable[[Chooser], Chooser]

NAMES = [f"widget-{number}" for number in range(8)]


def is_write(target: Target) -> bool:
    return target.verb in ("create", "update", "patch", "delete") and target.resource in ("widgets", "configmaps")


def is_read(target: Target) -> bool:
    return target.verb in ("get", "list", "watch") and target.resource in ("widgets", "configmaps")


def is_any(target: Target) -> bool:
    return target.resource in ("widgets", "configmaps")


async def life(world: World) -> None:
    """Widgets are made, changed, robbed of their children and removed, and all of it is waited for."""
    for name in NAMES:
        await world.make(name)
    await world.converged()
    for name in NAMES:
        await world.change(name, "two")
    for name in NAMES[:2]:
        await world.lose_child(name)
    await world.converged()
    for name in NAMES[:4]:
        await world.remove(name)
    await world.converged()


@pytest.mark.parametrize("struck", [is_write, is_any], ids=["writes", "everything"])
@pytest.mark.parametrize("retry_after", [0, 1, 60])
def test_many_429s_are_retried(in_world: InWorld, operators_only: Confine, struck: Chooser, retry_after: int) -> None:
    """The client waits as the server asks, as long as that is short; beyond, the back-off of the queue does."""

    async def scenario(world: World) -> None:
        operator = world.operate()
        world.embedded.faults.fail(operators_only(struck), code=429, retry_after=retry_after, times=100)
        world.embedded.faults.cut_open_watches(is_any)
        await life(world)
        answers = operator.manager.live.answers
        assert sum(number for (code, _, _), number in answers.items() if code == "429") == 100

    in_world(scenario)


@pytest.mark.parametrize("struck", [is_write, is_any], ids=["writes", "everything"])
@pytest.mark.parametrize("code", [500, 503, 504])
def test_a_server_that_fails_most_of_the_time_is_retried_until_it_succeeds(
    in_world: InWorld, operators_only: Confine, struck: Chooser, code: int
) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate()
        attempts = 0

        def two_in_three(target: Target) -> bool:
            nonlocal attempts
            attempts += 1
            return struck(target) and attempts % 3 != 0

        world.embedded.faults.fail(operators_only(two_in_three), code=code, times=None)
        world.embedded.faults.cut_open_watches(is_any)
        await life(world)
        assert operator.controller.statistics.errors > 0

    in_world(scenario)


@pytest.mark.parametrize("seconds", [5.0, 29.0])
def test_slow_responses_make_it_slow_and_nothing_else(
    in_world: InWorld, operators_only: Confine, seconds: float
) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate()
        world.embedded.faults.delay(operators_only(is_any), seconds, times=None)
        await life(world)
        # Those whose child was lost while its update was on the way.
        assert operator.controller.statistics.errors <= 2

    in_world(scenario)


def test_a_request_without_a_response_is_retried(in_world: InWorld, operators_only: Confine) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate()
        world.embedded.faults.delay(operators_only(is_read), asyncio.Event(), times=10)
        world.embedded.faults.delay(operators_only(is_write), asyncio.Event(), times=30)
        await life(world)
        assert operator.controller.statistics.errors >= 30

    in_world(scenario)


def test_requests_on_connections_closed_without_a_response_are_retried(
    in_world: InWorld, operators_only: Confine
) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate()
        world.embedded.faults.drop(operators_only(is_read), times=50)
        world.embedded.faults.drop(operators_only(is_write), times=50)
        await life(world)
        assert operator.controller.statistics.errors >= 50

    in_world(scenario)


def test_a_write_that_took_effect_though_its_response_was_lost_is_noticed(in_world: InWorld) -> None:
    async def scenario(world: World) -> None:
        client, wire = world.connect()
        world.operate(client)
        for name in NAMES:
            await world.make(name)
        await world.converged()
        wire.lost_answers["POST"] = wire.lost_answers["PUT"] = wire.lost_answers["PATCH"] = len(NAMES)
        for name in NAMES:
            await world.lose_child(name)
            world.unanswered += 1
        await world.converged()
        for name in NAMES:
            await world.change(name, "two")
        await world.converged()
        wire.lost_answers["DELETE"] = wire.lost_answers["PUT"] = len(NAMES)
        for name in NAMES:
            await world.remove(name)
        await world.converged()

    in_world(scenario)
