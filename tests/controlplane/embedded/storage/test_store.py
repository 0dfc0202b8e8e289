from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.storage.store import (
    Compacted,
    FutureRevision,
    KeyExists,
    MemoryStore,
    RevisionConflict,
    StoreChange,
    StoredObject,
    Subscription,
)

A, B, C = "/core/pods/default/a", "/core/pods/default/b", "/core/pods/other/c"


def obj(content: str = "") -> JSONObject:
    return {"metadata": {"name": "x"}, "content": content}


def version(entry: StoredObject | None) -> str:
    return "" if entry is None else text(entry.value, "metadata", "resourceVersion")


def content(entry: StoredObject | None) -> str | None:
    return None if entry is None else text(entry.value, "content")


def keys(entries: list[StoredObject]) -> list[str]:
    return [entry.key for entry in entries]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_every_write_takes_the_next_revision_and_the_object_carries_it() -> None:
    store = MemoryStore(revision=7)

    created = store.create(A, obj())
    other = store.create(B, obj())
    updated = store.update(A, obj("new"), expected=created.revision)

    assert [created.revision, other.revision, updated.revision] == [8, 9, 10]
    assert [version(created), version(other), version(updated)] == ["8", "9", "10"]
    assert (updated.created, store.revision) == (8, 10)


def test_the_resource_version_keeps_its_position_in_the_metadata() -> None:
    entry = MemoryStore().create(A, {"metadata": {"name": "a", "resourceVersion": "", "uid": "u"}})

    assert entry.raw == b'{"metadata":{"name":"a","resourceVersion":"2","uid":"u"}}'


def test_a_value_is_encoded_once() -> None:
    entry = MemoryStore().create(A, obj())

    assert entry.raw is entry.raw


def test_an_object_without_metadata_is_given_one() -> None:
    assert version(MemoryStore().create(A, {})) == "2"


def test_a_taken_key_cannot_be_created_and_no_revision_is_spent_on_it() -> None:
    store = MemoryStore()
    store.create(A, obj("first"))

    with pytest.raises(KeyExists, match="/core/pods/default/a exists already"):
        store.create(A, obj("second"))

    assert (content(store.get(A)), store.revision) == ("first", 2)


def test_an_update_that_expects_another_revision_changes_nothing() -> None:
    store = MemoryStore()
    store.create(A, obj("first"))

    with pytest.raises(RevisionConflict, match="expected at revision 1 and is at revision 2") as caught:
        store.update(A, obj("second"), expected=1)

    assert (caught.value.expected, caught.value.found) == (1, 2)
    assert (content(store.get(A)), store.revision) == ("first", 2)


def test_an_absent_key_can_neither_be_updated_nor_deleted() -> None:
    store = MemoryStore()

    with pytest.raises(RevisionConflict, match="expected at revision 5 and is absent"):
        store.update(A, obj(), expected=5)
    with pytest.raises(RevisionConflict, match="expected there and is absent") as caught:
        store.delete(A)
    assert caught.value.found is None


def test_a_deletion_that_expects_another_revision_deletes_nothing() -> None:
    store = MemoryStore()
    store.create(A, obj())

    with pytest.raises(RevisionConflict):
        store.delete(A, expected=1)

    assert store.get(A) is not None


def test_a_deletion_takes_a_revision_and_leaves_the_stored_object_as_it_was() -> None:
    store = MemoryStore()
    created = store.create(A, obj("last"))

    deleted = store.delete(A, expected=created.revision)

    assert store.get(A) is None
    assert (content(deleted), version(deleted), deleted.revision) == ("last", "3", 3)
    assert version(created) == "2"


def test_a_deletion_shows_the_final_state_it_is_given() -> None:
    store = MemoryStore()
    store.create(A, obj("last"))

    deleted = store.delete(A, final=obj("final"))

    assert (content(deleted), version(deleted)) == ("final", "3")


@pytest.mark.parametrize("key", ["", "/", "/core", "/core/pods", "/core/pods/", "x"])
def test_a_key_must_lie_in_a_resource(key: str) -> None:
    with pytest.raises(ValueError, match="a key looks like /group/resource/name"):
        MemoryStore().create(key, obj())


