"""Keys of a queue that come later than they were added: retries and debouncing."""

from __future__ import annotations

import asyncio

import pytest
from tests.controller.taking import now, take, take_all

from kubewright.controller.queue import Queue, Reason
from kubewright.controller.ratelimit import ExponentialBackoff
from kubewright.testing.virtual_time import run_virtual, virtual


@virtual
async def test_a_failed_key_is_requeued_with_backoff() -> None:
    queue = Queue[str](ExponentialBackoff(1.0, 3.0))
    queue.add("a")
    seen = list[tuple[float, int]]()
    for _ in range(5):
        work = await queue.get()
        seen.append((now(), work.attempt))
        queue.add_failed("a")
        queue.done("a")

    assert seen == [(0, 0), (1, 1), (3, 2), (6, 3), (9, 4)]


@virtual
async def test_keys_that_failed_are_known_until_they_succeed_or_run_again() -> None:
    queue = Queue[str](ExponentialBackoff(1.0, 3.0))
    queue.add("a")
    queue.add("timer", after=5)
    await queue.get()
    queue.add_failed("a")
    queue.done("a")
    assert queue.failed() == {"a"}
    await queue.get()
    assert queue.failed() == set()
    queue.add_failed("a")
    queue.forget("a")
    assert queue.failed() == set()


@virtual
async def test_the_back_off_deadline_survives_unrelated_events() -> None:
    queue = Queue[str](ExponentialBackoff(10.0, 1000.0))
    queue.add("a")
    await queue.get()
    queue.add_failed("a")  # until 10
    queue.done("a")
    seen = list[tuple[float, int]]()
    for _ in range(3):
        await asyncio.sleep(2)
        queue.add("a")
        work = await queue.get()
        seen.append((now(), work.attempt))
        queue.add_failed("a")
        queue.done("a")

    work = await queue.get()
    seen.append((now(), work.attempt))
    queue.add_failed("a")
    queue.done("a")
    await queue.get()

    assert seen == [(2, 1), (4, 1), (6, 1), (10, 1)]
    assert now() == 30
    assert queue.statistics.retries == 2


@virtual
async def test_a_run_that_fails_after_the_deadline_counts_as_one_more_attempt() -> None:
    queue = Queue[str](ExponentialBackoff(10.0, 1000.0))
    queue.add("a")
    await queue.get()
    queue.add_failed("a")  # until 10
    queue.done("a")
    await asyncio.sleep(5)
    queue.add("a")
    await queue.get()
    await asyncio.sleep(7)  # it is 12
    queue.add_failed("a")
    queue.done("a")

    work = await queue.get()

    assert (now(), work.attempt) == (32, 2)


@virtual
async def test_a_retry_waits_for_a_run_that_neither_failed_nor_succeeded() -> None:
    queue = Queue[str](ExponentialBackoff(10.0, 1000.0))
    queue.add_failed("a")
    queue.add("a")
    await take(queue)

    await queue.get()

    assert now() == 10


@virtual
async def test_forget_cancels_a_pending_retry() -> None:
    queue = Queue[str](ExponentialBackoff(10.0, 1000.0))
    queue.add_failed("waits")
    queue.add_failed("runs")
    queue.add("runs")
    await queue.get()

    queue.forget("waits")
    queue.forget("runs")
    queue.done("runs")
    await asyncio.sleep(100)

    assert len(queue) == 0
    assert queue.delayed() == {}
    queue.add_failed("waits")
    assert queue.delayed() == {"waits": 110}


@virtual
async def test_forget_cancels_a_retry_that_is_due_but_not_handed_out() -> None:
    queue = Queue[str](ExponentialBackoff(10.0, 1000.0))
    queue.add_failed("a")
    queue.add_failed("b")
    await asyncio.sleep(11)
    assert len(queue) == 2

    queue.forget("a")

    assert await take_all(queue) == ["b"]


