from __future__ import annotations

import json

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.errors import DecodeError
from kubewright.api.kinds import ObjectKey
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.controller.event import Event


def entry(revision: int, data: object = None) -> CacheEntry:
    metadata = {"name": "a", "namespace": "shop", "resourceVersion": str(revision)}
    return parse_entry(json.dumps({"metadata": metadata, "data": data or {}}).encode())


def event(old: CacheEntry | None, new: CacheEntry | None) -> Event[ConfigMap]:
    return Event(ConfigMap, old, new, False, None)


def test_the_verb_follows_from_what_was_before_and_after() -> None:
    assert event(None, entry(1)).verb == "added"
    assert event(entry(1), entry(2)).verb == "updated"
    assert event(entry(1), None).verb == "deleted"


def test_the_entry_is_the_newest_that_is_known() -> None:
    old, new = entry(1), entry(2)
    assert event(old, new).entry is new
    assert event(None, new).entry is new
    assert event(old, None).entry is old
    assert event(old, None).key == ObjectKey("shop", "a")


def test_an_event_about_nothing_is_refused_when_it_is_read() -> None:
    with pytest.raises(ValueError, match="an event is about an object"):
        _ = event(None, None).entry


def test_objects_are_decoded_when_read_and_once() -> None:
    broken = entry(1, data="not a mapping")
    seen = event(broken, entry(2, data={"x": "1"}))
    assert seen.new_object is not None
    assert seen.new_object.data == {"x": "1"}
    assert seen.new_object is seen.new_object
    with pytest.raises(DecodeError, match="data"):
        _ = seen.old_object


def test_the_object_before_is_what_it_was() -> None:
    seen = event(entry(1, data={"x": "1"}), entry(2, data={"x": "2"}))
    assert seen.old_object is not None
    assert seen.old_object.data == {"x": "1"}
    assert seen.old_object is seen.old_object


def test_an_absent_object_is_none() -> None:
    assert event(None, entry(1)).old_object is None
    assert event(entry(1), None).new_object is None


def test_its_repr_names_the_object_and_what_happened() -> None:
    assert repr(event(entry(1), None)) == "<Event ConfigMap shop/a deleted>"
