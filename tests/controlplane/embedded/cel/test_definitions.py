"""Rules are checked when they are defined."""

from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.cel import check_rules

ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


def faults(spec: JSONObject) -> list[str]:
    found = check_rules({"type": "object", "properties": {"spec": spec}}, "schema")
    return [str(fault).removeprefix("schema.properties[spec].") for fault in found]


def with_rule(**rule: JSONValue) -> JSONObject:
    properties: JSONObject = {
        "a": {"type": "integer"},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    }
    return {"type": "object", "properties": properties, "x-kubernetes-validations": [rule]}


def test_good_rules_have_no_faults() -> None:
    assert faults(with_rule(rule="self.a > 1", message="m", reason="FieldValueRequired", fieldPath=".a")) == []


def test_the_whole_rule_is_shown_when_it_does_not_compile() -> None:
    assert faults(with_rule(rule="self.a < self.b && true", message="m")) == [
        'x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.a \\u003c self.b \\u0026\\u0026 true",'
        '"Message":"m","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: '
        "compilation failed: ERROR: <input>:1:14: undefined field 'b'\n | self.a < self.b && true\n | .............^"
    ]


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ({"rule": ""}, "rule: Required value: rule is not specified"),
        ({"rule": "  "}, "rule: Required value: rule is not specified"),
        ({"rule": "true", "message": "  "}, 'message: Invalid value: "  ": must be non-empty if specified'),
        ({"rule": "true", "message": "a\nb"}, 'message: Invalid value: "a\\nb": must not contain line breaks'),
        (
            {"rule": "true\n" + "&& true"},
            "message: Required value: message must be specified if rule contains line breaks",
        ),
        (
            {"rule": "true", "messageExpression": " "},
            "messageExpression: Required value: messageExpression must be non-empty if specified",
        ),
        (
            {"rule": "true", "reason": "Nope"},
            'reason: Unsupported value: "Nope": supported values: "FieldValueDuplicate", "FieldValueForbidden", '
            '"FieldValueInvalid", "FieldValueRequired"',
        ),
        ({"rule": "true", "fieldPath": ".b"}, 'fieldPath: Invalid value: ".b": must be a valid path'),
        ({"rule": "true", "fieldPath": "a"}, 'fieldPath: Invalid value: "a": must be a valid path'),
        ({"rule": "true", "fieldPath": ".m['\\q']"}, "fieldPath: Invalid value: \".m['\\\\q']\": must be a valid path"),
        (
            {"rule": "self.a > 1", "optionalOldSelf": True},
            "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
        ),
    ],
)
def test_what_is_written_around_a_rule_is_checked(rule: JSONObject, fault: str) -> None:
    assert faults(with_rule(**rule)) == [f"x-kubernetes-validations[0].{fault}"]


@pytest.mark.parametrize(
    ("rule", "detail"),
    [
        ({"rule": "self.a"}, "cel expression must evaluate to a bool"),
        ({"rule": "int('x') == 1"}, "program instantiation failed: type conversion error from 'string' to 'int'"),
        ({"rule": "true", "messageExpression": "self.a"}, "messageExpression must evaluate to a string"),
    ],
)
def test_expressions_must_be_of_their_type(rule: JSONObject, detail: str) -> None:
    (fault,) = faults(with_rule(**rule))
    assert fault.endswith(f": {detail}")


def test_the_past_cannot_be_requested_where_items_cannot_be_distinguished() -> None:
    item: JSONObject = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    assert faults({"type": "array", "maxItems": 5, "items": item}) == [
        'items.x-kubernetes-validations[0].rule: Invalid value: "self >= oldSelf": oldSelf cannot be used on the '
        "uncorrelatable portion of the schema within schema.properties[spec]"
    ]


def test_rules_on_untyped_values_are_refused() -> None:
    spec: JSONObject = {
        "type": "array",
        "items": {"x-kubernetes-preserve-unknown-fields": True},
        "x-kubernetes-validations": [{"rule": "self.size() == 1"}],
    }
    assert faults(spec) == [
        "x-kubernetes-validations: Internal error: internal error: failed to construct type information for "
        "x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
    ]


def test_expressions_are_left_alone_where_the_schema_is_faulty() -> None:
    spec = with_rule(rule="self.nope", reason="Nope")
    (fault,) = faults(spec)
    assert fault.startswith("x-kubernetes-validations[0].reason:")


def test_a_rule_that_may_become_too_expensive_is_refused() -> None:
    rule: JSONValue = [{"rule": "self.all(x, self.all(y, x == y))"}]
    unlimited: JSONObject = {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": rule}
    limited: JSONObject = {
        "type": "array",
        "maxItems": 100,
        "items": {"type": "string", "maxLength": 100},
        "x-kubernetes-validations": rule,
    }
    assert faults(unlimited) == [
        "x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x "
        f"{ADVICE}",
        "x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit "
        "for entire OpenAPIv3 schema",
        "schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds "
        f"budget by factor of more than 100x {ADVICE}",
    ]
    assert faults(limited) == []


def test_how_often_a_rule_may_run_counts() -> None:
    item: JSONObject = {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == 'a'"}]}
    nested: JSONObject = {"type": "array", "items": {"type": "array", "items": item}}
    assert faults(nested) == []
    item["x-kubernetes-validations"] = [{"rule": "self.matches('^[a-z]+$') && self.matches('^[a-z]*$')"}]
    (fault,) = faults(nested)
    assert fault == (
        "items.items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of "
        f"1.468006x {ADVICE}"
    )
