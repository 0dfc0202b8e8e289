"""Reconcilers that misbehave, for some reconciles or for one Widget; and floods of events."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from kubewright import Request
from kubewright.controlplane.embedded.apimachinery.document import copied_object
from kubewright.testing.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from tests.faults.conftest import InWorld, World

NAMES = [f"widget-{number}" for number in range(8)]


async def raises(request: Request) -> None:
    raise RuntimeError(f"no idea what to do with {request}")


async def hangs(request: Request) -> None:
    await asyncio.Event().wait()


async def hangs_and_will_not_hear_of_it(request: Request) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(7)


async def blocks(request: Request) -> None:
    """A minute in which nothing else of the program gets its turn."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop._jumping.now += 60


async def waits_for_something_cancelled(request: Request) -> None:
    waiting = asyncio.ensure_future(asyncio.Event().wait())
    waiting.cancel()
    await waiting


async def says_it_was_cancelled(request: Request) -> None:
    raise asyncio.CancelledError


async def cancels_itself(request: Request) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def cancels_itself_in_passing(request: Request) -> None:
    """The cancellation strikes at the next await, wherever that is."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


MISBEHAVIOURS = [
    raises,
    hangs,
    hangs_and_will_not_hear_of_it,
    blocks,
    waits_for_something_cancelled,
    says_it_was_cancelled,
    cancels_itself,
    cancels_itself_in_passing,
]


@pytest.mark.parametrize("misbehaves", MISBEHAVIOURS, ids=lambda each: each.__name__)
def test_failed_reconciles_are_retried_until_they_succeed(
    in_world: InWorld, misbehaves: Callable[[Request], Awaitable[None]]
) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate(timeout=5)
        seen: Counter[Request] = Counter()

        async def in_three_of_four(request: Request) -> None:
            seen[request] += 1
            if seen[request] % 4:
                await misbehaves(request)

        operator.reconciler.before = in_three_of_four
        for name in NAMES:
            await world.make(name)
        await world.converged()
        for name in NAMES:
            await world.change(name, "two")
        await world.lose_child(NAMES[0])
        await world.converged()
        for name in NAMES[4:]:
            await world.remove(name)
        await world.converged()
        assert operator.controller.statistics.active == 0

    in_world(scenario)


@pytest.mark.parametrize("misbehaves", MISBEHAVIOURS, ids=lambda each: each.__name__)
def test_one_widget_that_always_fails_does_not_affect_the_others(
    in_world: InWorld, misbehaves: Callable[[Request], Awaitable[None]]
) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate(timeout=5)

        async def at_the_bad_one(request: Request) -> None:
            if request.name == "bad":
                await misbehaves(request)

        operator.reconciler.before = at_the_bad_one
        await world.make("bad")
        for name in NAMES:
            await world.make(name)
        async with asyncio.timeout(3600):
            while not all(name in {at.name for at in operator.controller.recent} for name in NAMES):
                await asyncio.sleep(1)
        for name in NAMES:
            await world.change(name, "two")
        await asyncio.sleep(600)
        assert all("bad" in difference or "the queue holds" in difference for difference in await world.differences())
        operator.reconciler.before = nothing
        await world.converged()

    async def nothing(request: Request) -> None:
        """It has mended its ways."""

    in_world(scenario)


def test_ten_thousand_events_for_one_widget_cause_few_reconciles_and_the_last_one_counts(in_world: InWorld) -> None:
    async def scenario(world: World) -> None:
        operator = world.operate()
        await world.make("busy")
        await world.make("idle")
        await world.converged()
        before = world.ledger.reconciles.copy()

        async def takes_a_second(request: Request) -> None:
            await asyncio.sleep(1)

        operator.reconciler.before = takes_a_second
        await world.change("busy", "first")
        # Straight into the server's store: ten thousand requests would be a test of something else.
        store = world.embedded._started.assembled.store
        child = store.get(f"/core/configmaps/{world.namespace}/busy")
        assert child is not None
        for number in range(9_998):
            child = store.update(child.key, copied_object(child.value), expected=child.revision)
            if number % 100 == 0:
                await asyncio.sleep(0)
        await world.change("busy", "last")
        await world.converged()
        assert 2 <= world.ledger.reconciles["busy"] - before["busy"] <= 5
        assert world.ledger.reconciles["idle"] == before["idle"]

    in_world(scenario)
