from __future__ import annotations

import asyncio

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.storage.store import MemoryStore, StoreChange, Subscription

PODS = "/core/pods/"


def obj() -> JSONObject:
    return {"metadata": {}}


def create(store: MemoryStore, name: str, count: int = 1) -> None:
    for number in range(count):
        store.create(f"{PODS}default/{name}{number}", obj())


def summary(changes: list[StoreChange]) -> list[tuple[str, str, int]]:
    return [(change.kind, change.key.removeprefix(f"{PODS}default/"), change.revision) for change in changes]


async def waiting(subscription: Subscription) -> asyncio.Task[list[StoreChange]]:
    """A reader that has begun to wait."""
    task = asyncio.create_task(subscription.changes())
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_a_watch_replays_what_happened_since_and_goes_on_without_a_gap_or_a_repetition() -> None:
    store = MemoryStore()
    create(store, "before", 2)
    subscription = store.watch(PODS, after=2)

    create(store, "later")
    first = await subscription.changes()
    create(store, "last")
    second = await subscription.changes()

    assert summary(first) == [("put", "before1", 3), ("put", "later0", 4)]
    assert summary(second) == [("put", "last0", 5)]


async def test_a_change_has_the_previous_state() -> None:
    store = MemoryStore()
    subscription = store.watch(PODS, after=1)
    created = store.create(f"{PODS}default/a", obj())
    updated = store.update(f"{PODS}default/a", obj(), expected=created.revision)
    store.delete(f"{PODS}default/a")

    changes = await subscription.changes()

    assert [change.previous for change in changes] == [None, created, updated]
    assert [change.kind for change in changes] == ["put", "put", "delete"]
    assert changes[-1].entry.raw == b'{"metadata":{"resourceVersion":"4"}}'


async def test_one_wake_up_brings_all_changes_of_a_turn() -> None:
    store = MemoryStore()
    reader = await waiting(store.watch(PODS, after=1))

    create(store, "x", 50)

    assert len(await reader) == 50


@pytest.mark.parametrize("prefix", ["", "/", "/core/", PODS, f"{PODS}default/", f"{PODS}default/a0"])
async def test_a_change_reaches_watchers_of_its_key_or_a_directory_above(prefix: str) -> None:
    store = MemoryStore()
    subscription = store.watch(prefix, after=1)

    create(store, "a")

    assert summary(await subscription.changes()) == [("put", "a0", 2)]


@pytest.mark.parametrize("prefix", ["/apps/", "/core/pods/other/", "/core/pods/default/a", "/core/pods/def"])
async def test_a_change_does_not_reach_others(prefix: str) -> None:
    store = MemoryStore()
    create(store, "a")
    reader = await waiting(store.watch(prefix, after=1))

    create(store, "b")
    await asyncio.sleep(0)

    assert not reader.done()
    reader.cancel()


async def test_all_watchers_see_the_same_order() -> None:
    store = MemoryStore()
    subscriptions = [store.watch(PODS if number % 2 else f"{PODS}default/", after=1) for number in range(200)]
    readers = [asyncio.create_task(read(subscription, 30)) for subscription in subscriptions]
    for number in range(30):
        create(store, f"x{number}-")
        if number % 7 == 0:
            await asyncio.sleep(0)

    orders = await asyncio.gather(*readers)

    assert orders == [list(range(2, 32))] * 200


async def read(subscription: Subscription, count: int) -> list[int]:
    seen: list[int] = []
    async for change in subscription:
        seen.append(change.revision)
        if len(seen) == count:
            break
    return seen


async def test_a_slow_watcher_is_closed_and_others_are_not_disturbed() -> None:
    store = MemoryStore(buffer=10)
    slow, quick = store.watch(PODS, after=1), store.watch(PODS, after=1)

    create(store, "a", 10)
    assert len(await quick.changes()) == 10
    create(store, "b")

    assert (slow.closed, slow.lagged) == (True, True)
    assert await slow.changes() == []
    assert (quick.closed, quick.lagged) == (False, False)
    assert summary(await quick.changes()) == [("put", "b0", 12)]


