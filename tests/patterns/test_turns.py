from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from kubewright import Request
from kubewright.controller import Queue
from kubewright.patterns.turns import Turns

OLD, NEW, NEWEST = (Request("default", name) for name in ("old", "new", "newest"))
KEY = "bob"


def order(second: int) -> tuple[datetime, str]:
    return datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC), "uid"


async def woken(turns: Turns) -> list[Request]:
    """What was sent so far."""
    queue: Queue[Request] = Queue()
    task = asyncio.create_task(turns.woken.run(queue))
    await asyncio.sleep(0)
    found = []
    while len(queue):
        work = await queue.get()
        found.append(work.key)
        queue.done(work.key)
    task.cancel()
    await asyncio.wait([task])
    return found


async def test_a_key_is_taken_by_one_request_at_a_time() -> None:
    turns = Turns()
    assert turns.take(OLD, KEY)
    assert not turns.take(NEW, KEY)
    assert turns.take(NEW, "eve")
    turns.release(KEY)
    assert turns.take(NEWEST, KEY)


async def test_only_the_oldest_is_woken_when_the_key_is_free() -> None:
    turns = Turns()
    turns.take(Request("default", "running"), KEY)
    for second, request in ((3, NEWEST), (1, OLD), (2, NEW)):
        turns.wait(request, KEY, order(second))
    assert await woken(turns) == []
    turns.release(KEY)
    assert await woken(turns) == [OLD]
    turns.leave(OLD)
    assert await woken(turns) == [NEW]
    turns.leave(NEWEST)
    assert await woken(turns) == []


async def test_what_had_the_key_and_leaves_wakes_the_next() -> None:
    turns = Turns()
    turns.take(OLD, KEY)
    turns.release(KEY)
    turns.wait(NEW, KEY, order(2))
    assert await woken(turns) == []
    turns.leave(OLD)
    assert await woken(turns) == [NEW]


async def test_a_request_that_changes_its_key_waits_for_the_new_one() -> None:
    turns = Turns()
    turns.wait(OLD, KEY, order(1))
    turns.wait(NEW, KEY, order(2))
    turns.wait(OLD, "eve", order(1))
    assert await woken(turns) == [NEW]
    turns.take(NEWEST, "eve")
    turns.release("eve")
    assert await woken(turns) == [OLD]


async def test_nothing_is_kept_of_requests_that_have_left() -> None:
    turns = Turns()
    turns.take(OLD, KEY)
    for _ in range(3):
        turns.wait(NEW, KEY, order(2))
    turns.release(KEY)
    turns.leave(OLD)
    turns.leave(NEW)
    turns.leave(NEWEST)
    assert (turns._taken, turns._keys, turns._waiting) == (set(), {}, {})