@virtual
async def test_forget_cancels_nothing_that_was_added() -> None:
    queue = Queue[str](ExponentialBackoff(10.0, 1000.0))
    for key, after in (("now", 0.0), ("later", 3.0), ("much later", 50.0)):
        queue.add_failed(key)
        queue.add(key, after=after)
        queue.forget(key)

    assert [(await queue.get()).key, now()] == ["now", 0]
    assert [(await queue.get()).key, now()] == ["later", 3]
    assert [(await queue.get()).key, now()] == ["much later", 50]


@virtual
async def test_a_priority_holds_for_one_run_only() -> None:
    queue = Queue[str]()
    queue.add("a", priority=10)
    assert (await queue.get()).priority == 10
    queue.add("a")
    queue.done("a")

    assert (await queue.get()).priority == 0


@virtual
async def test_a_retry_keeps_the_priority_of_the_failed_run() -> None:
    queue = Queue[str]()
    queue.add("a", priority=10)
    await queue.get()
    queue.add_failed("a")
    queue.done("a")

    assert (await queue.get()).priority == 10


@virtual
async def test_a_retry_may_have_another_priority() -> None:
    queue = Queue[str]()
    queue.add("a", priority=10)
    await queue.get()
    queue.add_failed("a", priority=-5)
    queue.done("a")

    assert (await queue.get()).priority == -5


@virtual
async def test_a_debounced_key_comes_when_it_has_been_quiet() -> None:
    queue = Queue[str](debounce=1.0)
    for _ in range(5):
        queue.add("a")
        await asyncio.sleep(0.5)

    work = await queue.get()

    assert (now(), work.waited) == (3.0, 0.0)


@virtual
async def test_a_hot_key_cannot_starve_by_debouncing() -> None:
    queue = Queue[str](debounce=1.0, debounce_limit=4.0)
    seen = list[float]()
    for _ in range(24):
        queue.add("a")
        await asyncio.sleep(0.5)
        if len(queue):
            seen.append(now() - (await queue.get()).waited)
            queue.done("a")

    assert seen == [4.0, 8.0, 12.0]


@virtual
async def test_the_limit_of_debouncing_is_ten_times_as_long_unless_given() -> None:
    queue = Queue[str](debounce=1.0)
    while not len(queue):
        queue.add("a")
        await asyncio.sleep(0.5)

    assert now() == 10.0


@virtual
async def test_delays_and_retries_are_not_debounced() -> None:
    queue = Queue[str](ExponentialBackoff(2.0, 10.0), debounce=5.0)
    queue.add_failed("retry")
    queue.add("delay", after=1.0)

    assert [(await queue.get()).key, now()] == ["delay", 1.0]
    assert [(await queue.get()).key, now()] == ["retry", 2.0]


def test_debouncing_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="not debounce=-1 and"):
        Queue[str](debounce=-1.0)
    with pytest.raises(ValueError, match="not debounce=2 and debounce_limit=1"):
        Queue[str](debounce=2.0, debounce_limit=1.0)


@virtual
async def test_a_retry_gives_its_reason_only_to_the_run_it_caused() -> None:
    queue = Queue[str](ExponentialBackoff(10.0, 1000.0))
    event, retry = Reason("update", "Pod", None), Reason("retry", "after an error", None)
    queue.add_failed("a", reason=retry)
    queue.add("a", reason=event)

    early = await queue.get()
    queue.done("a")
    late = await queue.get()

    assert (early.reasons, late.reasons) == ((event,), (retry,))


def test_what_became_due_beside_a_retry_is_still_due_after_close_and_forget() -> None:
    async def main() -> int:
        queue: Queue[str] = Queue()
        queue.add_failed("a")
        queue.add("a", after=2.0)
        await asyncio.sleep(5)
        queue.close()
        queue.forget("a")
        return len(queue)

    assert run_virtual(main) == 1


@virtual
async def test_everything_that_is_added_for_later_counts_as_a_retry() -> None:
    """As the help text of the metric has it: rate-limited requeues, and explicit delays."""
    queue = Queue[str]()
    queue.add("a")
    queue.add("b", after=10.0)
    queue.add("b", after=5.0)
    queue.add_failed("c")
    queue.add("a", after=1.0)  # it is due already, and was added for later even so
    assert queue.statistics.retries == 4
