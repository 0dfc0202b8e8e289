"""Controllers in virtual time, with keys put into their queue by hand: no control plane is needed to prove these."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import weakref
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.controller.scripted import LONG, Every, Reconciler, always, conflict, in_turn, now, running, succeed

from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.cache.write_context import reconcile_priority, write_count
from kubewright.controller.context import ReconcileContext, current
from kubewright.controller.controllers import Controller
from kubewright.controller.hot_loop import MAX_IDLE, MAX_WRITING, PAUSE
from kubewright.controller.queue import Reason
from kubewright.controller.reconcile import Attempt, Request, Result, TerminalError
from kubewright.controller.reconcile_handler import FinishedReconcile
from kubewright.testing.virtual_time import run_virtual, virtual

# A key is never reconciled twice at once; every change is followed by a reconcile that began after it.


@virtual
async def test_a_key_is_never_reconciled_twice_at_once() -> None:
    active = Counter[str]()
    most = 0

    async def act(key: str) -> None:
        nonlocal most
        active[key] += 1
        assert active[key] == 1
        most = max(most, active.total())
        await asyncio.sleep(1)
        active[key] -= 1

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler, workers=20)
    async with running(controller):
        for _ in range(50):
            for key in "abc":
                controller.queue.add(key)
            await asyncio.sleep(0.3)
        await asyncio.sleep(LONG)
    assert controller.statistics.results == {
        "success": len(reconciler.begun),
        "error": 0,
        "requeue": 0,
        "requeue_after": 0,
    }
    assert most == 3, "different keys do run at once"


@virtual
async def test_no_more_reconciles_run_at_once_than_there_are_workers() -> None:
    controller: Controller[str]
    seen: list[int] = []

    async def act(key: str) -> None:
        seen.append(controller.statistics.active)
        await asyncio.sleep(1)

    controller = Controller("test", Reconciler(act), workers=4)
    async with running(controller):
        for number in range(20):
            controller.queue.add(f"{number}")
        await asyncio.sleep(LONG)
    assert max(seen) == 4
    assert controller.statistics.workers == 4
    assert controller.statistics.active == 0


OUTCOMES: dict[str, Callable[[], Result | Exception | None]] = {
    "done": lambda: None,
    "requeue": lambda: Result(requeue=True),
    "later": lambda: Result(requeue_after=2.0),
    "fails": lambda: ValueError("no"),
    "gives up": lambda: TerminalError("no"),
    "conflict": conflict,
    "known": lambda: KubernetesError("no"),
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    changes=st.lists(st.tuples(st.sampled_from([0.0, 0.001, 0.5, 1.0, 7.0]), st.sampled_from("abc")), max_size=30),
    reconciles=st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.5, 4.0]), st.sampled_from(sorted(OUTCOMES))), max_size=30
    ),
    workers=st.sampled_from([1, 2, 5]),
    max_attempts=st.sampled_from([None, 2]),
    timeout=st.sampled_from([None, 2.0]),
)
def test_every_change_is_followed_by_a_reconcile_that_began_after_it(
    changes: list[tuple[float, str]],
    reconciles: list[tuple[float, str]],
    workers: int,
    max_attempts: int | None,
    timeout: float | None,
) -> None:
    async def scenario() -> None:
        last_change: dict[str, int] = {}
        last_pass: dict[str, int] = {}
        moments = iter(range(1_000_000))
        left = list(reconciles)
        active: set[str] = set()

        async def act(key: str) -> Result | None:
            assert key not in active
            active.add(key)
            last_pass[key] = next(moments)
            seconds, name = left.pop() if left else (0.0, "done")
            try:
                await asyncio.sleep(seconds)
            finally:
                active.discard(key)
            outcome = OUTCOMES[name]()
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        controller = Controller("test", Reconciler(act), workers=workers, max_attempts=max_attempts, timeout=timeout)
        async with running(controller):
            for wait, key in changes:
                await asyncio.sleep(wait)
                controller.queue.add(key)
                last_change[key] = next(moments)
            await asyncio.sleep(LONG)
        assert not active
        assert {key for key, change in last_change.items() if last_pass.get(key, -1) < change} == set()
        assert not controller.queue.running()
        assert not controller._handler._failures

    run_virtual(scenario)


@virtual
async def test_many_reconciles_that_wait_for_nothing_yield_to_others() -> None:
    others: list[int] = []

    async def act(key: str) -> None:
        if not others:
            asyncio.get_running_loop().call_soon(lambda: others.append(len(reconciler.begun)))
        time.sleep(0.001)

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler)
    async with running(controller):
        for number in range(100):
            controller.queue.add(f"{number}")
        await asyncio.sleep(LONG)
    assert len(reconciler.begun) == 100
    assert others[0] < 100


# Results


@pytest.mark.parametrize(
    ("result", "times", "counted"),
    [
        (None, [0], "success"),
        (Result(), [0], "success"),
        (Result(priority=9), [0], "success"),
        (Result(requeue=True), [0, 0.005], "requeue"),
        (Result(requeue_after=10), [0, 10], "requeue_after"),
        (Result(requeue_after=0.25), [0, 0.25], "requeue_after"),
        (Result(requeue_after=timedelta(minutes=2)), [0, 120], "requeue_after"),
        (Result(requeue_after=0), [0], "success"),
        (Result(requeue_after=-1), [0], "success"),
        (Result(requeue_after=timedelta(seconds=-1)), [0], "success"),
        (Result(requeue=True, requeue_after=0), [0, 0.005], "requeue"),
        (Result(requeue=True, requeue_after=10), [0, 10], "requeue_after"),
    ],
)
@virtual
async def test_a_result_decides_when_the_next_reconcile_is(
    result: Result | None, times: list[float], counted: str
) -> None:
    reconciler = Reconciler(in_turn(result))
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == times
    expected = {"success": len(times) - 1, "error": 0, "requeue": 0, "requeue_after": 0}
    expected[counted] += 1
    assert controller.statistics.results == expected


@virtual
async def test_a_requeue_backs_off_as_failures_do() -> None:
    reconciler = Reconciler(in_turn(*[Result(requeue=True)] * 3))
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == [0, 0.005, 0.015, 0.035]
    assert controller.statistics.errors == 0


@pytest.mark.parametrize(("priority", "first"), [(10, "a"), (None, "b"), (1, "b")])
@pytest.mark.parametrize("requeue", [True, False])
@virtual
async def test_the_next_reconcile_has_the_priority_of_the_result(
    requeue: bool, priority: int | None, first: str
) -> None:
    result = Result(requeue=requeue, requeue_after=None if requeue else 1.0, priority=priority)
    reconciler = Reconciler(in_turn(result))
    controller = Controller("test", reconciler, limiter=Every(1))
    async with running(controller):
        controller.queue.add("b", after=1.0, priority=5)
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.keys[1] == first
    assert reconciler.times == [0, 1, 1]


@pytest.mark.parametrize("requeue", [True, False])
@pytest.mark.parametrize("priority", [-100, 0, 7])
@virtual
async def test_the_next_reconcile_has_the_priority_of_this_one_unless_the_result_says_otherwise(
    priority: int, requeue: bool
) -> None:
    priorities: list[int] = []

    async def act(key: str) -> Result | None:
        priorities.append(reconcile_priority.get())
        return Result(requeue=requeue, requeue_after=0 if requeue else 1) if len(priorities) < 3 else None

    controller = Controller("test", Reconciler(act))
    async with running(controller):
        controller.queue.add("a", priority=priority)
        await asyncio.sleep(LONG)
    assert priorities == [priority] * 3


@virtual
async def test_writes_of_a_reconcile_carry_its_priority() -> None:
    written_with: dict[str, int] = {}

    async def act(key: str) -> None:
        written_with[key] = reconcile_priority.get()

    controller = Controller("test", Reconciler(act))
    async with running(controller):
        for key, priority in (("initial", -100), ("live", 0), ("urgent", 7)):
            controller.queue.add(key, priority=priority)
        await asyncio.sleep(LONG)
    assert written_with == {"initial": -100, "live": 0, "urgent": 7}


@virtual
async def test_a_requeue_is_cancelled_neither_by_other_keys_nor_by_failures_before_it() -> None:
    async def act(key: str) -> Result | None:
        if key != "a":
            raise ValueError("no")
        if len([each for each in reconciler.keys if each == "a"]) == 1:
            raise ValueError("no")
        return Result(requeue_after=10) if now() < 30 else None

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler, workers=2, limiter=Every(1))
    async with running(controller):
        controller.queue.add("a")
        controller.queue.add("b")
        await asyncio.sleep(100)
    assert [when for when, key in reconciler.begun if key == "a"] == [0, 1, 11, 21, 31]


@virtual
async def test_a_reconcile_before_the_time_replaces_the_requeue() -> None:
    reconciler = Reconciler(in_turn(Result(requeue_after=10), Result(requeue_after=20)))
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(4)
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == [0, 4, 24]


@virtual
async def test_a_change_during_a_reconcile_comes_before_its_requeue() -> None:
    async def act(key: str) -> Result | None:
        await asyncio.sleep(1)
        return Result(requeue_after=10) if len(reconciler.begun) < 3 else None

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(0.5)
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == [0, 1, 12]


# What can be seen of it


@virtual
async def test_reconciles_are_reported_as_they_end() -> None:
    async def act(key: str) -> None:
        await asyncio.sleep(2)
        if key == "b":
            raise TerminalError("no")

    reason = Reason("Pod", "updated", ObjectKey("shop", "web"))
    controller = Controller("test", Reconciler(act))
    async with running(controller), controller.reconciles() as reconciles, controller.reconciles() as others:
        controller.queue.add("a", reason=reason)
        controller.queue.add("b")
        first, second = await anext(reconciles), await anext(reconciles)
        assert [await anext(others), await anext(others)] == [first, second]
    assert first == FinishedReconcile("a", Result(), 2.0, (reason,))
    assert (second.key, second.seconds, second.reasons) == ("b", 2.0, ())
    assert isinstance(second.outcome, TerminalError)
    assert not controller._handler._listeners


@virtual
async def test_reconciles_that_ended_before_are_not_reported() -> None:
    controller = Controller("test", Reconciler(succeed))
    async with running(controller):
        controller.queue.add("early")
        await asyncio.sleep(1)
        async with controller.reconciles() as reconciles:
            controller.queue.add("late")
            assert (await anext(reconciles)).key == "late"


@virtual
async def test_the_last_reconcile_of_the_last_256_keys_is_kept() -> None:
    controller = Controller("test", Reconciler(succeed))
    async with running(controller):
        for number in range(300):
            controller.queue.add(f"{number}")
        await asyncio.sleep(1)
        controller.queue.add("100", reason=Reason("again", "sent", None))
        await asyncio.sleep(1)
    assert list(controller.recent) == [*(f"{number}" for number in range(44, 300) if number != 100), "100"]
    assert controller.recent["100"].reasons == (Reason("again", "sent", None),)


@virtual
async def test_of_a_failed_reconcile_the_message_is_kept_and_no_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Large:
        """What a reconcile works with."""

    hands: list[weakref.ref[Large]] = []

    async def act(key: str) -> None:
        in_hand = Large()
        hands.append(weakref.ref(in_hand))
        raise ValueError("the disk is full")

    caplog.set_level(logging.CRITICAL)  # what pytest keeps of the log would hold on to the error, too
    controller = Controller("test", Reconciler(act), max_attempts=1)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(1)
        gc.collect()
        assert [hand() for hand in hands] == [None]
    assert controller.recent["a"].outcome == "ValueError: the disk is full"


@virtual
async def test_durations_and_reasons_are_counted() -> None:
    async def act(key: str) -> Result | None:
        await asyncio.sleep(3)
        return Result(requeue_after=1) if len(reconciler.begun) == 1 else None

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler)
    async with running(controller):
        for name in "xy":
            controller.queue.add("a", reason=Reason("Pod", "updated", ObjectKey("shop", name)))
        await asyncio.sleep(1)
        assert controller.statistics.active == 1
        await asyncio.sleep(LONG)
    statistics = controller.statistics
    assert statistics.active == 0
    assert statistics.reasons == {"Pod updated": 2, "requeue_after by the reconciler": 1}
    assert statistics.reconcile_time.sum == 6
    assert sum(statistics.reconcile_time.counts) == 2
    assert statistics.reconcile_time.counts[statistics.reconcile_time.bounds.index(3.0)] == 2


@virtual
async def test_a_reconcile_has_its_context_for_the_log() -> None:
    seen: list[ReconcileContext | None] = []

    class Both:
        async def reconcile(self, key: Request | str) -> None:
            seen.append(current.get())

    reason = Reason("Pod", "updated", ObjectKey("shop", "web-1"))
    statistics = []
    for kind in (GroupVersionKind("apps", "v1", "Deployment"), None):
        controller: Controller[Request | str] = Controller("web", Both(), kind=kind)
        statistics.append(controller.statistics)
        controller.queue.add(Request("shop", "web"), reason=reason)
        controller.queue.add("abc")
        controller.queue.close()
        await controller.run_workers()
    assert current.get() is None
    ids = {context.reconcile_id for context in seen if context is not None}
    assert len(ids) == 4
    assert [context and replace(context, reconcile_id="") for context in seen] == [
        ReconcileContext("web", "apps", "Deployment", "shop", "web", "", (reason,), statistics[0]),
        ReconcileContext("web", "apps", "Deployment", "", "abc", "", (), statistics[0]),
        ReconcileContext("web", "", "", "shop", "web", "", (reason,), statistics[1]),
        ReconcileContext("web", "", "", "", "abc", "", (), statistics[1]),
    ]


# Hot loops


@virtual
async def test_a_key_that_spins_without_writing_is_slowed_down_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def act(key: str) -> Result:
        return Result(requeue_after=0.001)

    reconciler = Reconciler(act)
    controller = Controller("spinner", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert MAX_IDLE < len(reconciler.begun) < MAX_IDLE + LONG / PAUSE.limit + 10
    assert controller.statistics.hot_loops == len(caplog.records)
    message = caplog.records[0].getMessage()
    assert "[spinner a] hot loop: reconciled over and over, many times a second; pausing it for 1 s." in message
    assert "Is its requeue_after too short" in message


@pytest.mark.parametrize(
    "reason", [None, Reason("orders", "sent", None), Reason("Widget", "updated", ObjectKey("", "a"))]
)
@virtual
async def test_a_source_that_echoes_each_reconcile_is_a_hot_loop(reason: Reason | None) -> None:
    class Echoed:
        async def reconcile(self, request: Request) -> None:
            controller.queue.add(request, reason=reason)
            await asyncio.sleep(0.001)

    controller = Controller("test", Echoed())
    workers = asyncio.create_task(controller.run_workers())
    controller.queue.add(Request("", "a"))
    await asyncio.sleep(LONG)
    workers.cancel()
    await asyncio.wait((workers,))
    assert controller.statistics.hot_loops > 0
    assert controller.statistics.results["success"] < 2 * MAX_IDLE


@virtual
async def test_an_object_that_many_others_belong_to_is_no_hot_loop() -> None:
    reconciler = Reconciler(succeed)
    controller = Controller("test", reconciler)
    async with running(controller):
        for number in range(5 * MAX_IDLE):
            controller.queue.add("a", reason=Reason("Pod", "updated", ObjectKey("shop", f"web-{number}")))
            await asyncio.sleep(0.001)
    assert len(reconciler.begun) == 5 * MAX_IDLE
    assert controller.statistics.hot_loops == 0


@virtual
async def test_the_pause_of_a_hot_loop_is_no_work_and_holds_up_no_other_key() -> None:
    async def act(key: str) -> Result | None:
        write_count.get().value += 1
        return Result(requeue_after=0.001) if key == "a" else None

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(0.5)
        assert controller.statistics.hot_loops == 1
        controller.queue.add("a")
        controller.queue.add("b")
        await asyncio.sleep(0.1)
        assert reconciler.keys.count("a") == MAX_WRITING, "it is paused, although it was added"
        assert reconciler.keys[-1] == "b"
        figures = controller.queue.statistics
        assert (figures.work_duration.sum, figures.unfinished_seconds(), figures.longest_running_seconds()) == (0, 0, 0)
        await asyncio.sleep(1)
        assert reconciler.keys.count("a") == MAX_WRITING + 1


# Its life


@virtual
async def test_stop_lets_reconciles_finish_and_starts_none() -> None:
    ended: list[str] = []

    async def act(key: str) -> None:
        await asyncio.sleep(5)
        ended.append(key)
        if key == "a":
            raise ValueError("no")

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler, workers=2)
    for key in "abcdef":
        controller.queue.add(key)
    workers = asyncio.create_task(controller.run_workers())
    await asyncio.sleep(1)
    controller.queue.add("a")
    controller.stop()
    controller.stop()
    await workers
    assert now() == 5
    assert ended == ["a", "b"]
    await asyncio.sleep(LONG)
    assert reconciler.keys == ["a", "b"]
    assert not controller.queue.running()


@virtual
async def test_cancelling_the_workers_ends_reconciles_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    notified: list[Exception] = []
    ended: list[float] = []

    async def act(key: str) -> None:
        try:
            await asyncio.sleep(LONG)
        finally:
            ended.append(now())

    controller = Controller(
        "test", Reconciler(act), on_error=lambda key, error, attempt: notified.append(error), timeout=9
    )
    controller.queue.add("a")
    workers = asyncio.create_task(controller.run_workers())
    await asyncio.sleep(1)
    workers.cancel()
    with pytest.raises(asyncio.CancelledError):
        await workers
    assert ended == [1]
    assert not notified
    assert not caplog.records
    assert controller.statistics.results == {"success": 0, "error": 0, "requeue": 0, "requeue_after": 0}
    assert controller.statistics.active == 0
    assert not controller.queue.running()


@virtual
async def test_cancelling_the_workers_ends_an_error_hook_too() -> None:
    async def notify(key: str, error: Exception, attempt: Attempt) -> None:
        await asyncio.sleep(LONG)

    controller = Controller("test", Reconciler(always(ValueError("no"))), on_error=notify)
    controller.queue.add("a")
    workers = asyncio.create_task(controller.run_workers())
    await asyncio.sleep(1)
    workers.cancel()
    with pytest.raises(asyncio.CancelledError):
        await workers
    assert now() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, 'controller "web": workers=0, expected at least 1'),
        ({"timeout": 0}, 'controller "web": timeout=0, expected a number of seconds above 0'),
        ({"max_attempts": 0}, 'controller "web": max_attempts=0, expected at least 1'),
    ],
)
def test_bad_options_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Controller("web", Reconciler(succeed), **options)  # type: ignore[arg-type]  # one of several