def test_a_range_is_in_the_order_of_keys_and_ends_with_its_directory() -> None:
    store = MemoryStore()
    for key in (B, "/core/pods2/default/z", C, A, "/core/pods/default-2/d", "/apps/pods/default/e"):
        store.create(key, obj())

    assert keys(store.range("/core/pods/").entries) == ["/core/pods/default-2/d", A, B, C]
    assert keys(store.range("/core/pods/default/").entries) == [A, B]
    assert keys(store.range("/apps/").entries) == ["/apps/pods/default/e"]
    assert len(store.range("").entries) == len(store.range("/").entries) == 6
    assert store.range("/core/nothing/").entries == []


def test_a_range_needs_a_directory() -> None:
    with pytest.raises(ValueError, match="ends in a slash, not '/core/pods/def'"):
        MemoryStore().range("/core/pods/def")


def test_a_limited_range_reports_how_many_are_left() -> None:
    store = MemoryStore()
    for key in (A, B, C):
        store.create(key, obj())

    first = store.range("/core/pods/", limit=2)
    second = store.range("/core/pods/", limit=2, start=first.entries[-1].key + "\0")

    assert (keys(first.entries), first.more, first.remaining) == ([A, B], True, 1)
    assert (keys(second.entries), second.more, second.remaining) == ([C], False, 0)


def test_a_limited_range_over_several_resources_counts_all_of_them() -> None:
    store = MemoryStore()
    for key in (A, B, "/apps/deployments/default/d", "/zoo/lions/default/l"):
        store.create(key, obj())

    page = store.range("", limit=2)

    assert (keys(page.entries), page.remaining) == (["/apps/deployments/default/d", A], 2)


def test_pages_read_at_one_revision_are_not_disturbed_by_later_writes() -> None:
    store = MemoryStore()
    for name in "abcdef":
        store.create(f"/core/pods/default/{name}", obj("old"))
    first = store.range("/core/pods/", limit=2)

    store.create("/core/pods/default/bb", obj("new"))
    store.delete("/core/pods/default/c")
    entry = store.get("/core/pods/default/d")
    assert entry is not None
    store.update(entry.key, obj("new"), expected=entry.revision)

    second = store.range("/core/pods/", limit=2, start=first.entries[-1].key + "\0", revision=first.revision)
    assert [(entry.key[-1], content(entry)) for entry in second.entries] == [("c", "old"), ("d", "old")]
    assert (second.remaining, second.revision) == (2, first.revision)


def test_an_object_can_be_read_as_it_was() -> None:
    store = MemoryStore()
    store.create(A, obj("1"))
    store.update(A, obj("2"), expected=2)
    store.delete(A)

    assert [content(store.get_at(A, revision)) for revision in (1, 2, 3, 4)] == [None, "1", "2", None]
    assert store.get_at("/core/nodes/x", 4) is None


def test_what_is_compacted_can_no_longer_be_read_or_watched() -> None:
    store = MemoryStore()
    store.create(A, obj("1"))
    store.update(A, obj("2"), expected=2)
    store.update(A, obj("3"), expected=3)

    store.compact(3)

    assert content(store.get_at(A, 3)) == "2"
    assert store.compacted == 3
    for read in (
        lambda: store.get_at(A, 2),
        lambda: store.range("/core/pods/", revision=2),
        lambda: store.watch("", 2),
    ):
        with pytest.raises(Compacted, match="revision 2 is no longer there") as caught:
            read()
        assert (caught.value.requested, caught.value.compacted) == (2, 3)


def test_compacting_again_or_less_far_is_harmless() -> None:
    store = MemoryStore()
    store.create(A, obj())
    store.compact(2)

    store.compact(2)
    store.compact(1)

    assert store.compacted == 2


def test_the_future_is_unknown() -> None:
    store = MemoryStore()

    for ask in (
        lambda: store.get_at(A, 2),
        lambda: store.range("/core/pods/", revision=2),
        lambda: store.watch("", 2),
        lambda: store.compact(2),
    ):
        with pytest.raises(FutureRevision, match="revision 2 is not there yet") as caught:
            ask()
        assert (caught.value.requested, caught.value.current) == (2, 1)


