"""An operator loses its kind or its permissions, and gets them back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.manager.preflight import PermissionsMissing

if TYPE_CHECKING:
    from tests.faults.conftest import InWorld, World

NAMES = ["one", "two", "three"]


def is_ours(target: Target) -> bool:
    return target.resource in ("widgets", "configmaps")


def is_watch_of_widgets(target: Target) -> bool:
    return target.resource == "widgets" and target.verb == "watch"


@pytest.mark.parametrize("seconds", [0, 1, 300], ids=["at once", "soon", "much later"])
def test_a_kind_that_is_removed_and_recreated_starts_over(in_world: InWorld, seconds: float) -> None:
    """Its objects go with it, and their children with them."""

    async def scenario(world: World) -> None:
        operator = world.operate()
        for _ in range(3):
            for name in NAMES:
                await world.make(name)
            await world.converged()
            await world.uninstall()
            await asyncio.sleep(seconds)
            if seconds > 1:
                assert operator.controller.not_ready_reason is not None
                assert "widgets.faults.example.com" in operator.controller.not_ready_reason
            await world.install()
            await world.converged()
        for name in NAMES:
            await world.make(name)
        await world.converged()

    in_world(scenario)


def test_a_kind_that_is_removed_while_the_operator_is_away_is_noticed(in_world: InWorld) -> None:
    """No watch emits the deletion of its objects: they are gone with the kind when the operator can read again."""

    async def scenario(world: World) -> None:
        operator = world.operate()
        for name in NAMES:
            await world.make(name)
        await world.converged()
        reconciles = world.ledger.reconciles.copy()
        world.embedded.faults.fail(is_watch_of_widgets, code=503, times=None)
        world.embedded.faults.cut_open_watches(is_watch_of_widgets)
        await world.abandon()
        world.embedded.faults.clear()
        await asyncio.sleep(60)
        assert all(world.ledger.reconciles[name] > reconciles[name] for name in NAMES)
        # The reconciles saw that there is nothing left to do, instead of failing until the kind is back.
        assert operator.controller.statistics.errors == 0
        await world.collect_garbage()
        await world.install()
        for name in NAMES:
            await world.make(name)
        await world.converged()

    in_world(scenario)


def test_an_operator_waits_for_its_kind(in_world: InWorld) -> None:
    async def scenario(world: World) -> None:
        await world.uninstall()
        operator = world.operate()
        await asyncio.sleep(3600)
        assert not operator.task.done()
        await world.install()
        for name in NAMES:
            await world.make(name)
        await world.converged()

    in_world(scenario)


@pytest.mark.parametrize("is_cut", [False, True], ids=["watches stay open", "watches are cut"])
def test_revoked_permissions_are_waited_for(in_world: InWorld, is_cut: bool) -> None:
    """A server leaves an open watch open; new requests are refused."""

    async def scenario(world: World) -> None:
        operator = world.operate()
        for name in NAMES:
            await world.make(name)
        await world.converged()
        await world.forbid()
        if is_cut:
            world.embedded.faults.cut_open_watches(is_ours)
        await world.make("four")
        await world.change("one", "changed")
        await world.remove("two")
        await world.lose_child("three")
        await asyncio.sleep(120)
        if is_cut:
            assert {informer.state for informer in operator.manager.cache.informers()} == {"forbidden"}
            assert 'User "operator" cannot' in (operator.controller.not_ready_reason or "")
        else:
            assert operator.controller.statistics.errors > 0
        await world.permit()
        await world.converged()

    in_world(scenario)


def test_an_operator_without_permissions_reports_them_and_its_next_start_succeeds(in_world: InWorld) -> None:
    async def scenario(world: World) -> None:
        await world.make("one")
        await world.forbid()
        operator = world.operate()
        world.operators.remove(operator)
        with pytest.raises(PermissionsMissing, match="widgets"):
            await operator.task
        await world.permit()
        world.operate()
        await world.converged()

    in_world(scenario)
