from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.structure import SchemaStructure
from kubewright.controlplane.embedded.managedfields.fieldset import FieldSet
from kubewright.controlplane.embedded.managedfields.shape import Untrackable, shape_of
from kubewright.controlplane.embedded.managedfields.walks import changes, fields_of, identical

CASES: list[tuple[str, JSONValue, FieldSet | None]] = [
    ("text", "x", {}),
    ("text", None, {}),
    ("map", {"b": "1", "a": "2"}, {"f:a": {}, "f:b": {}}),
    ("map", {}, {}),
    ("map", None, {}),
    ("atomicMap", {"a": "1"}, {}),
    ("list", ["x"], {}),
    ("list", [], {}),
    ("set", ["b", "a"], {'v:"a"': {}, 'v:"b"': {}}),
    ("set", [], None),
    ("parts", [{"name": "x", "value": "1"}], {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:value": {}}}),
    ("ports", [{"port": 80}], {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}),
    ("nested", {"x": "1"}, {"f:x": {}}),
    ("nested", {}, {}),
    ("any", {"a": {"b": 1}, "c": [1]}, {"f:a": {".": {}, "f:b": {}}, "f:c": {}}),
    ("any", ["x"], {}),
]


@pytest.mark.parametrize(("name", "value", "expected"), CASES)
def test_a_configuration_claims_its_leaves_items_and_keys(
    things: SchemaStructure, name: str, value: JSONValue, expected: FieldSet | None
) -> None:
    claimed = fields_of({"spec": {name: value}}, shape_of(things))

    assert claimed == ({} if expected is None else {"f:spec": {f"f:{name}": expected}})


def test_what_comes_is_added_with_everything_on_the_way(things: SchemaStructure) -> None:
    found = changes({"spec": {}}, {"spec": {"parts": [{"name": "x", "inner": {"p": "1"}}]}}, shape_of(things))

    item: FieldSet = {".": {}, "f:inner": {".": {}, "f:p": {}}, "f:name": {}}
    assert found.added == {"f:spec": {"f:parts": {".": {}, 'k:{"name":"x"}': item}}}
    assert not found.removed
    assert not found.modified


def test_items_are_compared_by_key_whatever_their_order(things: SchemaStructure) -> None:
    old: JSONValue = [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}, {"name": "c"}]
    new: JSONValue = [{"name": "b", "value": "3"}, {"name": "a", "value": "1"}, {"name": "d"}]
    found = changes({"spec": {"parts": old}}, {"spec": {"parts": new}}, shape_of(things))

    assert found.modified == {"f:spec": {"f:parts": {'k:{"name":"b"}': {"f:value": {}}}}}
    assert found.added == {"f:spec": {"f:parts": {'k:{"name":"d"}': {".": {}, "f:name": {}}}}}
    assert found.removed == {"f:spec": {"f:parts": {'k:{"name":"c"}': {".": {}, "f:name": {}}}}}


def test_duplicate_items_are_compared_as_one(things: SchemaStructure) -> None:
    twice: JSONValue = [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    once: JSONValue = [{"name": "a", "value": "1"}]
    other: JSONValue = [{"name": "a", "value": "1"}, {"name": "a", "value": "3"}]
    item: FieldSet = {".": {}, "f:name": {}, "f:value": {}}

    def found(old: JSONValue, new: JSONValue) -> list[FieldSet]:
        result = changes({"spec": {"parts": old}}, {"spec": {"parts": new}}, shape_of(things))
        return [
            side.get("f:spec", {}).get("f:parts", {}).get('k:{"name":"a"}', {"none": {}})
            for side in (result.removed, result.modified, result.added)
        ]

    none: FieldSet = {"none": {}}
    assert found(twice, twice) == [none, none, none]
    assert found(twice, other) == [none, {}, none]
    assert found(twice, once) == [{}, none, item]
    assert found(once, twice) == [item, none, {}]
    assert found([], twice)[2] == {}
    assert found(twice, []) == [{}, none, none]


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        ({"a": 1}, "x", {"f:a": {}}, {}, None),
        ("x", {"a": 1}, None, {}, {"f:a": {}}),
        (None, {"a": 1}, None, None, {"f:a": {}}),
        ({"a": 1}, None, {"f:a": {}}, None, None),
        ({}, None, None, {}, None),
        ([1], [1, 2], None, {}, None),
        (1, True, None, {}, None),
        ({"a": {"b": 1}}, {"a": {"b": True}}, None, {"f:a": {"f:b": {}}}, None),
        (1, 1.0, None, None, None),
    ],
)
def test_untyped_values_have_the_type_of_their_json(
    things: SchemaStructure,
    old: JSONValue,
    new: JSONValue,
    removed: FieldSet | None,
    modified: FieldSet | None,
    added: FieldSet | None,
) -> None:
    found = changes({"spec": {"any": old}}, {"spec": {"any": new}}, shape_of(things))

    for side, expected in ((found.removed, removed), (found.modified, modified), (found.added, added)):
        assert side == ({} if expected is None else {"f:spec": {"f:any": expected}})


def test_an_item_without_key_cannot_be_tracked(things: SchemaStructure) -> None:
    with pytest.raises(Untrackable):
        changes({}, {"spec": {"parts": [{"value": "1"}]}}, shape_of(things))


def test_identical_is_equality_of_json() -> None:
    assert identical({"a": 1, "b": [2.0]}, {"b": [2], "a": 1})
    assert not identical({"a": 1}, {"a": True})
    assert not identical([1], [2])
