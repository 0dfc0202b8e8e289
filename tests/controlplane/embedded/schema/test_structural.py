from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.schema.structural import check_structural, unsupported


def field(**schema: JSONValue) -> JSONObject:
    """A schema whose field `a` has these keywords."""
    return {"type": "object", "properties": {"a": schema}}


# Texts of a real kube-apiserver.
CASES: list[tuple[JSONObject, list[str]]] = [
    ({"type": "object"}, []),
    ({}, ["s.type: Required value: must not be empty at the root"]),
    ({"type": "string"}, ['s.type: Invalid value: "string": must be object at the root']),
    (field(), ["s.properties[a].type: Required value: must not be empty for specified object fields"]),
    (field(type="array"), ["s.properties[a].items: Required value: must be specified"]),
    (
        field(type="array", items={}),
        ["s.properties[a].items.type: Required value: must not be empty for specified array items"],
    ),
    (
        {"type": "object", "additionalProperties": True},
        ["s.additionalProperties: Forbidden: must not be used at the root"],
    ),
    (
        field(type="string", anyOf=[{"type": "string"}, {"type": "integer"}]),
        [
            "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
            "s.properties[a].anyOf[1].type: Forbidden: must be empty to be structural",
        ],
    ),
    (field(anyOf=[{"type": "integer"}, {"type": "string"}], **{"x-kubernetes-int-or-string": True}), []),
    (
        field(
            allOf=[{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "x"}],
            **{"x-kubernetes-int-or-string": True},
        ),
        [],
    ),
    (
        field(type="string", allOf=[{"description": "x", "default": "x", "nullable": True}]),
        [
            "s.properties[a].allOf[0].default: Forbidden: must be undefined to be structural",
            "s.properties[a].allOf[0].description: Forbidden: must be empty to be structural",
            "s.properties[a].allOf[0].nullable: Forbidden: must be false to be structural",
        ],
    ),
    (
        field(type="object", oneOf=[{"properties": {"metadata": {"minLength": 1}}}]),
        ["s.properties[a].oneOf[0].properties[metadata]: Forbidden: must not be specified in a nested context"],
    ),
    (
        field(type="string", pattern="("),
        [
            's.properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: '
            "error parsing regexp: missing closing ): `(`"
        ],
    ),
    (
        field(**{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
        [
            "s.properties[a].type: Required value: must be object if x-kubernetes-embedded-resource is true",
        ],
    ),
    (
        field(type="object", **{"x-kubernetes-embedded-resource": True}),
        [
            "s.properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true "
            "without x-kubernetes-preserve-unknown-fields"
        ],
    ),
    (
        {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}},
        [],
    ),
    (
        {"type": "object", "properties": {"metadata": {"type": "object", "description": "x"}}},
        [
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but "
            "metadata is implicitly specified"
        ],
    ),
    (
        {"type": "object", "properties": {"kind": {"type": "integer"}}},
        ['s.properties[kind].type: Invalid value: "integer": must be string'],
    ),
    (
        {"type": "object", "anyOf": [{"properties": {"nope": {"minLength": 1}}}, {"not": {"items": {"minLength": 1}}}]},
        [
            "s.items: Required value: because it is defined in s.anyOf[1].not.items",
            "s.properties[nope]: Required value: because it is defined in s.anyOf[0].properties[nope]",
        ],
    ),
]


@pytest.mark.parametrize(("schema", "errors"), CASES)
def test_violations_of_structural_schemas_are_reported(schema: JSONObject, errors: list[str]) -> None:
    assert [str(error) for error in check_structural(schema, "s")] == errors


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object"}, ""),
        (field(**{"$ref": "#/x"}), "OpenAPIV3Schema '$ref' is not supported"),
        (field(**{"$schema": "x"}), "OpenAPIV3Schema 'schema' is not supported"),
        (field(type="array", items=[{}]), "OpenAPIV3Schema 'items' must be a schema, but is an array"),
        (
            {"anyOf": [{"x-kubernetes-preserve-unknown-fields": False}]},
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
        ),
    ],
)
def test_keywords_that_no_structural_schema_has_are_found_anywhere(schema: JSONObject, reason: str) -> None:
    assert unsupported(schema) == reason
