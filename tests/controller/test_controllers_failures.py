"""What follows from reconciles that fail: retries, attempts, the error hook, the log."""

from __future__ import annotations

import asyncio
import gc
import re
from typing import Any

import pytest
from tests.controller.scripted import LONG, Every, Reconciler, always, conflict, in_turn, now, running

from kubewright.api.core.v1 import Pod
from kubewright.api.errors import KubernetesError
from kubewright.client import Client, Config
from kubewright.client.errors import AlreadyExists, Conflict, Status, StatusCause, StatusDetails
from kubewright.controller.cancelled import Cancelled
from kubewright.controller.context import current
from kubewright.controller.controllers import Controller
from kubewright.controller.ratelimit import Bucket, ExponentialBackoff, RateLimiter
from kubewright.controller.reconcile import Attempt, Result, TerminalError
from kubewright.controller.reconcile_handler import QUIET_CONFLICTS, ReconcileTimeout
from kubewright.manager.log import stack_trace
from kubewright.testing.virtual_time import run_virtual, virtual

# Failures


@virtual
async def test_a_reconcile_that_fails_is_retried_with_backoff() -> None:
    reconciler = Reconciler(in_turn(*[ValueError("no")] * 4))
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == [0.0, 0.005, 0.015, 0.035, 0.075]


@virtual
async def test_backoff_is_reset_by_a_success() -> None:
    reconciler = Reconciler(in_turn(ValueError("no"), ValueError("no"), None, ValueError("no")))
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(10)
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == [0.0, 0.005, 0.015, 10.0, 10.005]


@virtual
async def test_an_expected_error_is_logged_without_traceback(caplog: pytest.LogCaptureFixture) -> None:
    controller = Controller("test", Reconciler(in_turn(KubernetesError("the server is away"))))
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == "[test a] reconcile failed in 0 ms, attempt 1, again in 5 ms: the server is away"
    assert record.exc_info is None
    statistics = controller.statistics
    assert statistics.results == {"success": 1, "error": 1, "requeue": 0, "requeue_after": 0}
    assert (statistics.errors, statistics.panics, statistics.terminal_errors) == (1, 0, 0)


@virtual
async def test_an_error_of_the_program_is_logged_with_the_users_part_of_the_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def explode() -> None:
        raise KeyError

    async def act(key: str) -> None:
        if len(reconciler.begun) == 1:
            explode()

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    (record,) = caplog.records
    assert record.getMessage() == "[test a] reconcile failed in 0 ms, attempt 1, again in 5 ms: KeyError"
    assert record.exc_info is not None
    assert record.exc_info[1] is not None
    trace = stack_trace(record.exc_info[1])
    assert "in explode" in trace
    assert "in act" in trace
    assert "controller/controllers.py" not in trace
    statistics = controller.statistics
    assert statistics.results == {"success": 1, "error": 1, "requeue": 0, "requeue_after": 0}
    assert (statistics.errors, statistics.panics) == (1, 0)


@virtual
async def test_an_error_without_a_message_ends_nothing_but_its_reconcile(caplog: pytest.LogCaptureFixture) -> None:
    class Silent(KubernetesError):
        def __str__(self) -> str:
            raise AttributeError("code")

    class SilentEnd(Silent, TerminalError):
        pass

    controller = Controller("test", Reconciler(in_turn(Silent(), SilentEnd(), Silent())), max_attempts=1)
    async with running(controller):
        for _ in range(3):
            controller.queue.add("a")
            await asyncio.sleep(LONG)
    assert [record.getMessage() for record in caplog.records] == [
        f"[test a] reconcile failed in 0 ms, {then}: its message cannot be shown (AttributeError)"
        for then in (
            "attempt 1 was the last until the next change",
            "not retried until the next change",
            "attempt 1 was the last until the next change",
        )
    ]
    assert controller.recent["a"].outcome == "Silent: its message cannot be shown (AttributeError)"


