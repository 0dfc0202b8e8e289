"""Reconcilers that are plain functions, in real threads."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from unittest.mock import patch

import pytest

from kubewright.cache.write_context import write_count
from kubewright.controller.context import current
from kubewright.controller.controllers import Controller
from kubewright.controller.reconcile import Result, TerminalError
from kubewright.controller.reconcile_handler import ReconcileTimeout
from kubewright.controller.thread import run_in_loop
from kubewright.manager.log import stack_trace

WAIT = 20.0


class Blocking:
    def __init__(self, act: Callable[[str], Awaitable[Result | None] | Result | None]) -> None:
        self.reconcile = act


@asynccontextmanager
async def running(controller: Controller[str]) -> AsyncIterator[None]:
    workers = asyncio.create_task(controller.run_workers())
    try:
        async with asyncio.timeout(WAIT):
            yield
    finally:
        controller.stop()
        await workers


async def test_a_plain_reconciler_runs_in_a_thread_and_its_result_counts() -> None:
    threads: list[threading.Thread] = []

    def reconcile(key: str) -> Result | None:
        threads.append(threading.current_thread())
        return Result(requeue_after=0.001) if len(threads) == 1 else None

    controller = Controller("blocking", Blocking(reconcile))
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        outcomes = [(await anext(reconciles)).outcome for _ in range(2)]
    assert outcomes == [Result(requeue_after=0.001), Result()]
    assert threading.current_thread() not in threads
    assert all(thread.name.startswith("blocking") for thread in threads)


async def test_as_many_run_at_once_as_there_are_workers() -> None:
    together = threading.Barrier(3)

    def reconcile(key: str) -> None:
        together.wait(WAIT)

    controller = Controller("blocking", Blocking(reconcile), workers=3)
    async with running(controller), controller.reconciles() as reconciles:
        for key in "abc":
            controller.queue.add(key)
        outcomes = [(await anext(reconciles)).outcome for _ in range(3)]
    assert outcomes == [Result()] * 3


async def test_the_loop_is_free_while_a_thread_works() -> None:
    release = threading.Event()
    controller = Controller("blocking", Blocking(lambda key: None if release.wait(WAIT) else Result(requeue=True)))
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        while not controller.queue.running():
            await asyncio.sleep(0)
        release.set()
        assert (await anext(reconciles)).outcome == Result()


@pytest.mark.parametrize("error", [ValueError("no"), TerminalError("no")], ids=repr)
async def test_an_error_in_a_thread_is_the_outcome(error: Exception) -> None:
    def explode(key: str) -> None:
        raise error

    controller = Controller("blocking", Blocking(explode), max_attempts=1)
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        outcome = (await anext(reconciles)).outcome
    assert outcome is error
    assert "in explode" in stack_trace(error)


async def test_a_stop_iteration_is_a_failure_like_any_other() -> None:
    """`next(iter(nothing))` is an easy mistake, and futures cannot hold this one: the reconcile would never end."""

    def reconcile(key: str) -> None:
        if key == "a":
            next(iter(()))

    controller = Controller("blocking", Blocking(reconcile), max_attempts=1)
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        outcome = (await anext(reconciles)).outcome
        controller.queue.add("b")
        assert (await anext(reconciles)).outcome == Result()
    assert isinstance(outcome, RuntimeError)
    assert isinstance(outcome.__cause__, StopIteration)


async def test_an_async_reconciler_behind_a_decorator_is_awaited() -> None:
    def decorated(function: Callable[[str], Awaitable[Result | None]]) -> Callable[[str], Awaitable[Result | None]]:
        def call(key: str) -> Awaitable[Result | None]:
            return function(key)

        return call

    loop = asyncio.get_running_loop()

    @decorated
    async def reconcile(key: str) -> Result | None:
        assert asyncio.get_running_loop() is loop
        return Result(priority=7)

    controller = Controller("blocking", Blocking(reconcile))
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        assert (await anext(reconciles)).outcome == Result(priority=7)


async def test_no_second_reconcile_starts_while_the_thread_of_one_that_timed_out_still_runs() -> None:
    begun, release = threading.Event(), threading.Event()
    passes_of_a: list[int] = []
    active: set[str] = set()

    def reconcile(key: str) -> None:
        assert key not in active
        active.add(key)
        if key == "a":
            passes_of_a.append(len(passes_of_a))
            begun.set()
            release.wait(WAIT)
        active.remove(key)

    timeout = 0.01
    controller = Controller("blocking", Blocking(reconcile), workers=2, timeout=timeout)
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        await asyncio.to_thread(begun.wait, WAIT)
        await asyncio.sleep(2 * timeout)  # a later timer of the same loop: the reconcile has timed out before it
        controller.queue.add("a")
        controller.queue.add("b")
        assert (await anext(reconciles)).key == "b", "the other worker goes on"
        assert "a" in controller.queue.running()
        assert passes_of_a == [0]
        release.set()
        outcome = await anext(each.outcome async for each in reconciles if each.key == "a")
        while len(passes_of_a) < 2:
            await anext(reconciles)
    assert isinstance(outcome, ReconcileTimeout)
    statistics = controller.statistics
    assert statistics.errors == statistics.timeouts, "the assertion in the reconciles held"


async def test_cancelling_the_workers_waits_for_the_thread() -> None:
    begun, release = threading.Event(), threading.Event()
    ended: list[str] = []

    def reconcile(key: str) -> None:
        begun.set()
        release.wait(WAIT)
        ended.append(key)
        raise ValueError("too late for anybody to hear")

    controller = Controller("blocking", Blocking(reconcile))
    controller.queue.add("a")
    workers = asyncio.create_task(controller.run_workers())
    await asyncio.to_thread(begun.wait, WAIT)
    workers.cancel()
    done, _ = await asyncio.wait((workers,), timeout=0)
    assert not done
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await workers
    assert ended == ["a"]


async def test_the_threads_end_with_the_controller() -> None:
    threads: list[threading.Thread] = []
    controller = Controller("blocking", Blocking(lambda key: threads.append(threading.current_thread())), workers=3)
    async with running(controller), controller.reconciles() as reconciles:
        for key in "abc":
            controller.queue.add(key)
            await anext(reconciles)
    for thread in threads:
        await asyncio.to_thread(thread.join, WAIT)
        assert not thread.is_alive()


async def test_a_thread_can_wait_for_a_coroutine_on_the_loop() -> None:
    loop = asyncio.get_running_loop()

    async def double(number: int) -> int:
        await asyncio.sleep(0)
        assert asyncio.get_running_loop() is loop
        return number * 2

    def reconcile(key: str) -> Result:
        return Result(priority=run_in_loop(double(21)))

    controller = Controller("blocking", Blocking(reconcile))
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        assert (await anext(reconciles)).outcome == Result(priority=42)


async def test_an_error_of_the_coroutine_is_raised_in_the_thread() -> None:
    async def fail() -> None:
        raise LookupError("not here")

    caught: list[str] = []

    def reconcile(key: str) -> None:
        try:
            run_in_loop(fail())
        except LookupError as error:
            caught.append(str(error))

    controller = Controller("blocking", Blocking(reconcile))
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        assert (await anext(reconciles)).outcome == Result()
    assert caught == ["not here"]


async def test_context_variables_reach_the_thread_and_what_it_waits_for() -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    seen: list[tuple[str, str]] = []

    def note() -> None:
        context = current.get()
        assert context is not None
        seen.append((context.name, tenant.get()))

    async def note_later() -> None:
        note()
        write_count.get().value += 1

    def reconcile(key: str) -> None:
        note()
        run_in_loop(note_later())

    tenant.set("shop")
    controller = Controller("blocking", Blocking(reconcile))
    with patch.object(controller._handler._hot_loops, "note", return_value=0.0) as note_writes:
        async with running(controller), controller.reconciles() as reconciles:
            controller.queue.add("a")
            await anext(reconciles)
    assert seen == [("a", "shop")] * 2
    ((key, writes, _),) = (call.args for call in note_writes.call_args_list)
    assert (key, writes) == ("a", 1), "what is written from a thread counts too"


async def test_run_in_loop_is_refused_where_await_works() -> None:
    """The coroutine is closed, so that there is no warning; filterwarnings would fail this test."""

    async def answer() -> int:
        return 42

    with pytest.raises(RuntimeError, match="elsewhere use await"):
        run_in_loop(answer())
    with pytest.raises(RuntimeError, match="elsewhere use await"):
        await asyncio.to_thread(functools.partial(run_in_loop, answer()))


async def test_run_in_loop_is_refused_on_the_loop_itself() -> None:
    """It would wait for a loop that waits for it."""

    async def answer() -> int:
        return 42

    async def wrong() -> int:
        return run_in_loop(answer())

    controller = Controller("blocking", Blocking(lambda key: Result(priority=run_in_loop(wrong()))), max_attempts=1)
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        outcome = (await anext(reconciles)).outcome
    assert isinstance(outcome, RuntimeError)
    assert "use await" in str(outcome)