async def test_a_long_replay_does_not_count_as_being_slow() -> None:
    store = MemoryStore(buffer=10)
    create(store, "a", 50)
    subscription = store.watch(PODS, after=1)

    create(store, "b", 10)

    assert not subscription.closed
    assert len(await subscription.changes()) == 60
    create(store, "c", 11)
    assert subscription.lagged


async def test_closing_ends_a_waiting_reader_and_later_changes_go_nowhere() -> None:
    store = MemoryStore()
    subscription = store.watch(PODS, after=1)
    reader = await waiting(subscription)

    subscription.close()
    subscription.close()
    create(store, "a")

    assert await reader == []
    assert await subscription.changes() == []
    assert subscription.lagged is False


async def test_closing_drops_what_was_not_delivered() -> None:
    store = MemoryStore()
    subscription = store.watch(PODS, after=1)
    create(store, "a")

    subscription.close()

    assert [change async for change in subscription] == []


async def test_closing_one_of_two_watchers_leaves_the_other() -> None:
    store = MemoryStore()
    first, second = store.watch(PODS, after=1), store.watch(PODS, after=1)

    first.close()
    create(store, "a")

    assert summary(await second.changes()) == [("put", "a0", 2)]


async def test_a_cancelled_reader_loses_nothing() -> None:
    store = MemoryStore()
    subscription = store.watch(PODS, after=1)
    reader = await waiting(subscription)

    create(store, "a")
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    create(store, "b")

    assert summary(await subscription.changes()) == [("put", "a0", 2), ("put", "b0", 3)]


async def test_compaction_takes_nothing_from_a_watch_under_way() -> None:
    store = MemoryStore()
    subscription = store.watch(PODS, after=1)
    create(store, "a", 3)

    store.compact(store.revision)

    assert len(await subscription.changes()) == 3


async def test_a_replay_over_several_resources_is_in_the_order_of_revisions() -> None:
    store = MemoryStore()
    for key in ("/zoo/lions/l", f"{PODS}default/a", "/apps/deployments/d", "/zoo/lions/m"):
        store.create(key, obj())

    changes = await store.watch("", after=1).changes()

    assert [change.revision for change in changes] == [2, 3, 4, 5]


async def test_watches_that_are_ended_report_what_happened_so_far() -> None:
    store = MemoryStore()
    below, elsewhere = store.watch(PODS, after=1), store.watch("/core/nodes/", after=1)
    one = await waiting(store.watch(f"{PODS}default/", after=1))
    create(store, "last")
    store.end_watches(PODS)

    assert summary(await below.changes()) == [("put", "last0", 2)]
    assert (await below.changes(), below.lagged) == ([], False)
    assert summary(await one) == [("put", "last0", 2)]
    assert not elsewhere.closed


async def test_a_reader_that_falls_behind_by_too_many_bytes_is_ended() -> None:
    store = MemoryStore(buffer_size=100_000)
    slow, quick = store.watch("/core/pods/", store.revision), store.watch("/core/pods/", store.revision)
    delivered = 0
    for number in range(30):
        store.create(f"/core/pods/default/{number}", {"metadata": {"name": str(number)}, "data": "x" * 10_000})
        delivered += len(await quick.changes())

    assert delivered == 30
    assert not quick.closed
    assert slow.lagged
    assert await slow.changes() == []


async def test_an_interrupted_reader_has_all_changes_first() -> None:
    store = MemoryStore()
    subscription = store.watch("/core/pods/", store.revision)
    store.create("/core/pods/default/a", {})
    subscription.interrupt()

    assert [change.key for change in await subscription.changes()] == ["/core/pods/default/a"]
    assert await subscription.changes() == []
    assert not subscription.closed
