from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.schema.lists import ListTypes

SET: JSONObject = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "plain": {"type": "array", "items": {"type": "string"}},
        "set": SET,
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "two": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["z", "name"]},
        "inside": {"type": "object", "additionalProperties": {"type": "array", "items": SET}},
    },
}


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        ({"plain": ["a", "a"]}, []),
        ({"set": ["a", "b"]}, []),
        ({"set": ["a", "a", "a", "b", "b"]}, ['set[1]: Duplicate value: "a"', 'set[4]: Duplicate value: "b"']),
        ({"set": [1, True, 1.0, "1"]}, []),
        ({"set": [{"a": 1, "b": 2}, {"b": 2, "a": 1}]}, ['set[1]: Duplicate value: {"b":2,"a":1}']),
        ({"map": [{"name": "a"}, {"name": "a", "v": 1}]}, ['map[1]: Duplicate value: {"name":"a"}']),
        ({"map": [{}, None]}, ["map[1]: Duplicate value: {}"]),
        ({"map": ["a"]}, ['map[0]: Invalid value: "a": must be an object for an array of list-type map']),
        ({"two": [{"name": "a", "z": 1}, {"name": "a", "z": 2}]}, []),
        (
            {"two": [{"name": "a", "z": 1}, {"name": "a", "z": 1}]},
            ['two[1]: Duplicate value: {"name":"a","z":1}'],
        ),
        ({"inside": {"k": [["x"], ["y", "y"]]}}, ['inside[k][1][1]: Duplicate value: "y"']),
        ({"set": "no list"}, []),
    ],
)
def test_repetitions_are_reported_where_they_appear_first(obj: JSONValue, errors: list[str]) -> None:
    assert [str(error) for error in ListTypes(SCHEMA).validate(obj)] == errors
