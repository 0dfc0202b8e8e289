from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.version_rules import (
    check_columns,
    check_deprecation,
    check_selectable,
    check_subresources,
    check_validation,
)

SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        "spec": {
            "type": "object",
            "properties": {
                "s": {"type": "string"},
                "o": {"type": "object"},
                "m": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
    },
}


def test_selectable_fields_are_scalars_that_the_schema_has() -> None:
    paths = [".spec.s", ".spec.s", ".spec.o", "spec", ".spec[0]", ".spec.", ".nope", ".spec.m.x", "", ".metadata.name"]

    errors = check_selectable([{"jsonPath": path} for path in paths], SCHEMA, "f")

    assert [str(error) for error in errors] == [
        'f[1].jsonPath: Duplicate value: ".spec.s"',
        'f[2].jsonPath: Invalid value: ".spec.o": must point to a field of type string, boolean or integer. '
        "Enum string fields and strings with formats are allowed.",
        'f[3].jsonPath: Invalid value: "spec": is an invalid path: expected [ or . but got: spec',
        'f[4].jsonPath: Invalid value: ".spec[0]": is an invalid path: array notation is not allowed',
        'f[5].jsonPath: Invalid value: ".spec.": is an invalid path: unexpected end of JSON path',
        'f[6].jsonPath: Invalid value: ".nope": is an invalid path: does not refer to a valid field',
        "f[8].jsonPath: Required value",
        'f[9].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata',
    ]


def test_no_more_than_eight_fields_are_selectable() -> None:
    names = [f"n{number}" for number in range(9)]
    schema: JSONObject = {"type": "object", "properties": {name: {"type": "string"} for name in names}}

    (error,) = check_selectable([{"jsonPath": f".{name}"} for name in names], schema, "f")

    assert (error.type, error.field, error.value) == ("FieldValueTooMany", "f", 9)
    assert error.detail == "must have at most 8 items"


def test_columns_have_a_name_a_known_type_and_a_path() -> None:
    errors = check_columns(
        [{"name": "", "type": "", "jsonPath": ""}, {"name": "a", "type": "foo", "format": "x", "jsonPath": "a"}], "c"
    )

    assert [str(error) for error in errors] == [
        "c[0].name: Required value",
        "c[0].type: Required value: must be one of boolean,date,integer,number,string",
        "c[0].JSONPath: Required value",
        'c[1].type: Invalid value: "foo": must be one of boolean,date,integer,number,string',
        'c[1].format: Invalid value: "x": must be one of byte,date,date-time,double,float,int32,int64,password',
        'c[1].JSONPath: Invalid value: "a": must be a simple json path starting with .',
    ]


@pytest.mark.parametrize(
    ("scale", "errors"),
    [
        (
            {},
            ["s.scale.specReplicasPath: Required value", "s.scale.statusReplicasPath: Required value"],
        ),
        (
            {"specReplicasPath": "spec.n", "statusReplicasPath": ".spec.n", "labelSelectorPath": ".x"},
            [
                's.scale.specReplicasPath: Invalid value: "spec.n": must be a simple json path starting with .',
                's.scale.statusReplicasPath: Invalid value: ".spec.n": should be a json path under .status',
                's.scale.labelSelectorPath: Invalid value: ".x": should be a json path under either .spec or .status',
            ],
        ),
        ({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"}, []),
    ],
)
def test_the_paths_of_scale_lead_to_their_fields(scale: JSONObject, errors: list[str]) -> None:
    assert [str(error) for error in check_subresources({"scale": scale}, "s")] == errors


@pytest.mark.parametrize(
    ("version", "details"),
    [
        ({"deprecated": True, "deprecationWarning": "soon gone"}, []),
        ({"deprecationWarning": "x"}, ["can only be set for deprecated versions"]),
        ({"deprecated": True, "deprecationWarning": ""}, ["must not be an empty string"]),
        (
            {"deprecated": True, "deprecationWarning": "ä\n" + "y" * 300},
            [
                "must be <= 256 characters long",
                "must only contain printable UTF-8 characters; non-printable character found at index 2",
            ],
        ),
    ],
)
def test_a_deprecation_warning_can_be_sent_in_a_header(version: JSONObject, details: list[str]) -> None:
    assert [error.detail for error in check_deprecation(version, "v")] == details


def test_with_a_status_subresource_the_root_has_only_allowed_keywords() -> None:
    validation: JSONObject = {"openAPIV3Schema": {"type": "object", "maxProperties": 3}}

    (error,) = check_validation(validation, "v", has_status=True)

    assert str(error).startswith('v.openAPIV3Schema: Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"",')
    assert error.detail == (
        "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
        "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
        "XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource "
        "is enabled"
    )
    assert list(check_validation(validation, "v", has_status=False)) == []


def test_an_unsupported_keyword_is_reported_once() -> None:
    schema: JSONObject = {"type": "object", "properties": {"a": {"type": "string", "id": "x"}}}

    assert [str(error) for error in check_validation({"openAPIV3Schema": schema}, "v", has_status=False)] == [
        "v.openAPIV3Schema.properties[a].id: Forbidden: id is not supported"
    ]
    schema = {"type": "object", "$schema": "x"}
    assert [str(error) for error in check_validation({"openAPIV3Schema": schema}, "v", has_status=False)] == [
        "v.openAPIV3Schema: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"
    ]
