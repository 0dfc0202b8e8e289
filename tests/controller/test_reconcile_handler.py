"""What an operator logs of its reconciles: those that changed something or failed, each in one line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from tests.controller.scripted import LONG, Reconciler, conflict, running

from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.cache.write_context import write_count
from kubewright.controller.controllers import Controller
from kubewright.controller.queue import Reason
from kubewright.controller.reconcile import Result, TerminalError
from kubewright.testing.virtual_time import virtual

HANDLER = "kubewright.controller.reconcile_handler"
POD_DELETED = Reason("Pod", "deleted", ObjectKey("shop", "web-0"))


def first(
    writes: int, outcome: Result | Exception | None = None, seconds: float = 0.0
) -> Callable[[str], Awaitable[Result | None]]:
    """The first reconcile writes so often, takes so long and ends so; further ones find nothing to do."""
    left = [outcome]

    async def act(key: str) -> Result | None:
        if not left:
            return None
        write_count.get().value += writes
        await asyncio.sleep(seconds)
        end = left.pop()
        if isinstance(end, Exception):
            raise end
        return end

    return act


async def lines(act: Callable[[str], Awaitable[Result | None]], caplog: pytest.LogCaptureFixture) -> list[str]:
    controller = Controller("widget", Reconciler(act))
    async with running(controller):
        controller.queue.add("web", reason=POD_DELETED)
        await asyncio.sleep(LONG)
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == HANDLER]


@virtual
async def test_a_reconcile_that_wrote_is_logged_with_how_long_it_took_and_why_it_ran(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    assert await lines(first(2, seconds=0.25), caplog) == [
        "INFO [widget web] reconciled in 250 ms with 2 writes (Pod deleted shop/web-0)"
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "250 ms"), (30, "30 s"), (119, "119 s"), (3600, "60 min"), (90_000, "25 h"), (8e8, "9259.3 d")],
)
def test_the_log_line_has_the_time_of_the_requeue(seconds: float, text: str, caplog: pytest.LogCaptureFixture) -> None:
    """A requeue after years, as tokens have it, is no power of ten."""

    @virtual
    async def scenario() -> None:
        caplog.set_level(logging.INFO)
        assert await lines(first(1, Result(requeue_after=seconds), seconds=12.34), caplog) == [
            f"INFO [widget web] reconciled in 12.3 s with 1 write (Pod deleted shop/web-0), again in {text}"
        ]

    scenario()


@pytest.mark.parametrize("outcome", [None, Result(), Result(requeue=True), Result(requeue_after=30), conflict()])
def test_a_reconcile_that_changed_nothing_is_logged_at_debug(
    outcome: Result | Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def scenario() -> None:
        caplog.clear()
        caplog.set_level(logging.INFO)
        assert await lines(first(0, outcome), caplog) == []
        caplog.set_level(logging.DEBUG)
        found = await lines(first(0, outcome), caplog)
        assert len(found) >= 1
        assert all(line.startswith("DEBUG [widget web] reconcile") for line in found)

    scenario()


@virtual
async def test_a_lost_race_that_wrote_before_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (line,) = await lines(first(1, conflict()), caplog)
    assert line.startswith("INFO [widget web] reconcile lost a race in 0 ms with 1 write (Pod deleted shop/web-0): ")
    assert "the object has been modified" in line


@pytest.mark.parametrize(
    ("error", "then"),
    [
        (KubernetesError("the server is away"), "attempt 1, again in 5 ms: the server is away"),
        (TerminalError("no such region"), "not retried until the next change: no such region"),
    ],
)
def test_a_reconcile_that_failed_is_logged_with_why_it_ran(
    error: Exception, then: str, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def scenario() -> None:
        caplog.set_level(logging.INFO)
        assert await lines(first(0, error, seconds=1.5), caplog) == [
            f"ERROR [widget web] reconcile failed in 1.5 s (Pod deleted shop/web-0), {then}"
        ]

    scenario()


@virtual
async def test_the_first_of_many_reasons_are_named_and_the_others_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    controller = Controller("widget", Reconciler(first(1)))
    for number in range(8):
        controller.queue.add("web", reason=Reason("Pod", "added", ObjectKey("", str(number))))
    async with running(controller):
        await asyncio.sleep(1)
    assert "(Pod added 0, Pod added 1, Pod added 2, Pod added 3, Pod added 4, 3 more)" in caplog.text


class Counting(str):
    """A name that counts how often it is formatted."""

    formatted = 0

    def __format__(self, spec: str) -> str:
        type(self).formatted += 1
        return super().__format__(spec)


@virtual
async def test_nothing_is_formatted_for_a_line_that_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    reason = Reason("Pod", "added", ObjectKey("shop", Counting("web-0")))
    for level, formatted in ((logging.WARNING, False), (logging.INFO, True)):
        caplog.set_level(level)
        controller = Controller("widget", Reconciler(first(1)))
        async with running(controller):
            controller.queue.add("web", reason=reason)
            await asyncio.sleep(LONG)
        assert controller.statistics.results["success"] == 1
        assert bool(Counting.formatted) is formatted
