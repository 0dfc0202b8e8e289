"""Sources that watch nothing, in virtual time: channels, polls and functions."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Hashable, Mapping
from itertools import pairwise

import pytest
from tests.controller.feeding import feeding, keys, not_ready_reason, taken
from tests.controller.scripted import LONG, Reconciler, cancelled_task, now, running, succeed

from kubewright.api.errors import KubernetesError
from kubewright.controller.controllers import Controller
from kubewright.controller.queue import Queue, Reason
from kubewright.controller.source import INITIAL_PRIORITY, Channel, Function, Polled
from kubewright.testing.virtual_time import run_virtual, virtual

WAIT = 30.0  # for what happens in other threads, however busy the machine is

# Channel


@virtual
async def test_keys_sent_before_the_start_are_kept() -> None:
    channel = Channel[str]("orders")
    queue = Queue[str]()
    channel.send("a")
    channel.send("b", priority=7)
    async with feeding(channel, queue):
        await channel.synced()
        assert not_ready_reason(channel) is None
        sent = (Reason("orders", "sent", None),)
        assert await taken(queue) == [("b", 7, sent), ("a", 0, sent)]
        channel.send("c", priority=3)
        assert await taken(queue) == [("c", 3, sent)]


@virtual
async def test_keys_sent_after_the_end_are_kept_for_the_next_start() -> None:
    channel = Channel[str]()
    first, second = Queue[str](), Queue[str]()
    async with feeding(channel, first):
        channel.send("a")
    channel.send("b")
    async with feeding(channel, second):
        channel.send("c")
    assert await keys(first) == ["a"]
    assert await keys(second) == ["b", "c"]


async def test_keys_may_be_sent_from_any_thread() -> None:
    """The queue belongs to one event loop: a key that another thread puts there wakes no worker, or breaks it."""
    channel, queue = Channel[int](), Queue[int]()
    numbers = range(4)
    begin = threading.Barrier(len(numbers) + 1)

    def send(number: int) -> None:
        channel.send(number)  # before the start
        begin.wait(WAIT)
        for each in range(100):
            channel.send(number + 10 * each)

    threads = [asyncio.create_task(asyncio.to_thread(send, number)) for number in numbers]
    await asyncio.to_thread(begin.wait, WAIT)
    task = asyncio.create_task(channel.run(queue))
    async with asyncio.timeout(WAIT):
        await asyncio.gather(*threads)
        found: set[int] = set()
        while len(found) < 400:
            found.add((await queue.get()).key)
    task.cancel()
    await asyncio.wait((task,))
    assert found == {number + 10 * each for number in numbers for each in range(100)}


async def test_a_key_sent_from_a_thread_is_put_into_the_queue_by_its_loop() -> None:
    adding: list[int] = []

    class Noting(Queue[str]):
        def add(self, key: str, *, priority: int = 0, after: float = 0.0, reason: Reason | None = None) -> None:
            adding.append(threading.get_ident())
            super().add(key, priority=priority, after=after, reason=reason)

    channel, queue = Channel[str](), Noting()
    async with feeding(channel, queue):
        await asyncio.to_thread(channel.send, "a", priority=7)
        async with asyncio.timeout(WAIT):
            work = await queue.get()
    assert (work.key, work.priority) == ("a", 7)
    assert adding == [threading.get_ident()]


# Polled


class System:
    """Something without a watch."""

    def __init__(self, **values: Hashable) -> None:
        self.values = values
        self.error: Exception | None = None
        self.polls: list[float] = []

    async def fetch(self) -> Mapping[str, Hashable]:
        self.polls.append(asyncio.get_running_loop().time())
        if self.error is not None:
            raise self.error
        return self.values  # always the same mapping, changed in place


@virtual
async def test_keys_whose_value_appears_changes_or_goes_are_enqueued() -> None:
    system = System(a=1, b=1, c=1)
    queue = Queue[str]()
    polled = Polled(system.fetch, every=10, name="buckets")
    assert not_ready_reason(polled) == "buckets has not been polled yet"
    async with feeding(polled, queue):
        await polled.synced()
        assert not_ready_reason(polled) is None
        added = (Reason("buckets", "added", None),)
        assert await taken(queue) == [(key, INITIAL_PRIORITY, added) for key in "abc"]
        await asyncio.sleep(15)
        assert await taken(queue) == []
        system.values.update(b=2, d=1)
        del system.values["c"]
        await asyncio.sleep(10)
        found = {key: (priority, reasons[0].what) for key, priority, reasons in await taken(queue)}
        assert found == {"b": (0, "updated"), "c": (0, "deleted"), "d": (0, "added")}
        await asyncio.sleep(10)
        assert await taken(queue) == []
    assert system.polls == [0, 10, 20, 30]


@virtual
async def test_a_poll_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    system = System(a=1, b=1)
    queue = Queue[str]()
    polled = Polled(system.fetch, every=10, name="buckets")
    async with feeding(polled, queue):
        await asyncio.sleep(5)
        assert await keys(queue) == ["a", "b"]
        system.error = ConnectionError("no route")
        await asyncio.sleep(10)
        assert not_ready_reason(polled) == "buckets: no route"
        system.error = TimeoutError()
        await asyncio.sleep(10)
        assert not_ready_reason(polled) == "buckets: TimeoutError"
        assert await keys(queue) == []
        system.error = None
        system.values["b"] = 2
        await asyncio.sleep(10)
        assert not_ready_reason(polled) is None
        assert await keys(queue) == ["b"]
    assert [record.getMessage() for record in caplog.records] == [
        "polling buckets failed: no route",
        "polling buckets failed: TimeoutError",
    ]


@virtual
async def test_a_first_poll_that_fails_is_not_the_initial_list() -> None:
    system = System(a=1)
    system.error = ConnectionError("no route")
    queue = Queue[str]()
    polled = Polled(system.fetch, every=10)
    async with feeding(polled, queue):
        synced = asyncio.create_task(polled.synced())
        await asyncio.sleep(5)
        assert not synced.done()
        system.error = None
        await synced
        assert [priority for _, priority, _ in await taken(queue)] == [INITIAL_PRIORITY]


@virtual
async def test_a_result_that_is_no_mapping_is_a_failed_poll(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[object] = [None, {"a": 1}]

    async def fetch() -> Mapping[str, Hashable]:
        return answers.pop(0)  # type: ignore[return-value]  # that is what is tested

    queue = Queue[str]()
    async with feeding(Polled(fetch, every=10), queue):
        await asyncio.sleep(15)
        assert await keys(queue) == ["a"]
        answers.append({})
        await asyncio.sleep(10)
        assert await keys(queue) == ["a"]
        answers.append({})
    assert "polling poll failed" in caplog.text


@virtual
async def test_a_poll_that_takes_too_long_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    answers = [asyncio.Event(), asyncio.Event()]
    answers[1].set()

    async def fetch() -> Mapping[str, Hashable]:
        await answers.pop(0).wait()
        return {"a": 1}

    queue = Queue[str]()
    polled = Polled(fetch, every=100, timeout=20, name="buckets")
    async with feeding(polled, queue):
        await asyncio.sleep(30)
        assert not_ready_reason(polled) == "buckets: no answer within 20 s"
        await polled.synced()
        assert await keys(queue) == ["a"]
    assert "polling buckets failed: no answer within 20 s" in caplog.text


@virtual
async def test_a_restarted_poll_is_synced_by_its_own_result() -> None:
    system = System(a=1)
    queue = Queue[str]()
    polled = Polled(system.fetch, every=10)
    for _ in range(2):
        async with feeding(polled, queue):
            await polled.synced()
            assert [(key, priority) for key, priority, _ in await taken(queue)] == [("a", INITIAL_PRIORITY)]
        system.error = None
    system.error = ConnectionError("no route")
    async with feeding(polled, queue):
        synced = asyncio.create_task(polled.synced())
        await asyncio.sleep(100)
        assert not synced.done()
        synced.cancel()


@pytest.mark.parametrize("every", [0, -1])
def test_a_poll_needs_an_interval(every: float) -> None:
    with pytest.raises(ValueError, match=f"every={every}: expected a number of seconds above 0"):
        Polled(System().fetch, every=every)


# Function


@virtual
async def test_a_function_adds_keys_while_it_runs() -> None:
    async def ticks(add: Callable[[str], None]) -> None:
        for name in "abc":
            add(name)
            await asyncio.sleep(10)

    queue = Queue[str]()
    source = Function(ticks)
    await source.synced()
    assert not_ready_reason(source) is None
    async with feeding(source, queue):
        await asyncio.sleep(25)
    assert await taken(queue) == [(name, 0, (Reason("ticks", "sent", None),)) for name in "abc"]


@virtual
async def test_a_function_that_fails_is_restarted_with_backoff(caplog: pytest.LogCaptureFixture) -> None:
    starts: list[float] = []

    async def feed(add: Callable[[str], None]) -> None:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) == 1:
            raise KubernetesError("the server is away")
        if len(starts) < 10:
            raise ValueError("no")
        add("a")
        await asyncio.Event().wait()

    queue = Queue[str]()
    async with feeding(Function(feed, name="events"), queue):
        await asyncio.sleep(3600)
        assert await taken(queue) == [("a", 0, (Reason("events", "sent", None),))]
    assert [after - before for before, after in pairwise(starts)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert caplog.records[0].getMessage() == "the source events failed: the server is away; starting it again in 1 s"
    assert not caplog.records[0].exc_info
    assert caplog.records[1].exc_info


@virtual
async def test_a_key_resets_the_back_off_of_a_function() -> None:
    """A stream that breaks once a day must not be started again after a minute because it did so six times before."""
    starts: list[float] = []

    async def feed(add: Callable[[str], None]) -> None:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) % 3 == 0:
            add("a")
        raise ConnectionError("the stream broke")

    async with feeding(Function(feed), Queue[str]()):
        await asyncio.sleep(15)
    assert [after - before for before, after in pairwise(starts)] == [1, 2, 1, 2, 4, 1, 2]


@virtual
async def test_a_function_that_ends_is_started_again_and_that_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    starts: list[float] = []

    async def feed(add: Callable[[str], None]) -> None:
        starts.append(asyncio.get_running_loop().time())
        add(f"{len(starts)}")
        await asyncio.sleep(10)

    queue = Queue[str]()
    async with feeding(Function(feed, name="events"), queue):
        await asyncio.sleep(30)
    assert starts == [0, 11, 22]
    assert await keys(queue) == ["1", "2", "3"]
    assert [record.getMessage() for record in caplog.records] == [
        "the source events ended; starting it again in 1 s"
    ] * 2


@virtual
async def test_a_function_whose_task_is_cancelled_is_restarted(caplog: pytest.LogCaptureFixture) -> None:
    starts = 0

    async def feed(add: Callable[[str], None]) -> None:
        nonlocal starts
        starts += 1
        add(str(starts))
        await cancelled_task()

    queue = Queue[str]()
    async with feeding(Function(feed, name="orders"), queue):
        await asyncio.sleep(2.5)
        assert await keys(queue) == ["1", "2", "3"]
    assert "the source orders failed: something that it waited for was cancelled" in caplog.messages[0]


@virtual
async def test_a_poll_whose_task_is_cancelled_is_a_poll_that_failed() -> None:
    polls = 0

    async def fetch() -> Mapping[str, Hashable]:
        nonlocal polls
        polls += 1
        if polls == 2:
            await cancelled_task()
        return {"a": polls}

    queue = Queue[str]()
    source = Polled(fetch, every=10)
    async with feeding(source, queue):
        await asyncio.sleep(5)
        assert await keys(queue) == ["a"]
        await asyncio.sleep(10)
        assert (await keys(queue), not_ready_reason(source)) == ([], "poll: something that it waited for was cancelled")
        await asyncio.sleep(10)
        assert (await keys(queue), not_ready_reason(source)) == (["a"], None)


def test_a_function_without_a_name_has_one() -> None:
    async def scenario() -> None:
        async def feed(add: Callable[[str], None]) -> None:
            add("a")

        queue = Queue[str]()
        async with feeding(Function(functools.partial(feed)), queue):
            assert await taken(queue) == [("a", 0, (Reason("function", "sent", None),))]

    run_virtual(scenario)


# On a standby


@virtual
async def test_a_standby_polls_nothing_and_is_still_ready() -> None:
    polls: list[float] = []

    async def fetch() -> dict[str, int]:
        polls.append(now())
        return {f"order-{len(polls)}": 1}

    reconciler = Reconciler(succeed)
    controller = Controller("test", reconciler)
    controller.watch(Polled(fetch, every=60))
    standby = asyncio.create_task(controller.run_sources())
    await asyncio.sleep(LONG)
    assert polls == []
    assert len(controller.queue) == 0
    assert controller.not_ready_reason is None
    for source in controller.sources:
        await source.synced()
    workers = asyncio.create_task(controller.run_workers())
    await asyncio.sleep(1)
    assert polls == [LONG]
    assert reconciler.keys == ["order-1"]
    for task in (standby, workers):
        task.cancel()
    await asyncio.wait((standby, workers))


@virtual
async def test_the_workers_of_a_controller_wait_for_its_first_poll() -> None:
    async def fetch() -> dict[str, int]:
        await asyncio.sleep(30)
        return {"order": 1}

    controller = Controller("test", Reconciler(succeed))
    controller.watch(Polled(fetch, every=60))
    async with running(controller):
        await asyncio.sleep(1)
        assert controller.not_ready_reason == "test: poll has not been polled yet"
        await asyncio.sleep(30)
        assert controller.not_ready_reason is None


@virtual
async def test_a_standby_runs_no_feed() -> None:
    fed: list[float] = []

    async def feed(add: Callable[[str], None]) -> None:
        fed.append(now())
        add("a")
        await asyncio.Event().wait()

    reconciler = Reconciler(succeed)
    controller = Controller("test", reconciler)
    controller.watch(Function(feed))
    standby = asyncio.create_task(controller.run_sources())
    await asyncio.sleep(LONG)
    assert fed == []
    workers = asyncio.create_task(controller.run_workers())
    await asyncio.sleep(1)
    assert fed == [LONG]
    assert reconciler.keys == ["a"]
    for task in (standby, workers):
        task.cancel()
    await asyncio.wait((standby, workers))
