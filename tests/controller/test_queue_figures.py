"""What a queue reports: with the work, as statistics, and as a snapshot."""

from __future__ import annotations

import asyncio
import json

from kubewright.api.kinds import ObjectKey
from kubewright.controller.queue import Queue, Reason
from kubewright.controller.ratelimit import ExponentialBackoff
from kubewright.testing.virtual_time import virtual


@virtual
async def test_work_has_the_time_that_it_waited_since_it_was_due() -> None:
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
async def test_the_depth_is_by_priority() -> None:
    queue = Queue[str]()
    assert queue.depth() == {0: 0}
    for key, priority in (("a", 0), ("b", 0), ("c", -100), ("d", 5)):
        queue.add(key, priority=priority)
    queue.add("later", after=1)
    await queue.get()

    assert queue.depth() == {5: 0, 0: 2, -100: 1}
    assert len(queue) == 3


@virtual
async def test_running_and_delayed_keys_have_their_times() -> None:
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
