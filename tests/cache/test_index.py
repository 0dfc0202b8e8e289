from __future__ import annotations

import logging
from typing import cast

import msgspec
import pytest

from kubewright.api.core.v1 import Pod
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.cache.index import Index, field_reader, object_values
from kubewright.client.skipped import Skipped


def _entry(**fields: object) -> CacheEntry:
    return parse_entry(
        msgspec.json.encode({"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "1"}, **fields})
    )


@pytest.mark.parametrize(
    ("path", "fields", "text"),
    [
        ("spec.nodeName", {"spec": {"nodeName": "n1"}}, "n1"),
        (".spec.nodeName", {"spec": {"nodeName": "n1"}}, "n1"),
        ("spec.nodeName", {"spec": {}}, ""),
        ("spec.nodeName", {"spec": None}, ""),
        ("spec.nodeName", {"spec": ["not", "an", "object"]}, ""),
        ("spec.nodeName", {}, ""),
        ("spec.unschedulable", {"spec": {"unschedulable": True}}, "true"),
        ("spec.replicas", {"spec": {"replicas": 3}}, "3"),
        ("a.b.c.d", {"a": {"b": {"c": {"d": "deep"}}}}, "deep"),
        ("metadata.name", {}, "a"),
        ("metadata.namespace", {}, "ns"),
        ("metadata.resourceVersion", {}, "1"),
    ],
)
def test_a_field_is_read_as_field_selectors_write_it(path: str, fields: dict[str, object], text: str) -> None:
    assert field_reader(path)(_entry(**fields)) == text


@pytest.mark.parametrize("path", ["", "spec..nodeName", "."])
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not the path of a field"):
        field_reader(path)


def test_an_entry_is_found_under_each_of_its_values() -> None:
    index = Index(
        object_values(Pod, lambda pod: [container.image or "" for container in pod.spec.containers], Skipped())
    )
    entry = _entry(kind="Pod", spec={"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]})
    index.put(entry)
    assert list(index.find("x").values()) == list(index.find("y").values()) == [entry]
    index.put(later := _entry(kind="Pod", spec={"containers": [{"name": "a", "image": "y"}]}))
    assert not index.find("x")
    assert list(index.find("y").values()) == [later]
    index.remove(entry.key)
    assert not index.find("y")


def test_an_object_that_the_function_fails_for_is_not_indexed_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(entry: CacheEntry) -> list[str]:
        raise KeyError(entry.key.name)

    index = Index(fails)
    with caplog.at_level(logging.ERROR):
        index.put(_entry())
    assert "an index function failed for ns/a" in caplog.text


def test_a_function_may_name_a_value_twice() -> None:
    """Two containers of the same image: the second removal of the pod from under it must not fail."""
    index = Index(lambda entry: ["x", "y", "x"])
    index.put(entry := _entry())
    assert list(index.find("x")) == [entry.key]
    index.remove(entry.key)
    assert not index.find("x")
    assert not index.find("y")


def test_an_impure_function_leaves_nothing_behind() -> None:
    answers = iter((["x"], ["y"], ["z"]))
    index = Index(lambda entry: next(answers))
    index.put(_entry())
    index.put(entry := _entry())
    assert not index.find("x")
    index.remove(entry.key)
    assert not index.find("y")


def test_an_unhashable_value_is_a_failure_of_the_function(caplog: pytest.LogCaptureFixture) -> None:
    index = Index(lambda entry: cast("list[str]", [["not", "a", "string"]]))
    index.put(entry := _entry())
    assert "an index function failed for ns/a" in caplog.text
    index.remove(entry.key)
