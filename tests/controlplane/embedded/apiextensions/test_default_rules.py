from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.default_rules import check_defaults

# Texts of a real kube-apiserver, for the field `a` of an object.
CASES: list[tuple[JSONObject, list[str]]] = [
    ({"type": "string", "default": "x"}, []),
    (
        {"type": "string", "default": 5},
        ['default: Invalid value: "integer":  in body must be of type string: "integer"'],
    ),
    (
        {"type": "object", "default": {"x": 1}, "properties": {"y": {"type": "string"}}},
        ['default: Invalid value: {"x":1}: must not have unknown fields'],
    ),
    (
        {"type": "object", "default": {"y": 1}, "required": ["z"], "properties": {"y": {"type": "string"}}},
        [
            'default.y: Invalid value: "integer": y in body must be of type string: "integer"',
            "default.z: Required value",
        ],
    ),
    (
        {"type": "array", "items": {"type": "integer", "default": "x"}},
        ['items.default: Invalid value: "string":  in body must be of type integer: "string"'],
    ),
    (
        {"type": "string", "enum": ["a"], "default": "b"},
        ['default: Unsupported value: "b": supported values: "a"'],
    ),
]


@pytest.mark.parametrize(("schema", "errors"), CASES)
def test_defaults_are_valid_themselves(schema: JSONObject, errors: list[str]) -> None:
    found = check_defaults({"type": "object", "properties": {"a": schema}}, "s")

    assert [str(error) for error in found] == [f"s.properties[a].{error}" for error in errors]


def test_checking_a_default_does_not_prune_it() -> None:
    schema: JSONObject = {"type": "object", "default": {"x": 1}}

    assert list(check_defaults(schema, "s"))
    assert schema["default"] == {"x": 1}
