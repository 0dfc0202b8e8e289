from __future__ import annotations

import math

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.registry.converted import SeenStore, VersionView
from kubewright.controlplane.embedded.storage.store import MemoryStore
from kubewright.controlplane.embedded.storage.stored_object import StoredObject


class Defaults:
    """Fills in `b`, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, obj: JSONObject) -> None:
        self.calls += 1
        obj.setdefault("b", 1)


def test_what_was_written_before_is_shown_filled_in_and_left_as_it_is() -> None:
    entry = StoredObject("/a", {"a": 1}, 3, 3)
    seen = VersionView(Defaults(), since=5)(entry)

    assert (seen.value, seen.revision, seen.adapted) == ({"a": 1, "b": 1}, 3, True)
    assert entry.value == {"a": 1}


def test_what_was_written_since_is_shown_as_it_is() -> None:
    entry = StoredObject("/a", {"a": 1}, 6, 6)

    assert VersionView(Defaults(), since=5)(entry) is entry


def test_an_entry_without_differences_is_returned_as_it_is() -> None:
    entry = StoredObject("/a", {"b": 2}, 3, 3)

    assert VersionView(Defaults(), since=math.inf)(entry) is entry


def test_each_state_of_an_object_is_worked_out_once() -> None:
    defaults = Defaults()
    view = VersionView(defaults, since=math.inf)
    first, second = StoredObject("/a", {}, 1, 1), StoredObject("/a", {}, 2, 1)

    assert view(first) is view(first)
    assert view(second) is view(second)
    assert defaults.calls == 2


def test_what_is_stored_in_another_form_is_a_change_when_it_is_stored_again() -> None:
    old, new = StoredObject("/a", {"b": 1}, 3, 3, form="v1"), StoredObject("/b", {"b": 1}, 4, 4, form="v2")
    view = VersionView(Defaults(), since=5, form="v2")

    assert (view(old).value, view(old).adapted) == (old.value, True)
    assert view(new) is new


def test_what_is_stored_in_an_unreadable_form_is_not_shown() -> None:
    view = VersionView(Defaults(), since=5, form="v2", unreadable={"v1": "no longer there"})
    with pytest.raises(StatusError, match="no longer there") as refused:
        view(StoredObject("/a", {}, 6, 6, form="v1"))

    assert (refused.value.code, refused.value.reason) == (500, "")


async def test_reads_lists_and_watches_show_the_same() -> None:
    store = MemoryStore()
    seen = SeenStore(store, VersionView(Defaults(), since=math.inf))
    subscription = seen.watch("/example.com/things/", store.revision)
    store.create("/example.com/things/a", {"metadata": {}})

    found = seen.get("/example.com/things/a")
    assert found is not None
    assert found.value["b"] == 1
    assert [entry.value["b"] for entry in seen.range("/example.com/things/").entries] == [1]
    assert [change.entry.value["b"] for change in await subscription.changes()] == [1]
    subscription.close()
