from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Coroutine
from unittest.mock import patch

import pytest

from kubewright.api.kinds import ObjectKey
from kubewright.controller.queue import Queue, QueueClosed, Reason
from kubewright.controller.ratelimit import ExponentialBackoff
from kubewright.testing.virtual_time import run_virtual


def virtual(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Run a test in virtual time, from 0."""

    @functools.wraps(test)
    def run() -> None:
        run_virtual(test)

    # pytest must not see the coroutine function behind it.
    del run.__dict__["__wrapped__"]
    return run


def now() -> float:
    return asyncio.get_running_loop().time()


async def take(queue: Queue[str]) -> str:
    """Hand out the next key and be done with it at once."""
    work = await queue.get()
    queue.done(work.key)
    return work.key


async def take_all(queue: Queue[str]) -> list[str]:
    return [await take(queue) for _ in range(len(queue))]


@virtual
async def test_a_key_is_in_the_queue_once() -> None:
    queue = Queue[str]()
    for key in ("a", "b", "a", "a", "b"):
        queue.add(key)

    assert len(queue) == 2
    assert await take_all(queue) == ["a", "b"]
    assert len(queue) == 0


@virtual
async def test_an_add_while_waiting_keeps_the_larger_priority() -> None:
    queue = Queue[str]()
    for key, priority in (("a", 0), ("b", 5), ("a", 9), ("a", 1)):
        queue.add(key, priority=priority)

    first, second = await queue.get(), await queue.get()

    assert [(first.key, first.priority), (second.key, second.priority)] == [("a", 9), ("b", 5)]


@virtual
async def test_an_add_while_waiting_keeps_the_earlier_time() -> None:
    queue = Queue[str]()
    queue.add("a", after=10)
    queue.add("a", after=4)
    queue.add("a", after=20)

    await queue.get()

    assert now() == 4
    queue.done("a")
    assert queue.delayed() == {}


@virtual
async def test_an_add_without_delay_brings_a_delayed_key_forward() -> None:
    queue = Queue[str]()
    queue.add("a", after=10, priority=3)
    queue.add("a")

    assert (await queue.get()).priority == 3
    assert now() == 0
    queue.done("a")
    await asyncio.sleep(100)
    assert len(queue) == 0


@virtual
async def test_a_key_is_never_handed_out_twice_at_once() -> None:
    queue = Queue[str]()
    queue.add("a")
    await queue.get()

    queue.add("a")
    queue.add("a", priority=100)
    queue.add("a", after=1)
    await asyncio.sleep(2)

    assert len(queue) == 0
    assert list(queue.running()) == ["a"]


@virtual
async def test_an_add_while_running_makes_the_key_come_once_more_after_done() -> None:
    queue = Queue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a", priority=2)

    queue.done("a")

    assert (await queue.get()).priority == 2
    queue.done("a")
    assert len(queue) == 0


@virtual
async def test_a_delayed_add_while_running_comes_at_its_time() -> None:
    queue = Queue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a", after=5)
    await asyncio.sleep(1)
    queue.done("a")

    await queue.get()

    assert now() == 5


@virtual
async def test_a_delay_that_ends_while_the_key_runs_makes_it_come_after_done() -> None:
    queue = Queue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a", after=5)
    await asyncio.sleep(8)
    queue.done("a")

    work = await queue.get()

    assert (now(), work.waited) == (8, 3)


@virtual
async def test_within_a_priority_the_first_come_is_the_first_served() -> None:
    queue = Queue[str]()
    for key in "dacb":
        queue.add(key)
    for key in "cd":
        queue.add(key)

    assert await take_all(queue) == ["d", "a", "c", "b"]


@virtual
async def test_a_key_that_is_raised_comes_after_those_that_were_there_before() -> None:
    queue = Queue[str]()
    queue.add("a")
    queue.add("b", priority=1)
    queue.add("a", priority=1)

    assert await take_all(queue) == ["b", "a"]


@virtual
async def test_the_larger_priority_comes_first() -> None:
    queue = Queue[str]()
    for key, priority in (("low", -100), ("normal", 0), ("high", 7)):
        queue.add(key, priority=priority)

    assert await take_all(queue) == ["high", "normal", "low"]


@virtual
async def test_lower_priorities_are_not_starved() -> None:
    """One pick in 16 goes to the lower priority whose first key has waited longest."""
    queue = Queue[str]()
    queue.add("old", priority=-100)
    await asyncio.sleep(1)
    queue.add("young", priority=-50)
    taken = list[str]()
    for number in range(40):
        queue.add(f"high {number}")
        queue.add(f"high {number} too")
        taken.append(await take(queue))

    assert [place for place, key in enumerate(taken) if key in ("old", "young")] == [15, 31]
    assert [taken[15], taken[31]] == ["old", "young"]


@virtual
async def test_many_distinct_priorities_are_served_in_order_and_leave_nothing_behind() -> None:
    queue = Queue[str]()
    for round_ in range(10):
        for priority in range(10):
            queue.add(f"{priority}", priority=100 * round_ + priority)
        assert await take_all(queue) == [str(priority) for priority in reversed(range(10))]

    assert sum(queue.depth().values()) == 0
    assert len(queue.depth()) <= 26


@virtual
async def test_all_delays_share_one_timer_of_the_loop() -> None:
    queue = Queue[int]()
    loop = asyncio.get_running_loop()
    handles = list[asyncio.TimerHandle]()
    call_at = loop.call_at

    def counting(*arguments: object) -> asyncio.TimerHandle:
        handles.append(call_at(*arguments))  # type: ignore[arg-type]  # passed on as they came
        return handles[-1]

    with patch.object(loop, "call_at", counting):
        for number in range(100):
            queue.add(number, after=10 + number)
        queue.add(1000, after=5)

    assert len(handles) == 2
    assert [handle.cancelled() for handle in handles] == [True, False]
    assert [(await queue.get()).key for _ in range(101)] == [1000, *range(100)]
    assert now() == 109


@virtual
async def test_a_key_that_is_brought_forward_again_and_again_leaves_nothing_in_the_heap() -> None:
    """A reconciler that asks for an hour's delay and is disturbed every second must not fill the memory."""
    queue = Queue[str]()
    for _ in range(1000):
        queue.add("a")
        queue.add("b")
        for _ in range(2):
            key = (await queue.get()).key
            queue.add(key, after=3600)
            queue.done(key)

    assert len(vars(queue)["_heap"]) <= 4
    assert len(queue.delayed()) == 2


@virtual
async def test_the_timer_ends_with_the_last_delay() -> None:
    queue = Queue[str]()
    queue.add("a", after=3600)
    queue.add("a")
    await take(queue)

    assert vars(queue)["_timer"] is None


@virtual
async def test_a_failed_key_comes_again_after_ever_longer_delays() -> None:
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
async def test_a_retry_may_say_another_priority() -> None:
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
async def test_get_does_not_suspend_when_something_is_ready() -> None:
    queue = Queue[str]()
    queue.add("a")

    with pytest.raises(StopIteration) as returned:
        queue.get().send(None)

    assert returned.value.value.key == "a"


@virtual
async def test_exactly_one_getter_is_woken_for_each_available_key() -> None:
    queue = Queue[str]()
    getters = [asyncio.create_task(take(queue)) for _ in range(10)]
    await asyncio.sleep(1)

    with patch.object(queue, "_wake", wraps=vars(Queue)["_wake"].__get__(queue)) as wake:
        for key in "abca":
            queue.add(key)
        queue.add("a", priority=5)
    await asyncio.sleep(1)

    assert wake.call_count == 3
    assert [getter.result() for getter in getters if getter.done()] == ["a", "b", "c"]
    queue.close()
    ended = await asyncio.gather(*getters, return_exceptions=True)
    assert sum(isinstance(result, QueueClosed) for result in ended) == 7


@virtual
async def test_a_getter_that_is_cancelled_after_it_was_woken_passes_the_key_on() -> None:
    queue = Queue[str]()
    first, second = asyncio.create_task(take(queue)), asyncio.create_task(take(queue))
    await asyncio.sleep(1)

    queue.add("a")
    first.cancel()

    assert await second == "a"
    assert first.cancelled()


@virtual
async def test_a_getter_that_is_cancelled_while_it_waits_is_forgotten() -> None:
    queue = Queue[str]()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await queue.get()
    last = asyncio.create_task(take(queue))
    cancelled = asyncio.create_task(take(queue))
    await asyncio.sleep(1)
    cancelled.cancel()
    queue.add("a")

    assert await last == "a"
    assert len(vars(queue)["_getters"]) == 0


@virtual
async def test_a_closed_queue_takes_nothing_in_and_hands_out_what_is_due() -> None:
    queue = Queue[str]()
    queue.add("a")
    queue.add("later", after=1)
    queue.add_failed("failed")

    queue.close()
    queue.close()
    queue.add("b")
    queue.add_failed("c")

    assert await take(queue) == "a"
    with pytest.raises(QueueClosed):
        await queue.get()
    await asyncio.sleep(2000)
    assert (len(queue), queue.delayed()) == (0, {})


@virtual
async def test_close_wakes_all_getters_and_lets_running_keys_finish() -> None:
    queue = Queue[str]()
    queue.add("a")
    await queue.get()
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(1)

    queue.close()
    ended = await asyncio.gather(*getters, return_exceptions=True)

    assert [type(result) for result in ended] == [QueueClosed] * 3
    queue.add_failed("a")
    queue.forget("a")
    queue.done("a")
    assert (len(queue), queue.running()) == (0, {})


@virtual
async def test_close_drops_the_retries_of_keys_that_run_or_are_due() -> None:
    queue = Queue[str](ExponentialBackoff(10.0, 1000.0))
    for key in ("runs", "is due"):
        queue.add_failed(key)
        queue.add(key)
    await queue.get()

    queue.close()
    queue.done("runs")

    assert await take(queue) == "is due"
    assert queue.delayed() == {}
    await asyncio.sleep(100)
    assert len(queue) == 0


@virtual
async def test_a_key_that_was_added_while_it_ran_is_there_after_done_even_when_closed() -> None:
    queue = Queue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a", after=5)
    queue.close()
    with pytest.raises(QueueClosed):
        await queue.get()

    queue.done("a")

    assert await take(queue) == "a"
    with pytest.raises(QueueClosed):
        await queue.get()


@virtual
async def test_done_without_get_is_told() -> None:
    queue = Queue[str]()
    queue.add("a")

    with pytest.raises(ValueError, match=r"done\('a'\) without get"):
        queue.done("a")


@virtual
async def test_work_tells_how_long_it_waited_since_it_was_due() -> None:
    queue = Queue[str]()
    queue.add("a", after=3)
    await asyncio.sleep(5)

    assert (await queue.get()).waited == 2


@virtual
async def test_reasons_are_kept_once_each_and_five_at_most() -> None:
    queue = Queue[str]()
    pods = [Reason("update", "Pod", ObjectKey("shop", f"web-{number}")) for number in range(8)]
    for reason in (*pods, *pods[:2], Reason("update", "Pod", ObjectKey("shop", "web-0"))):
        queue.add("a", reason=reason)
    queue.add("b")

    work = await queue.get()

    assert work.reasons == tuple(pods[:5])
    assert work.more_reasons == 3
    assert (await queue.get()).reasons == ()
    queue.add("a", reason=pods[7])
    queue.done("a")
    work = await queue.get()
    assert (work.reasons, work.more_reasons) == ((pods[7],), 0)


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


@virtual
async def test_the_depth_is_told_by_priority() -> None:
    queue = Queue[str]()
    assert queue.depth() == {0: 0}
    for key, priority in (("a", 0), ("b", 0), ("c", -100), ("d", 5)):
        queue.add(key, priority=priority)
    queue.add("later", after=1)
    await queue.get()

    assert queue.depth() == {5: 0, 0: 2, -100: 1}
    assert len(queue) == 3


@virtual
async def test_running_and_delayed_keys_are_told_with_their_times() -> None:
    queue = Queue[str](ExponentialBackoff(10.0, 1000.0), debounce=2.0)
    await asyncio.sleep(1)
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b", after=20)
    queue.add_failed("c")
    await asyncio.sleep(1)
    queue.add("a")

    assert queue.running() == {"a": 3}
    assert queue.delayed() == {"a": 6, "b": 23, "c": 13}


@virtual
async def test_statistics_count_adds_retries_and_durations() -> None:
    queue = Queue[str](ExponentialBackoff(1.0, 10.0))
    for key in ("a", "a", "b"):
        queue.add(key)
    await asyncio.sleep(2)
    await queue.get()
    await asyncio.sleep(3)
    await queue.get()
    await asyncio.sleep(4)
    statistics = queue.statistics

    assert (statistics.adds, statistics.retries) == (2, 0)
    assert statistics.queue_duration.sum == 2 + 5
    assert (statistics.unfinished_seconds(), statistics.longest_running_seconds()) == (7 + 4, 7)
    queue.add_failed("a")
    queue.done("a")
    queue.done("b")
    assert statistics.work_duration.sum == 7 + 4
    assert sum(statistics.work_duration.counts) == 2
    assert (statistics.adds, statistics.retries) == (2, 1)
    assert (statistics.unfinished_seconds(), statistics.longest_running_seconds()) == (0, 0)
    await queue.get()
    assert statistics.adds == 3


@virtual
async def test_a_snapshot_is_plain_data() -> None:
    queue = Queue[ObjectKey](ExponentialBackoff(10.0, 1000.0))
    web = ObjectKey("shop", "web")
    queue.add(web)
    await queue.get()
    queue.add(web)
    queue.add(ObjectKey("shop", "db"), priority=3, reason=Reason("update", "Pod", ObjectKey("shop", "db-0")))
    queue.add(ObjectKey("", "node"), reason=Reason("poll", "hardware", None))
    queue.add_failed(ObjectKey("shop", "mail"))
    await asyncio.sleep(2)

    snapshot = json.loads(json.dumps(queue.snapshot()))

    assert snapshot == {
        "closed": False,
        "counts": {"due": 2, "running": 1, "delayed": 1},
        "due": [
            {
                "key": "shop/db",
                "priority": 3,
                "waited_seconds": 2.0,
                "reasons": ["update Pod shop/db-0"],
                "more_reasons": 0,
            },
            {"key": "node", "priority": 0, "waited_seconds": 2.0, "reasons": ["poll hardware"], "more_reasons": 0},
        ],
        "running": [{"key": "shop/web", "seconds": 2.0, "comes_again": True}],
        "delayed": [{"key": "shop/mail", "in_seconds": 8.0, "failures": 1}],
    }


@virtual
async def test_a_snapshot_of_a_long_queue_is_short() -> None:
    queue = Queue[str]()
    for number in range(1000):
        queue.add(f"{number}")
        queue.add(f"later {number}", after=5)

    snapshot = json.loads(json.dumps(queue.snapshot(limit=2)))

    assert snapshot["counts"] == {"due": 1000, "running": 0, "delayed": 1000}
    assert [item["key"] for item in snapshot["due"]] == ["0", "1"]
    assert len(snapshot["delayed"]) == 2


async def test_a_delay_passes_on_an_ordinary_event_loop_too() -> None:
    queue = Queue[str]()
    queue.add("b", after=0.0011)
    queue.add("a", after=0.0004)

    async with asyncio.timeout(10):
        assert [(await queue.get()).key for _ in range(2)] == ["a", "b"]


def test_a_delay_passes_on_an_event_loop_that_rounds_to_milliseconds() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> list[str]:
        queue = Queue[str]()
        queue.add("b", after=0.0011)
        queue.add("a", after=0.0004)
        async with asyncio.timeout(10):
            return [(await queue.get()).key for _ in range(2)]

    assert uvloop.run(main()) == ["a", "b"]


def test_a_queue_may_be_made_before_its_event_loop() -> None:
    queue = Queue[str]()
    assert (len(queue), queue.depth(), queue.running(), queue.delayed()) == (0, {0: 0}, {}, {})
    assert (queue.statistics.unfinished_seconds(), queue.statistics.longest_running_seconds()) == (0, 0)

    async def main() -> str:
        queue.add("a", after=1)
        return (await queue.get()).key

    assert run_virtual(main) == "a"