@virtual
async def test_a_terminal_error_is_not_retried_until_the_next_change(caplog: pytest.LogCaptureFixture) -> None:
    notified: list[Attempt] = []
    reconciler = Reconciler(in_turn(ValueError("no"), TerminalError("no such region"), TerminalError("no such region")))
    controller = Controller(
        "test", reconciler, on_error=lambda key, error, attempt: notified.append(attempt), limiter=Every(1)
    )
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
        assert reconciler.times == [0, 1]
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == [0, 1, LONG]
    assert notified == [Attempt(1, False), Attempt(2, True), Attempt(1, True)]
    message = "[test a] reconcile failed in 0 ms, not retried until the next change: no such region"
    assert caplog.records[-1].getMessage() == message
    assert caplog.records[-1].exc_info is None
    statistics = controller.statistics
    assert (statistics.errors, statistics.terminal_errors, statistics.panics) == (3, 2, 0)
    assert statistics.results == {"success": 0, "error": 3, "requeue": 0, "requeue_after": 0}


@virtual
async def test_a_conflict_is_retried_without_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    notified: list[Exception] = []
    reconciler = Reconciler(in_turn(conflict()))
    controller = Controller("test", reconciler, on_error=lambda key, error, attempt: notified.append(error))
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == [0.0, 0.005]
    assert not notified
    assert not caplog.records
    statistics = controller.statistics
    assert statistics.conflicts == 1
    assert statistics.errors == 0
    assert statistics.results == {"success": 1, "error": 0, "requeue": 1, "requeue_after": 0}
    assert statistics.reasons == {"retry after a conflict": 1}


@virtual
async def test_conflicts_that_do_not_end_are_errors_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    """Something else writes the object in every reconcile, or the cache does not follow: that has to be reported."""
    notified: list[Attempt] = []
    reconciler = Reconciler(always(conflict()))
    controller = Controller(
        "test",
        reconciler,
        limiter=Every(1),
        max_attempts=3,
        on_error=lambda key, error, attempt: notified.append(attempt),
    )
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert len(reconciler.begun) == QUIET_CONFLICTS + 3
    assert notified == [Attempt(1, False), Attempt(2, False), Attempt(3, True)]
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3
    assert all("the object has been modified" in record.getMessage() for record in caplog.records)
    statistics = controller.statistics
    assert (statistics.conflicts, statistics.errors) == (QUIET_CONFLICTS, 3)
    assert not controller._handler._lost_races


