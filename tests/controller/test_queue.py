"""The queue: which key comes when, to whom, and until when."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

import pytest
from tests.controller.taking import now, take, take_all

from kubewright.controller.queue import Queue, QueueClosed
from kubewright.controller.ratelimit import ExponentialBackoff
from kubewright.testing.virtual_time import run_virtual, virtual


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

    assert [position for position, key in enumerate(taken) if key in ("old", "young")] == [15, 31]
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
    """A reconciler that returns an hour's delay and is disturbed every second must not fill the memory."""
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
async def test_a_getter_that_is_cancelled_after_it_was_woken_wakes_another() -> None:
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
async def test_a_closed_queue_accepts_no_keys_and_hands_out_what_is_due() -> None:
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
async def test_close_wakes_all_getters_while_keys_are_ready_too() -> None:
    queue = Queue[str]()
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(1)

    queue.add("a")  # wakes one of them, which has not taken it yet
    queue.close()
    ended, waiting = await asyncio.wait(getters, timeout=1)

    assert not waiting
    assert sorted(type(getter.exception()) is QueueClosed for getter in ended) == [False, True, True]


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
async def test_done_without_get_is_an_error() -> None:
    queue = Queue[str]()
    queue.add("a")

    with pytest.raises(ValueError, match=r"done\('a'\) without get"):
        queue.done("a")


async def test_a_delay_passes_on_an_ordinary_event_loop_too() -> None:
    queue = Queue[str]()
    queue.add("later", after=3600)
    queue.add("soon", after=0.0004)

    async with asyncio.timeout(10):
        assert (await queue.get()).key == "soon"
    queue.close()


def test_a_delay_passes_on_an_event_loop_that_rounds_to_milliseconds() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> str:
        queue = Queue[str]()
        queue.add("later", after=3600)
        queue.add("soon", after=0.0004)
        async with asyncio.timeout(10):
            return (await queue.get()).key

    assert uvloop.run(main()) == "soon"


def test_a_queue_may_be_made_before_its_event_loop() -> None:
    queue = Queue[str]()
    assert (len(queue), queue.depth(), queue.running(), queue.delayed()) == (0, {0: 0}, {}, {})
    assert (queue.statistics.unfinished_seconds(), queue.statistics.longest_running_seconds()) == (0, 0)

    async def main() -> str:
        queue.add("a", after=1)
        return (await queue.get()).key

    assert run_virtual(main) == "a"