def test_history_is_kept_for_one_interval_and_gone_after_two() -> None:
    clock = Clock()
    store = MemoryStore(interval=300.0, clock=clock)
    clock.now += 10.0
    created = store.create(A, obj("old"))
    clock.now += 1.0
    store.update(A, obj("new"), expected=created.revision)

    clock.now += 299.0
    assert content(store.get_at(A, created.revision)) == "old"
    clock.now += 299.0
    with pytest.raises(Compacted):
        store.get_at(A, created.revision)


def test_history_expires_in_silence_too() -> None:
    clock = Clock()
    store = MemoryStore(interval=300.0, clock=clock)
    created = store.create(A, obj("old"))
    updated = store.update(A, obj("new"), expected=created.revision)

    clock.now += 600.0

    with pytest.raises(Compacted):
        store.watch("/core/pods/", created.revision)
    assert content(store.get_at(A, updated.revision)) == "new"


def test_the_first_write_after_a_silence_is_retained() -> None:
    clock = Clock()
    store = MemoryStore(interval=300.0, clock=clock)
    before = store.create(A, obj()).revision
    clock.now += 6000.0
    store.create(B, obj())

    assert keys(store.range("/core/pods/", revision=before).entries) == [A]


def test_history_is_bounded_by_the_number_of_changes() -> None:
    store = MemoryStore(history=100)
    revision = store.create(A, obj()).revision
    for _ in range(1000):
        revision = store.update(A, obj(), expected=revision).revision

    assert 100 <= store.revision - store.compacted <= 126


def test_an_observer_sees_each_change_within_the_step_that_makes_it() -> None:
    store = MemoryStore()
    seen: list[tuple[str, str, int]] = []
    unsubscribe = store.observe(lambda change: seen.append((change.kind, change.key, store.revision)))
    created = store.create(A, obj("a"))
    assert seen == [("put", A, created.revision)]
    store.delete(A)
    assert seen[1:] == [("delete", A, store.revision)]
    unsubscribe()
    store.create(B, obj("b"))
    assert len(seen) == 2


def contents(store: MemoryStore) -> dict[str, str | None]:
    return {entry.key: content(entry) for entry in store.range("").entries}


def test_restoring_a_snapshot_brings_every_object_back_at_a_later_revision() -> None:
    store = MemoryStore()
    store.create(A, obj("a"))
    changed = store.create(B, obj("b"))
    snapshot = store.snapshot()
    store.update(B, obj("changed"), expected=changed.revision)
    store.delete(A)
    store.create(C, obj("added"))

    before = store.revision
    store.restore(snapshot)

    assert contents(store) == {A: "a", B: "b"}
    assert store.revision == before + 3
    assert all(entry.revision > before for entry in store.range("").entries)
    assert version(changed) == "3"


def test_restoring_what_has_not_changed_writes_nothing() -> None:
    store = MemoryStore()
    store.create(A, obj("a"))
    snapshot = store.snapshot()
    store.delete(A)
    store.restore(snapshot)
    before = store.revision

    store.restore(snapshot)

    assert store.revision == before


def test_what_is_written_has_the_form_of_its_time_and_a_restore_brings_it_back() -> None:
    store = MemoryStore()
    store.create(A, obj("a"))
    store.store_as("/core/pods/", "v2")
    second = store.create(B, obj("b"))
    snapshot = store.snapshot()
    store.store_as("/core/pods/", "v3")
    changed = store.update(B, obj("changed"), expected=second.revision)
    store.restore(snapshot)

    assert (second.form, changed.form) == ("v2", "v3")
    assert [entry.form for entry in store.range("/core/pods/").entries] == ["", "v2"]


async def test_watchers_see_a_restore_as_ordinary_changes() -> None:
    store = MemoryStore()
    store.create(A, obj("a"))
    snapshot = store.snapshot()
    store.delete(A)
    store.create(C, obj("c"))
    subscription = store.watch("/core/pods/", store.revision)

    store.restore(snapshot)

    assert [(change.kind, change.key, content(change.entry)) for change in await subscription.changes()] == [
        ("delete", C, "c"),
        ("put", A, "a"),
    ]


KEYS = [
    "/core/pods/a/x",
    "/core/pods/a/y",
    "/core/pods/a-b/x",
    "/core/pods/b/x",
    "/core/nodes/n",
    "/core/nodes/m",
    "/apps/deployments/a/x",
]
PREFIXES = ["", "/", "/core/", "/core/pods/", "/core/pods/a/", "/core/nodes/", "/apps/deployments/", "/none/x/"]
Log = list[tuple[int, str, str, str | None]]