@virtual
async def test_a_success_makes_the_next_conflicts_quiet_again(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = [*[conflict()] * QUIET_CONFLICTS, None]
    reconciler = Reconciler(in_turn(*outcomes, *outcomes))
    controller = Controller("test", reconciler, limiter=Every(1))
    async with running(controller):
        for _ in range(2):
            controller.queue.add("a")
            await asyncio.sleep(LONG)
    assert len(reconciler.begun) == 2 * len(outcomes)
    assert not caplog.records
    assert not controller._handler._lost_races


REFUSALS = {
    "apply": Conflict(
        Status(
            code=409,
            reason="Conflict",
            message='Apply failed with 1 conflict: conflict with "other": .spec.size',
            details=StatusDetails(causes=(StatusCause("FieldManagerConflict", 'conflict with "other"', ".spec.size"),)),
        )
    ),
    "uid": Conflict(
        Status(
            code=409,
            reason="Conflict",
            message='Operation cannot be fulfilled on widgets "a": Precondition failed: UID in precondition: 1, '
            "UID in object meta: 2",
        )
    ),
    "quota": Conflict(
        Status(
            code=409,
            reason="Conflict",
            message='Operation cannot be fulfilled on resourcequotas "q": the object has been modified; please apply '
            "your changes to the latest version and try again",
            details=StatusDetails(name="q", kind="resourcequotas"),
        ),
        "create Pod default/web-1",
    ),
    "proxy": Conflict(Status(code=409, message="the object has been modified")),
    "name taken": AlreadyExists(Status(code=409, reason="AlreadyExists", message='widgets "a" already exists')),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
@virtual
async def test_a_409_that_is_no_lost_race_is_an_error_from_the_first(
    refusal: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    notified: list[Attempt] = []
    controller = Controller(
        "test",
        Reconciler(always(refusal)),
        max_attempts=2,
        on_error=lambda key, error, attempt: notified.append(attempt),
    )
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert notified == [Attempt(1, False), Attempt(2, True)]
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 2
    assert (controller.statistics.conflicts, controller.statistics.errors) == (0, 2)


@virtual
async def test_something_cancelled_that_a_reconcile_waited_for_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def wait_for_something_cancelled() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async def act(key: str) -> None:
        if len(reconciler.begun) == 1:
            await wait_for_something_cancelled()

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler)
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        first, second = await anext(reconciles), await anext(reconciles)
    assert isinstance(first.outcome, Cancelled)
    assert second.outcome == Result()
    assert controller.statistics.errors == 1
    assert "in wait_for_something_cancelled" in stack_trace(first.outcome), "it can be seen where"


@virtual
async def test_a_reconcile_that_cancels_its_own_task_is_a_failure_and_costs_no_worker() -> None:
    async def act(key: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        if key == "waits":
            task.cancel()
            await asyncio.sleep(LONG)
        elif key == "goes on":
            task.cancel()  # takes effect when the reconcile is over

    controller = Controller("test", Reconciler(act))
    async with running(controller), controller.reconciles() as reconciles:
        for key in ("goes on", "waits", "another"):
            controller.queue.add(key)
        outcomes = {each.key: each.outcome for each in [await anext(reconciles) for _ in range(3)]}
    assert outcomes["goes on"] == outcomes["another"] == Result()
    assert isinstance(outcomes["waits"], Cancelled)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_exception_that_ends_a_program_is_raised(error: type[BaseException]) -> None:
    async def scenario() -> None:
        controller = Controller("test", Reconciler(in_turn(error())), workers=2)
        async with running(controller):
            controller.queue.add("a")
            await asyncio.sleep(LONG)

    with pytest.raises(error):
        run_virtual(scenario)
    # What the loop could not end any more is reported when it is collected: here, and not in the midst of another test.
    gc.collect()


@virtual
async def test_a_base_exception_ends_the_workers_and_is_raised() -> None:
    class Abort(BaseException):
        pass

    controller = Controller("test", Reconciler(in_turn(Abort())), workers=2)
    controller.queue.add("a")
    with pytest.raises(BaseExceptionGroup) as raised:
        await controller.run_workers()
    assert isinstance(raised.value.exceptions[0], Abort)
    assert not controller.queue.running()
    assert (controller.statistics.panics, controller.statistics.errors) == (1, 0)


@pytest.mark.parametrize("returned", [True, 30.0, "done", Result(requeue_after="soon"), Result(priority="high")])  # type: ignore[arg-type]
@virtual
async def test_a_reconciler_that_returns_something_else_fails(
    returned: Result, caplog: pytest.LogCaptureFixture
) -> None:
    reconciler = Reconciler(in_turn(returned))
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == [0.0, 0.005]
    assert "attempt 1, again in 5 ms: reconcile returned " in caplog.text
    assert "expected" in caplog.text
    assert controller.statistics.results == {"success": 1, "error": 1, "requeue": 0, "requeue_after": 0}


# Timeouts


@virtual
async def test_a_reconcile_that_takes_too_long_is_ended_as_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[float] = []

    async def act(key: str) -> None:
        try:
            await asyncio.sleep(LONG if len(reconciler.begun) == 1 else 4)
        finally:
            ended.append(now())

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler, timeout=5, limiter=Every(1))
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        first, second = await anext(reconciles), await anext(reconciles)
    assert ended == [5, 10]
    assert isinstance(first.outcome, ReconcileTimeout)
    assert (first.seconds, second.seconds) == (5, 4)
    assert second.outcome == Result()
    (record,) = caplog.records
    message = "[test a] reconcile failed in 5 s, attempt 1, again in 1 s: the reconcile took longer than 5 s"
    assert record.getMessage() == message
    assert record.exc_info is None
    assert (controller.statistics.timeouts, controller.statistics.errors, controller.statistics.panics) == (1, 1, 0)


@virtual
async def test_a_timeout_inside_of_a_reconcile_is_not_the_reconcile_timing_out() -> None:
    controller = Controller("test", Reconciler(in_turn(TimeoutError("the bucket did not answer"))), timeout=5)
    async with running(controller), controller.reconciles() as reconciles:
        controller.queue.add("a")
        first = await anext(reconciles)
    assert isinstance(first.outcome, TimeoutError)
    assert controller.statistics.timeouts == 0
    assert controller.statistics.errors == 1


# Attempts and the error hook


@pytest.mark.parametrize("limiter", [ExponentialBackoff(), Bucket(), Every(1)], ids=lambda each: type(each).__name__)
@virtual
async def test_after_the_last_attempt_a_key_waits_for_its_next_change(
    limiter: RateLimiter, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the limiter counts, if it does at all."""
    notified: list[tuple[str, str, Attempt]] = []

    def notify(key: str, error: Exception, attempt: Attempt) -> None:
        notified.append((key, str(error), attempt))

    controller = Controller(
        "test", Reconciler(always(ValueError("no"))), max_attempts=3, limiter=limiter, on_error=notify
    )
    async with running(controller):
        for _ in range(2):
            controller.queue.add("a")
            await asyncio.sleep(LONG)
    assert notified == [("a", "no", Attempt(number, number == 3)) for number in (1, 2, 3)] * 2
    first, second, third = [record.getMessage() for record in caplog.records[:3]]
    assert re.fullmatch(r"\[test a\] reconcile failed in 0 ms, attempt 1, again in [\d.]+ m?s: no", first)
    assert "attempt 2, again in " in second
    assert "(retry after an error), attempt 3 was the last until the next change: no" in third
    assert not controller._handler._failures, "nothing is kept of keys that are given up"


@virtual
async def test_without_a_limit_there_is_no_last_attempt() -> None:
    notified: list[Attempt] = []
    controller = Controller(
        "test",
        Reconciler(always(ValueError("no"))),
        limiter=Every(1),
        on_error=lambda key, error, attempt: notified.append(attempt),
    )
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(99.5)
    assert notified == [Attempt(number, False) for number in range(1, 101)]


@virtual
async def test_failures_are_counted_in_a_row() -> None:
    notified: list[tuple[float, int]] = []
    outcomes: list[Result | Exception] = [
        ValueError("no"),
        ValueError("no"),
        conflict(),
        ValueError("no"),
        Result(requeue=True),
        ValueError("no"),
    ]
    controller = Controller(
        "test",
        Reconciler(in_turn(*outcomes)),
        limiter=Every(1),
        on_error=lambda key, error, attempt: notified.append((now(), attempt.number)),
    )
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    # A conflict says nothing about the object; a reconcile that requeues has succeeded.
    assert notified == [(0, 1), (1, 2), (3, 3), (5, 1)]


@virtual
async def test_a_failure_before_the_back_off_is_over_is_one_more() -> None:
    notified: list[tuple[float, Attempt]] = []
    controller = Controller(
        "test",
        Reconciler(always(ValueError("no"))),
        max_attempts=3,
        limiter=ExponentialBackoff(base=10),
        on_error=lambda key, error, attempt: notified.append((now(), attempt)),
    )
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(4)
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert notified == [(0, Attempt(1, False)), (4, Attempt(2, False)), (10, Attempt(3, True))]


@virtual
async def test_the_error_hook_may_be_async_and_belongs_to_the_reconcile() -> None:
    seen: list[tuple[float, str]] = []

    async def notify(key: str, error: Exception, attempt: Attempt) -> None:
        await asyncio.sleep(3)
        context = current.get()
        assert context is not None
        seen.append((now(), context.name))

    reconciler = Reconciler(in_turn(ValueError("no")))
    controller = Controller("test", reconciler, on_error=notify)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert seen == [(3, "a")]
    assert reconciler.times == [0, 3], "the next reconcile waits for it"


@pytest.mark.parametrize("error", [RuntimeError("hook"), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("outcome", [ValueError("no"), TerminalError("no")], ids=repr)
@virtual
async def test_an_error_hook_that_fails_ends_nothing(
    error: BaseException, outcome: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def notify(key: str, failure: Exception, attempt: Attempt) -> None:
        raise error

    reconciler = Reconciler(in_turn(outcome))
    controller = Controller("test", reconciler, on_error=notify)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(10)
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == ([0, 10] if isinstance(outcome, TerminalError) else [0, 0.005, 10])
    assert "the error hook failed" in caplog.text
    assert caplog.records[1].exc_info is not None


@virtual
async def test_a_plain_error_hook_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def notify(key: str, failure: Exception, attempt: Attempt) -> None:
        raise RuntimeError("hook")

    reconciler = Reconciler(in_turn(ValueError("no")))
    controller = Controller("test", reconciler, on_error=notify)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(LONG)
    assert reconciler.times == [0, 0.005]
    assert "the error hook failed" in caplog.text


@virtual
async def test_a_wrong_call_in_a_reconcile_is_logged_with_the_fix(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(key: str) -> None:
        client: Any = Client(Config(server="http://127.0.0.1:1"))
        await client.list(Pod, label_selector="app=web")

    controller = Controller("test", Reconciler(fail))
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(0.001)
    assert "got an unexpected keyword argument 'label_selector': write labels=" in caplog.messages[0]
