from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.schema.validation import Validator

# Texts of a real kube-apiserver, for a field `x` with the schema and the value.
CASES: list[tuple[JSONObject, JSONValue, list[str]]] = [
    ({"type": "integer"}, "a", ['x: Invalid value: "string": x in body must be of type integer: "string"']),
    ({"type": "integer"}, None, ['x: Invalid value: "null": x in body must be of type integer: "null"']),
    (
        {"type": "integer"},
        3.5,
        [
            'x: Invalid value: "number": x in body must be of type integer: "number"',
            '<nil>: Invalid value: "": Checked value must be of type integer (default format) in x',
        ],
    ),
    ({"type": "integer"}, 4.0, []),
    ({"type": "number"}, 4, []),
    ({"type": "integer", "format": "int32"}, True, ['x: Invalid value: "": x in body must be of type int32: ""']),
    (
        {"type": "integer", "format": "int32"},
        2**31,
        ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x'],
    ),
    ({"type": "object"}, [1], ['x: Invalid value: "array": x in body must be of type object: "array"']),
    ({"type": "string", "nullable": True}, None, []),
    (
        {"x-kubernetes-int-or-string": True},
        True,
        ['x: Invalid value: "boolean": x in body must be of type integer,string: "boolean"'],
    ),
    ({"x-kubernetes-int-or-string": True}, "a", []),
    ({"x-kubernetes-int-or-string": True}, 1, []),
    (
        {"type": "string", "format": "date-time"},
        "a",
        ['x: Invalid value: "a": x in body must be of type date-time: "a"'],
    ),
    (
        {"type": "string", "format": "date-time"},
        5,
        ['x: Invalid value: "int64": x in body must be of type date-time: "int64"'],
    ),
    ({"type": "string", "format": "date-time"}, [1], []),
    ({"type": "string", "format": "unheard-of"}, "a", []),
    ({"type": "string", "maxLength": 2}, "abc", ["x: Too long: may not be more than 2 bytes"]),
    ({"type": "string", "maxLength": 1}, "abc", ["x: Too long: may not be more than 1 byte"]),
    ({"type": "string", "minLength": 2}, "ä", ['x: Invalid value: "ä": x in body should be at least 2 chars long']),
    ({"type": "string", "pattern": "^[a-c]+$"}, "x", ["x: Invalid value: \"x\": x in body should match '^[a-c]+$'"]),
    ({"type": "string", "enum": ["a", "b"]}, "c", ['x: Unsupported value: "c": supported values: "a", "b"']),
    ({"type": "integer", "enum": [1, 2]}, 3, ['x: Unsupported value: 3: supported values: "1", "2"']),
    (
        {"type": "string", "nullable": True, "enum": ["a"]},
        None,
        ['x: Unsupported value: null: supported values: "a"'],
    ),
    ({"type": "integer", "minimum": 1}, 0, ["x: Invalid value: 0: x in body should be greater than or equal to 1"]),
    ({"type": "integer", "maximum": 1}, 2, ["x: Invalid value: 2: x in body should be less than or equal to 1"]),
    (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        1,
        ["x: Invalid value: 1: x in body should be greater than 1"],
    ),
    (
        {"type": "integer", "maximum": 1, "exclusiveMaximum": True},
        1,
        ["x: Invalid value: 1: x in body should be less than 1"],
    ),
    ({"type": "integer", "multipleOf": 3}, 4, ["x: Invalid value: 4: x in body should be a multiple of 3"]),
    ({"type": "number", "multipleOf": 0.5}, 0.75, ["x: Invalid value: 0.75: x in body should be a multiple of 0.5"]),
    (
        {"type": "number", "maximum": 2500000},
        2500000.5,
        ["x: Invalid value: 2.5000005e+06: x in body should be less than or equal to 2.5e+06"],
    ),
    (
        {"type": "integer", "minimum": 0.5},
        5,
        ['<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in x'],
    ),
    (
        {"type": "array", "minItems": 1, "items": {"type": "string"}},
        [],
        ["x: Invalid value: 0: x in body should have at least 1 items"],
    ),
    (
        {"type": "array", "items": {"type": "string"}},
        ["a", 1],
        ['x[1]: Invalid value: "integer": x[1] in body must be of type string: "integer"'],
    ),
    (
        {"type": "object", "minProperties": 1},
        {},
        ["x: Invalid value: 0: x in body should have at least 1 properties"],
    ),
    ({"type": "object", "required": ["a", "b"]}, {"a": 1}, ["x.b: Required value"]),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"k": "v"},
        ['x.k: Invalid value: "string": x.k in body must be of type integer: "string"'],
    ),
    (
        {"type": "object", "additionalProperties": False},
        {"k": "v"},
        ['x: Invalid value: "k": x.k in body is a forbidden property'],
    ),
    (
        {"type": "string", "allOf": [{"minLength": 3}, {"pattern": "^a"}]},
        "ab",
        [
            'x: Invalid value: "ab": x in body should be at least 3 chars long',
            '<nil>: Invalid value: "": "x" must validate all the schemas (allOf)',
        ],
    ),
    (
        {"type": "string", "allOf": [{"minLength": 3}]},
        "ab",
        [
            'x: Invalid value: "ab": x in body should be at least 3 chars long',
            '<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated',
        ],
    ),
    (
        {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        ['<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)', "x.a: Required value"],
    ),
    (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": 1, "b": 1},
        ['<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ),
    (
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        [
            '<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid',
            "x.a: Required value",
        ],
    ),
    (
        {"type": "string", "not": {"enum": ["x"]}},
        "x",
        ['<nil>: Invalid value: "": "x" must not validate the schema (not)'],
    ),
    ({"x-kubernetes-preserve-unknown-fields": True}, {"any": [None]}, []),
]


@pytest.mark.parametrize(("schema", "value", "errors"), CASES)
def test_errors_read_as_those_of_the_real_server(schema: JSONObject, value: JSONValue, errors: list[str]) -> None:
    validator = Validator({"type": "object", "properties": {"x": schema}})

    assert [str(error) for error in validator.validate({"x": value})] == errors
    assert validator.accepts({"x": value}) is not bool(errors)


def test_too_many_are_counted() -> None:
    items: JSONObject = {"type": "array", "maxItems": 1, "items": {"type": "string"}}
    properties: JSONObject = {"type": "object", "maxProperties": 2}
    validator = Validator({"type": "object", "properties": {"x": items, "y": properties}})

    errors = validator.validate({"x": ["a", "b"], "y": {"a": 1, "b": 2, "c": 3}})

    assert [(error.type, error.field, error.value, error.detail) for error in errors] == [
        ("FieldValueTooMany", "x", 2, "must have at most 1 item"),
        ("FieldValueTooMany", "y", 3, "must have at most 2 items"),
    ]


def test_of_alternatives_the_one_that_got_furthest_is_explained() -> None:
    schema: JSONObject = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "anyOf": [
            {"properties": {"a": {"minimum": 5}}, "required": ["a"]},
            {"properties": {"a": {"maximum": 2}, "b": {"minLength": 3}}, "required": ["b"]},
        ],
    }

    errors = Validator({"type": "object", "properties": {"x": schema}}).validate({"x": {"a": 1, "b": "x"}})

    assert [str(error) for error in errors] == [
        '<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)',
        'x.b: Invalid value: "x": x.b in body should be at least 3 chars long',
    ]


def test_a_value_in_a_field_is_reported_under_that_field() -> None:
    validator = Validator({"type": "object", "required": ["a"], "properties": {"b": {"type": "string"}}})

    assert [str(error) for error in validator.validate({"b": 1}, "status")] == [
        'status.b: Invalid value: "integer": b in body must be of type string: "integer"',
        "status.a: Required value",
    ]
    assert [str(error) for error in validator.validate(1, "status")] == [
        'status: Invalid value: "integer":  in body must be of type object: "integer"'
    ]


SPEC: JSONObject = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "maxLength": 2},
        "o": {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}, "y": {"type": "integer"}}},
        "m": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 3}},
            },
        },
        "l": {"type": "array", "items": {"type": "integer"}},
        "all": {"type": "object", "properties": {"p": {}, "q": {}}, "allOf": [{"properties": {"p": {"minimum": 5}}}]},
    },
}
OLD: JSONObject = {
    "a": "too long",
    "o": {"y": "bad"},
    "m": [{"k": "1", "v": 9}, {"k": "2", "v": 1}],
    "l": ["x", 1],
    "all": {"p": 1, "q": 1},
}


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({}, []),
        ({"a": "also long"}, ["spec.a"]),
        ({"o": {"y": "bad", "x": "now"}}, []),
        ({"o": {"y": "worse"}}, ["spec.o.y", "spec.o.x"]),
        ({"m": [{"k": "2", "v": 1}, {"k": "1", "v": 9}]}, []),
        ({"m": [{"k": "1", "v": 9}, {"k": "2", "v": 8}]}, ["spec.m[1].v"]),
        ({"l": ["x", 1, 2]}, ["spec.l[0]"]),
        ({"all": {"p": 1, "q": 2}}, ["spec.all.p", "<nil>"]),
    ],
)
def test_an_update_is_not_blamed_for_what_was_wrong_before(change: JSONObject, fields: list[str]) -> None:
    validator = Validator({"type": "object", "properties": {"spec": SPEC}})

    errors = validator.validate_update({"spec": {**OLD, **change}}, {"spec": OLD})

    assert [error.field for error in errors] == fields
