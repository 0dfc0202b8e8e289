from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.storage.saved import SavedStore
from kubewright.controlplane.embedded.storage.store import Compacted, MemoryStore

A, B = "/core/pods/default/a", "/core/pods/default/b"


def obj(content: str) -> JSONObject:
    return {"metadata": {"name": "x"}, "content": content}


def test_a_store_goes_on_where_another_ended() -> None:
    old = MemoryStore()
    first = old.create(A, obj("1"))
    old.create(B, obj("2"))
    last = old.update(A, obj("3"), expected=first.revision)

    new = MemoryStore()
    SavedStore.decode(SavedStore.of(old).encode()).fill(new)

    assert [entry.raw for entry in new.range("/core/pods/").entries] == [
        entry.raw for entry in old.range("/core/pods/").entries
    ]
    found = new.get(A)
    assert found is not None
    assert (found.revision, found.created, found.value) == (last.revision, first.created, last.value)
    assert new.revision == old.revision
    assert new.update(A, obj("4"), expected=last.revision).revision == old.revision + 1


def test_history_is_compacted() -> None:
    old = MemoryStore()
    first = old.create(A, obj("1"))
    old.create(B, obj("2"))
    new = MemoryStore()
    SavedStore.of(old).fill(new)
    with pytest.raises(Compacted):
        new.watch("/core/pods/", first.revision)
    new.watch("/core/pods/", old.revision).close()
