from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.openapi_rules import check_schema

# Texts of a real kube-apiserver, for the field `a` of an object.
CASES: list[tuple[JSONObject, list[str]]] = [
    (
        {"type": "foo"},
        [
            'type: Unsupported value: "foo": supported values: '
            '"array", "boolean", "integer", "number", "object", "string"'
        ],
    ),
    ({"type": "object", "$ref": "#/x"}, ["$ref: Forbidden: $ref is not supported"]),
    ({"type": "string", "id": "x"}, ["id: Forbidden: id is not supported"]),
    (
        {"type": "array", "items": [{"type": "string"}]},
        ["items: Forbidden: items must be a schema object and not an array"],
    ),
    (
        {"type": "array", "uniqueItems": True},
        ["uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
    ),
    (
        {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": False},
        ["additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    ),
    ({"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": True}, []),
    (
        {"x-kubernetes-preserve-unknown-fields": False},
        ["x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
    ),
    (
        {"x-kubernetes-map-type": "wat"},
        [
            "type: Required value: must be object if x-kubernetes-map-type is specified",
            'x-kubernetes-map-type: Unsupported value: "wat": supported values: "atomic", "granular"',
        ],
    ),
    (
        {"type": "object", "x-kubernetes-list-type": "set"},
        ['type: Invalid value: "object": must be array if x-kubernetes-list-type is specified'],
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
        [
            "items.x-kubernetes-map-type: Invalid value: null: "
            "must be atomic as item of a list with x-kubernetes-list-type=set"
        ],
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "nullable": True}},
        ["items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
    ),
    (
        {"type": "array", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "string"}},
        ["x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty"],
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "string"}},
        [
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            'items.type: Invalid value: "string": must be object if parent array\'s x-kubernetes-list-type is map',
        ],
    ),
    (
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k", "z"],
            "items": {"type": "object", "properties": {"k": {"type": "string", "nullable": True}}},
        },
        [
            'x-kubernetes-list-map-keys: Invalid value: ["k","z"]: entries must all be names of item properties',
            "items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must "
            "have a default or be a required property",
            "items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be "
            "nullable",
        ],
    ),
]


@pytest.mark.parametrize(("schema", "errors"), CASES)
def test_keywords_are_held_to_their_rules(schema: JSONObject, errors: list[str]) -> None:
    found = check_schema({"type": "object", "properties": {"a": schema}}, "s")

    assert [str(error) for error in found] == [f"s.properties[a].{error}" for error in errors]


def test_metadata_has_no_defaults() -> None:
    schema: JSONObject = {
        "type": "object",
        "properties": {"kind": {"type": "string", "default": "x"}, "spec": {"type": "string", "default": "x"}},
    }

    assert [str(error) for error in check_schema(schema, "s")] == [
        "s.properties[kind].default: Forbidden: must not be set in top-level kind"
    ]
