from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.storage.lifetime import Lifetime
from kubewright.controlplane.embedded.storage.store import MemoryStore


class Time:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store(time: Time) -> MemoryStore:
    return MemoryStore(lifetimes={"/core/events/": Lifetime(60.0, time)})


def put(store: MemoryStore, key: str) -> int:
    return store.create(key, {"metadata": {"name": key.rpartition("/")[2]}}).revision


def test_a_key_ends_after_its_time_and_not_before(store: MemoryStore, time: Time) -> None:
    put(store, "/core/events/a")
    time.now += 59
    assert store.get("/core/events/a") is not None
    time.now += 1
    assert store.get("/core/events/a") is None


def test_every_write_renews_the_lifetime(store: MemoryStore, time: Time) -> None:
    revision = put(store, "/core/events/a")
    put(store, "/core/events/b")
    time.now += 59
    store.update("/core/events/a", {"metadata": {"name": "a"}}, expected=revision)
    time.now += 1
    assert [entry.key for entry in store.range("/core/events/").entries] == ["/core/events/a"]


def test_other_keys_live_for_ever(store: MemoryStore, time: Time) -> None:
    put(store, "/core/pods/a")
    time.now += 1e9
    store.sweep()
    assert store.get("/core/pods/a") is not None


def test_deleted_keys_do_not_expire(store: MemoryStore, time: Time) -> None:
    put(store, "/core/events/a")
    store.delete("/core/events/a")
    time.now += 61
    revision = store.revision
    store.sweep()
    assert store.revision == revision


async def test_watchers_see_the_end(store: MemoryStore, time: Time) -> None:
    revision = put(store, "/core/events/a")
    subscription = store.watch("/core/events/", revision)
    time.now += 60
    store.sweep()
    (change,) = await subscription.changes()
    assert (change.kind, change.key, change.revision) == ("delete", "/core/events/a", revision + 1)
    subscription.close()


def test_restored_keys_live_from_the_restore_on(store: MemoryStore, time: Time) -> None:
    put(store, "/core/events/a")
    snapshot = store.snapshot()
    time.now += 60
    store.sweep()
    store.restore(snapshot)
    time.now += 59
    assert store.get("/core/events/a") is not None