class Model(RuleBasedStateMachine):
    """The store against the plainest model there is: a copy of everything at every revision."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore(interval=float("inf"))
        self.states: dict[int, dict[str, str]] = {1: {}}
        self.log: Log = []
        self.compacted = 1
        self.watches: list[tuple[Subscription, str, int]] = []
        self.loop = asyncio.new_event_loop()

    def teardown(self) -> None:
        self.loop.close()

    @property
    def now(self) -> int:
        return max(self.states)

    def record(self, kind: str, key: str, value: str) -> None:
        state = dict(self.states[self.now])
        previous = state.pop(key, None)
        if kind == "put":
            state[key] = value
        self.states[self.now + 1] = state
        self.log.append((self.now, kind, key, previous))

    @rule(key=st.sampled_from(KEYS))
    def write(self, key: str) -> None:
        value = f"value {self.now + 1}"
        found = self.store.get(key)
        if found is None:
            self.store.create(key, obj(value))
        else:
            self.store.update(key, obj(value), expected=found.revision)
        self.record("put", key, value)

    @rule(data=st.data())
    @precondition(lambda self: self.states[self.now])
    def delete(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.states[self.now])))
        self.store.delete(key)
        self.record("delete", key, "")

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        self.compacted = data.draw(st.integers(self.compacted, self.now))
        self.store.compact(self.compacted)

    @rule(data=st.data(), prefix=st.sampled_from(PREFIXES), limit=st.integers(0, 4))
    def read_at_a_revision(self, data: st.DataObject, prefix: str, limit: int) -> None:
        revision = data.draw(st.integers(self.compacted, self.now))
        start = data.draw(st.sampled_from(["", *KEYS, KEYS[0] + "\0"]))
        state = self.states[revision]

        found = self.store.range(prefix, start=start, limit=limit, revision=revision)

        expected = sorted(key for key in state if key.startswith(prefix) and key >= start)
        shown = expected[:limit] if limit else expected
        assert [(entry.key, content(entry)) for entry in found.entries] == [(key, state[key]) for key in shown]
        assert found.remaining == len(expected) - len(shown)
        for key in KEYS:
            assert content(self.store.get_at(key, revision)) == state.get(key)

    @rule(revision=st.integers(-3, 60))
    def read_what_is_not_there(self, revision: int) -> None:
        if revision < self.compacted:
            with pytest.raises(Compacted):
                self.store.range("", revision=revision)
        elif revision > self.now:
            with pytest.raises(FutureRevision):
                self.store.range("", revision=revision)

    @rule(data=st.data(), prefix=st.sampled_from([*PREFIXES, *KEYS]))
    def watch(self, data: st.DataObject, prefix: str) -> None:
        after = data.draw(st.integers(self.compacted, self.now))
        self.watches.append((self.store.watch(prefix, after), prefix, after))

    @rule(data=st.data())
    @precondition(lambda self: self.watches)
    def look(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.watches) - 1))
        subscription, prefix, after = self.watches[index]
        if expected := list(self.since(prefix, after)):
            changes = self.loop.run_until_complete(subscription.changes())
            assert [self.seen(change) for change in changes] == expected
            self.watches[index] = (subscription, prefix, self.now)

    def since(self, prefix: str, after: int) -> Iterator[tuple[int, str, str, str | None]]:
        for revision, kind, key, previous in self.log:
            below = key.startswith(prefix) if prefix.endswith("/") or not prefix else key == prefix
            if revision > after and below:
                yield revision, kind, key, previous

    def seen(self, change: StoreChange) -> tuple[int, str, str, str | None]:
        state = self.states[change.revision if change.kind == "put" else change.revision - 1]
        assert content(change.entry) == state[change.key]
        assert version(change.entry) == str(change.revision)
        return change.revision, change.kind, change.key, content(change.previous)

    @invariant()
    def the_present_is_as_the_model_has_it(self) -> None:
        found = self.store.range("")
        assert found.revision == self.store.revision == self.now
        assert {entry.key: content(entry) for entry in found.entries} == self.states[self.now]


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
