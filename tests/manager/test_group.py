from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

import pytest

from kubewright.manager.group import Group
from kubewright.testing.virtual_time import run_virtual


def virtually(test: Callable[..., Coroutine[None, None, None]]) -> Callable[[], None]:
    """The test in virtual time, of which it has an hour."""

    async def main() -> None:
        async with asyncio.timeout(3600):
            await test()

    def run() -> None:
        run_virtual(main)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def new(failures: list[BaseException] | None = None) -> Group:
    return Group("runnables", (failures if failures is not None else []).append)


async def fail(error: Exception, after: float = 0.0) -> None:
    await asyncio.sleep(after)
    raise error


async def forever() -> None:
    await asyncio.Event().wait()


def now() -> float:
    return asyncio.get_running_loop().time()


@virtually
async def test_a_failure_is_reported_and_an_end_or_a_cancellation_is_not() -> None:
    failures: list[BaseException] = []
    group, error = new(failures), ValueError("broken")
    group.start(asyncio.sleep(1), "ends")
    group.start(forever(), "cancelled").cancel()
    group.start(fail(error, after=2), "fails")
    assert await group.drain(None)
    assert failures == [error]


@virtually
async def test_a_failure_does_not_end_the_others_by_itself() -> None:
    group = new()
    other = group.start(forever(), "other")
    group.start(fail(ValueError()), "fails")
    await asyncio.sleep(60)
    assert group.tasks == [other]
    await group.stop(None)


@virtually
async def test_the_tasks_are_those_that_have_not_ended_under_the_names_given() -> None:
    group = new()
    group.start(asyncio.sleep(1), "short")
    group.start(asyncio.sleep(3), "long")
    assert sorted(task.get_name() for task in group.tasks) == ["long", "short"]
    await asyncio.sleep(2)
    assert [task.get_name() for task in group.tasks] == ["long"]
    await group.stop(None)
    assert group.tasks == []


@virtually
async def test_a_function_that_is_not_async_is_refused_by_its_name() -> None:
    def plain() -> None: ...

    group = new()
    with pytest.raises(TypeError, match='cannot run plain: expected "async def"'):
        group.start(plain(), "plain")  # type: ignore[arg-type,func-returns-value]  # that is what is tested
    assert group.tasks == []


@virtually
async def test_drain_cancels_nothing_and_returns_whether_all_ended() -> None:
    group = new()
    group.start(asyncio.sleep(5), "slow")
    assert not await group.drain(4)
    assert now() == 4
    assert len(group.tasks) == 1
    assert await group.drain(4)
    assert now() == 5


@virtually
async def test_the_time_of_a_drain_is_for_all_together() -> None:
    """One that ends just in time must not give the others the same time again."""
    group = new()
    group.start(asyncio.sleep(9), "just in time")
    group.start(forever(), "never")
    assert not await group.drain(10)
    assert now() == 10
    await group.stop(None)


@virtually
async def test_drain_waits_also_for_what_is_started_meanwhile() -> None:
    group = new()

    async def first() -> None:
        await asyncio.sleep(1)
        group.start(asyncio.sleep(1), "second")

    group.start(first(), "first")
    assert await group.drain(10)
    assert now() == 2


@virtually
async def test_an_empty_group_is_drained_at_once() -> None:
    assert await new().drain(0)
    assert await new().stop(0)


@virtually
async def test_stop_cancels_all_and_returns_when_they_have_ended() -> None:
    ended: list[float] = []
    group = new()

    async def tidy_up(seconds: float) -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(seconds)
            ended.append(now())

    group.start(tidy_up(1), "quick")
    group.start(tidy_up(20), "slow")
    await asyncio.sleep(0)
    assert await group.stop(None)
    assert ended == [1, 20]


def test_a_task_that_does_not_end_after_a_stop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    @virtually
    async def scenario() -> None:
        group = new()

        async def stubborn() -> None:
            try:
                await forever()
            finally:
                await asyncio.sleep(60)

        group.start(stubborn(), "stubborn")
        group.start(forever(), "docile")
        await asyncio.sleep(0)
        assert not await group.stop(2)
        assert now() == 2
        assert await group.drain(None)

    with caplog.at_level(logging.WARNING):
        scenario()
    assert caplog.messages == ["runnables did not end within 2 s: stubborn"]


@virtually
async def test_a_failure_while_stopping_is_reported_too() -> None:
    failures: list[BaseException] = []
    group = new(failures)

    async def clumsy() -> None:
        try:
            await forever()
        finally:
            raise ValueError("while tidying up")

    group.start(clumsy(), "clumsy")
    await asyncio.sleep(0)
    assert await group.stop(None)
    assert [str(failure) for failure in failures] == ["while tidying up"]
