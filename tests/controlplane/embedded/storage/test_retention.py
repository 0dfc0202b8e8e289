"""How many bytes of the past a store keeps, and how."""

from __future__ import annotations

import tracemalloc

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.storage.store import Compacted, MemoryStore

A = "/core/configmaps/default/a"
MIB = 1 << 20


def sized(size: int, number: int = 0) -> JSONObject:
    return {"metadata": {"name": "a"}, "data": {"x": "x" * size, "n": str(number)}}


def test_history_of_a_large_object_is_bounded_in_bytes() -> None:
    store = MemoryStore(history_size=16 * MIB)
    entry = store.create(A, sized(MIB))
    tracemalloc.start()
    try:
        for number in range(200):
            entry = store.update(A, sized(MIB, number), expected=entry.revision)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # What is older than the last changes is kept once, as JSON; the last ones also as values.
    assert kept < 30 * MIB
    assert 8 <= store.revision - store.compacted <= 22
    with pytest.raises(Compacted):
        store.watch("/core/configmaps/", store.compacted - 1)


def test_changes_within_the_size_stay_readable_at_their_revisions() -> None:
    store = MemoryStore()
    entry = store.create(A, sized(10))
    for number in range(1, 200):
        entry = store.update(A, sized(10, number), expected=entry.revision)

    for revision in (2, 50, 150, 201):
        found = store.get_at(A, revision)
        assert found is not None
        assert found.value["data"] == {"x": "x" * 10, "n": str(revision - 2)}
        assert found.value["metadata"] == {"name": "a", "resourceVersion": str(revision)}


def test_objects_that_are_gone_are_kept_as_json_alone() -> None:
    store = MemoryStore()
    many: JSONObject = {f"field-{number}": {"of": [number]} for number in range(200)}
    size = len(store.create(A, {"metadata": {"name": "a"}, "spec": {**many}}).raw)
    store.delete(A)
    tracemalloc.start()
    try:
        for _ in range(300):
            spec: JSONObject = {f"field-{number}": {"of": [number]} for number in range(200)}
            store.create(A, {"metadata": {"name": "a"}, "spec": spec})
            store.delete(A)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # As values, an object takes more than ten times the size of its JSON; some of the last are there.
    assert kept < 300 * 2 * size * 2


def test_values_too_deep_for_the_stack_survive_in_history() -> None:
    import msgspec

    store = MemoryStore()
    deep = msgspec.Raw(b"[" * 3000 + b"]" * 3000)
    store.create(A, {"metadata": {"name": "a"}, "data": deep})  # type: ignore[dict-item]
    entry = store.get(A)
    assert entry is not None
    raw = entry.raw
    entry.shrink()

    assert entry.raw == raw
    assert msgspec.json.encode(entry.value) == raw
