from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.structure import SchemaStructure
from kubewright.controlplane.embedded.managedfields.fieldset import FieldSet
from kubewright.controlplane.embedded.managedfields.merging import merged, removed, with_named_fields
from kubewright.controlplane.embedded.managedfields.shape import shape_of


@pytest.mark.parametrize(
    ("name", "live", "wanted", "result"),
    [
        ("text", "a", "b", "b"),
        ("map", {"a": "1", "b": "1"}, {"b": "2", "c": "3"}, {"a": "1", "b": "2", "c": "3"}),
        ("map", {"a": "1"}, {}, {"a": "1"}),
        ("map", {"a": "1"}, None, {"a": "1"}),
        ("map", {}, None, None),
        ("atomicMap", {"a": "1"}, {"b": "2"}, {"b": "2"}),
        ("list", ["a"], ["b"], ["b"]),
        ("set", ["a", "b"], ["c", "b"], ["a", "c", "b"]),
        ("set", ["a"], [], ["a"]),
        ("any", {"a": {"b": 1}}, {"a": {"c": [2]}}, {"a": {"b": 1, "c": [2]}}),
        ("any", {"a": 1}, "x", "x"),
        ("any", "x", {"a": 1}, {"a": 1}),
        ("any", ["x"], ["y"], ["y"]),
        ("ports", [{"port": 80, "protocol": "TCP"}], [{"port": 80}], [{"port": 80, "protocol": "TCP"}]),
    ],
)
def test_values_merge_as_their_schema_says(
    things: SchemaStructure, name: str, live: JSONValue, wanted: JSONValue, result: JSONValue
) -> None:
    assert merged({"spec": {name: live}}, {"spec": {name: wanted}}, shape_of(things)) == {"spec": {name: result}}


@pytest.mark.parametrize(
    ("live", "wanted", "result"),
    [
        ("abc", "ca", "bca"),
        ("abc", "cba", "cba"),
        ("abcd", "db", "acdb"),
        ("ab", "xb", "axb"),
        ("abc", "axc", "abxc"),
        ("", "ba", "ba"),
        ("aab", "a", "ab"),
    ],
)
def test_items_are_in_the_order_of_the_configuration_others_stay_between(
    things: SchemaStructure, live: str, wanted: str, result: str
) -> None:
    def with_set(items: str) -> JSONObject:
        return {"spec": {"set": [*items]}}

    assert merged(with_set(live), with_set(wanted), shape_of(things)) == with_set(result)


def test_a_merge_changes_neither_side(things: SchemaStructure) -> None:
    live: JSONObject = {"spec": {"map": {"a": "1"}, "set": ["a"]}}
    merged(live, {"spec": {"map": {"b": "2"}, "set": ["b"]}}, shape_of(things))

    assert live == {"spec": {"map": {"a": "1"}, "set": ["a"]}}


def test_fields_and_items_are_removed(things: SchemaStructure) -> None:
    value: JSONObject = {
        "spec": {"text": "x", "map": {"a": "1", "b": "2"}, "set": ["a", "b"], "parts": [{"name": "x", "value": "1"}]}
    }
    fields: FieldSet = {
        "f:spec": {
            "f:text": {},
            "f:map": {"f:a": {}},
            "f:set": {'v:"b"': {}},
            "f:parts": {'k:{"name":"x"}': {"f:value": {}}},
        }
    }

    assert removed(value, fields, shape_of(things)) == {
        "spec": {"map": {"b": "2"}, "set": ["a"], "parts": [{"name": "x"}]}
    }


def test_a_value_without_remaining_fields_is_null(things: SchemaStructure) -> None:
    value: JSONObject = {"spec": {"text": "x", "map": {"a": "1"}}}

    assert removed(value, {"f:spec": {"f:map": {"f:a": {}}}}, shape_of(things)) == {"spec": {"text": "x", "map": None}}
    assert removed(value, {"f:spec": {}}, shape_of(things)) == {}


def test_fields_of_structs_belong_to_the_set_with_what_is_below_keys_of_maps_do_not(things: SchemaStructure) -> None:
    fields: FieldSet = {
        "f:spec": {"f:any": {"f:key": {"f:b": {}}}, "f:parts": {'k:{"name":"x"}': {"f:inner": {"f:p": {}}}}}
    }

    assert with_named_fields(fields, shape_of(things)) == {
        "f:spec": {
            ".": {},
            "f:any": {".": {}, "f:key": {"f:b": {}}},
            "f:parts": {".": {}, 'k:{"name":"x"}': {"f:inner": {".": {}, "f:p": {}}}},
        }
    }
