"""Validation rules of custom resources: what they refuse and why, on creation, on updates and in definitions."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator

import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import Invalid
from kubewright.client.wait import established

GROUP = "rules.example.com"
AnyDefinition = Dynamic.of(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
Ruled = Dynamic.of(f"{GROUP}/v1", "Ruled", plural="ruleds", namespaced=False)


def ruled(schema: dict[str, JSONValue], *rules: str, **more: JSONValue) -> dict[str, JSONValue]:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **more} for rule in rules]}


TEXT: dict[str, JSONValue] = {"type": "string", "maxLength": 30}
NUMBER: dict[str, JSONValue] = {"type": "integer"}
TEXTS: dict[str, JSONValue] = {"type": "array", "maxItems": 5, "items": TEXT}
RANGE: dict[str, JSONValue] = {"type": "object", "properties": {"low": NUMBER, "high": NUMBER}}
PORT: dict[str, JSONValue] = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": TEXT, "number": ruled(NUMBER, "self >= oldSelf", message="ports only grow")},
}
PROPERTIES: dict[str, JSONValue] = {
    "range": ruled(RANGE, "self.low <= self.high", message="low must not exceed high", fieldPath=".low"),
    "even": ruled(NUMBER, "self % 2 == 0"),
    "described": ruled(NUMBER, "self < 10", messageExpression="'at most 9, not %d'.format([self])"),
    "forbidden": ruled(NUMBER, "self == 0", reason="FieldValueForbidden", message="keep out"),
    "duplicate": ruled(TEXTS, "self.all(x, self.exists_one(y, x == y))", reason="FieldValueDuplicate"),
    "either": ruled({"x-kubernetes-int-or-string": True}, "type(self) == int ? self < 100 : self.endsWith('%')"),
    "numeric": ruled({"x-kubernetes-int-or-string": True}, "self > 5"),
    "quantity": ruled(TEXT, "isQuantity(self) && quantity(self).isLessThan(quantity('2Gi'))"),
    "address": ruled(TEXT, "cidr('10.0.0.0/8').containsIP(ip(self))"),
    "page": ruled(TEXT, "url(self).getScheme() == 'https'"),
    "label": ruled(TEXT, "!format.dns1123Label().validate(self).hasValue()"),
    "pattern": ruled(TEXT, "self.matches('^[a-z]+$')", "self.size() > 1"),
    "times": ruled(
        {"type": "array", "maxItems": 3, "items": {"type": "string", "format": "date-time"}}, "self.isSorted()"
    ),
    "labels": {"type": "object", "maxProperties": 5, "additionalProperties": ruled(TEXT, "self != ''")},
    "fixed": ruled(TEXT, "self == oldSelf", message="fixed is immutable"),
    "once": ruled(TEXT, "!oldSelf.hasValue() || oldSelf.value() == self", optionalOldSelf=True),
    "ports": {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": PORT,
    },
    "my-field": ruled(NUMBER, "self > 0"),
    "nested": ruled(
        {"type": "object", "properties": {"a-b": NUMBER, "namespace": TEXT, "list": TEXTS}},
        "!has(self.a__dash__b) || self.a__dash__b > 0",
        "self.?namespace.orValue('x') == 'x'",
        "self.list.map(x, x.size()) == [1, 1]",
    ),
}

# A value of one field, and the errors: the field (if not that one) and the message.
BAD: list[tuple[str, JSONValue, list[tuple[str, str]]]] = [
    ("range", {"low": 2, "high": 1}, [("spec.range.low", "Invalid value: low must not exceed high")]),
    (
        "range",
        {"low": 2},
        [("", 'Invalid value: "object": no such key: high evaluating rule: low must not exceed high')],
    ),
    ("even", 3, [("", "Invalid value: 3: failed rule: self % 2 == 0")]),
    ("described", 11, [("", "Invalid value: 11: at most 9, not 11")]),
    ("forbidden", 1, [("", "Forbidden: keep out")]),
    ("duplicate", ["a", "b", "a"], [("", "Duplicate value")]),
    ("either", 100, [("", "Invalid value: 100: failed rule: type(self) == int ? self < 100 : self.endsWith('%')")]),
    (
        "numeric",
        "a",
        [
            (
                "",
                "Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function "
                "or macro signature for rule: self > 5",
            )
        ],
    ),
    (
        "quantity",
        "4Gi",
        [
            (
                "",
                "Invalid value: \"4Gi\": failed rule: isQuantity(self) && quantity(self).isLessThan(quantity('2Gi'))",
            )
        ],
    ),
    (
        "address",
        "11.0.0.1",
        [("", "Invalid value: \"11.0.0.1\": failed rule: cidr('10.0.0.0/8').containsIP(ip(self))")],
    ),
    (
        "address",
        "10.0.0",
        [
            (
                "",
                'Invalid value: "string": IP Address "10.0.0" parse error during conversion from string: '
                'ParseAddr("10.0.0"): IPv4 address too short evaluating rule: '
                "cidr('10.0.0.0/8').containsIP(ip(self))",
            )
        ],
    ),
    ("page", "http://a", [("", "Invalid value: \"http://a\": failed rule: url(self).getScheme() == 'https'")]),
    (
        "page",
        "a",
        [
            (
                "",
                'Invalid value: "string": URL parse error during conversion from string: parse "a": invalid URI for '
                "request evaluating rule: url(self).getScheme() == 'https'",
            )
        ],
    ),
    ("label", "A", [("", 'Invalid value: "A": failed rule: !format.dns1123Label().validate(self).hasValue()')]),
    (
        "pattern",
        "1",
        [
            ("", "Invalid value: \"1\": failed rule: self.matches('^[a-z]+$')"),
            ("", 'Invalid value: "1": failed rule: self.size() > 1'),
        ],
    ),
    (
        "times",
        ["2024-01-02T00:00:00Z", "2024-01-01T00:00:00Z"],
        [("", "Invalid value: failed rule: self.isSorted()")],
    ),
    ("labels", {"a": "b", "c": ""}, [("spec.labels[c]", "Invalid value: \"\": failed rule: self != ''")]),
    ("my-field", 0, [("", "Invalid value: 0: failed rule: self > 0")]),
    (
        "nested",
        {"a-b": 0, "namespace": "y", "list": ["a"]},
        [
            ("", "Invalid value: failed rule: !has(self.a__dash__b) || self.a__dash__b > 0"),
            ("", "Invalid value: failed rule: self.?namespace.orValue('x') == 'x'"),
            ("", "Invalid value: failed rule: self.list.map(x, x.size()) == [1, 1]"),
        ],
    ),
]
GOOD: dict[str, JSONValue] = {
    "range": {"low": 1, "high": 2},
    "even": 4,
    "described": 9,
    "forbidden": 0,
    "duplicate": ["a", "b"],
    "either": "100%",
    "numeric": 6,
    "quantity": "1Gi",
    "address": "10.1.2.3",
    "page": "https://a/b",
    "label": "a-b",
    "pattern": "ab",
    "times": ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"],
    "labels": {"a": "b"},
    "fixed": "x",
    "once": "y",
    "ports": [{"name": "a", "number": 1}],
    "my-field": 1,
    "nested": {"a-b": 1, "list": ["a", "b"]},
}

# A change of an object that was good, and the errors.
BAD_CHANGES: list[tuple[dict[str, JSONValue], list[tuple[str, str]]]] = [
    ({"fixed": "z"}, [("spec.fixed", 'Invalid value: "z": fixed is immutable')]),
    (
        {"once": "z"},
        [("spec.once", 'Invalid value: "z": failed rule: !oldSelf.hasValue() || oldSelf.value() == self')],
    ),
    (
        {"ports": [{"name": "b", "number": 0}, {"name": "a", "number": 0}]},
        [("spec.ports[1].number", "Invalid value: 0: ports only grow")],
    ),
]
# A faulty schema of a field, and the errors in its definition.
BAD_SCHEMAS: list[tuple[dict[str, JSONValue], list[tuple[str, str]]]] = [
    # Rules see a default as a new value and as one that stays, without the defaults of what is in it.
    (ruled({**NUMBER, "default": 1}, "self % 2 == 0"), [("default", "Invalid value: 1: failed rule: self % 2 == 0")]),
    (
        ruled({**NUMBER, "default": 1}, "self != oldSelf"),
        [("default", "Invalid value: 1: failed rule: self != oldSelf")],
    ),
    (ruled({**NUMBER, "default": 1}, "self == oldSelf"), []),
    (
        ruled({**NUMBER, "default": 1}, "!oldSelf.hasValue()", optionalOldSelf=True),
        [("default", "Invalid value: 1: failed rule: !oldSelf.hasValue()")],
    ),
    (
        ruled({**NUMBER, "default": 1}, "oldSelf.hasValue()", optionalOldSelf=True),
        [("default", "Invalid value: 1: failed rule: oldSelf.hasValue()")],
    ),
    (
        ruled({"type": "object", "default": {}, "properties": {"b": {**NUMBER, "default": 7}}}, "self.b > 5"),
        [("default", 'Invalid value: "object": no such key: b evaluating rule: self.b > 5')],
    ),
    (
        {"type": "object", "default": {"b": 1}, "properties": {"b": ruled(NUMBER, "self > 1", "true")}},
        [("default.b", "Invalid value: 1: failed rule: self > 1")],
    ),
    (
        {"type": "array", "items": ruled({**NUMBER, "default": 1}, "self > 1")},
        [("items.default", "Invalid value: 1: failed rule: self > 1")],
    ),
    (
        {"type": "object", "maxProperties": 3, "additionalProperties": ruled({**NUMBER, "default": 1}, "self > 1")},
        [],
    ),
    (
        ruled(RANGE, "self.nope < 1"),
        [
            (
                "x-kubernetes-validations[0].rule",
                'Invalid value: {"Rule":"self.nope \\u003c 1","Message":"","MessageExpression":"","Reason":null,'
                '"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field '
                "'nope'\n | self.nope < 1\n | ....^",
            )
        ],
    ),
    (
        ruled(NUMBER, "self +"),
        [
            (
                "x-kubernetes-validations[0].rule",
                'Invalid value: {"Rule":"self +","Message":"","MessageExpression":"","Reason":null,"FieldPath":"",'
                '"OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:7: Syntax error: mismatched input '
                "'<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, "
                "NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self +\n | ......^",
            )
        ],
    ),
    (
        ruled(NUMBER, "self"),
        [
            (
                "x-kubernetes-validations[0].rule",
                'Invalid value: {"Rule":"self","Message":"","MessageExpression":"","Reason":null,"FieldPath":"",'
                '"OptionalOldSelf":null}: cel expression must evaluate to a bool',
            )
        ],
    ),
    (
        ruled(NUMBER, "true", reason="Nope"),
        [
            (
                "x-kubernetes-validations[0].reason",
                'Unsupported value: "Nope": supported values: "FieldValueDuplicate", "FieldValueForbidden", '
                '"FieldValueInvalid", "FieldValueRequired"',
            )
        ],
    ),
    (
        ruled(RANGE, "true", fieldPath=".middle"),
        [("x-kubernetes-validations[0].fieldPath", 'Invalid value: ".middle": must be a valid path')],
    ),
    (
        {"type": "array", "maxItems": 3, "items": ruled(NUMBER, "self == oldSelf")},
        [
            (
                "items.x-kubernetes-validations[0].rule",
                'Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema '
                "within spec.validation.openAPIV3Schema.properties[spec].properties[a]",
            )
        ],
    ),
    (
        {
            "type": "array",
            "maxItems": 2000,
            "items": ruled({"type": "string", "maxLength": 1000}, "self.contains('abc')"),
        },
        [],
    ),
    (
        {"type": "array", "items": ruled({"type": "string", "maxLength": 400}, "self.contains('abc')")},
        [
            (
                "items.x-kubernetes-validations[0].rule",
                "Forbidden: estimated rule cost exceeds budget by factor of 16.9x (try simplifying the rule, or adding "
                "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)",
            ),
            (
                "items.x-kubernetes-validations[0].rule",
                "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
            ),
            (
                "",
                "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds "
                "budget by factor of 1.7x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength "
                "where arrays, maps, and strings are declared)",
            ),
        ],
    ),
]


def definition(plural: str, kind: str, properties: dict[str, JSONValue]) -> Dynamic:
    schema: JSONValue = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version: JSONValue = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec: dict[str, JSONValue] = {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": plural, "kind": kind},
        "versions": [version],
    }
    return AnyDefinition(metadata=ObjectMeta(name=f"{plural}.{GROUP}"), content={"spec": spec})


@pytest.fixture
async def kind(admin: Client) -> AsyncIterator[None]:
    """A custom kind with many rules."""
    created = await admin.apply(definition("ruleds", "Ruled", PROPERTIES))
    await admin.wait_for(await admin.get(CustomResourceDefinition, f"ruleds.{GROUP}"), established)
    yield
    await admin.delete(created)


def found(error: Invalid) -> list[tuple[str, str]]:
    return sorted((cause.field, cause.message) for cause in error.status.causes)


async def is_accepted(admin: Client, obj: Dynamic) -> bool:
    try:
        await admin.create(obj, dry_run=True)
    except Invalid:
        return False
    return True


@pytest.mark.usefixtures("kind")
async def test_a_value_that_a_rule_refuses_is_reported_with_field_and_message(admin: Client) -> None:
    for name, value, expected in BAD:
        with pytest.raises(Invalid) as caught:
            await admin.create(Ruled(metadata=ObjectMeta(name="bad"), content={"spec": {name: value}}), dry_run=True)

        errors = sorted((field or f"spec.{name}", message) for field, message in expected)
        assert (name, value, found(caught.value)) == (name, value, errors)


@pytest.mark.usefixtures("kind")
async def test_rules_that_hold_refuse_nothing(admin: Client) -> None:
    obj = Ruled(metadata=ObjectMeta(name="good"), content={"spec": copy.deepcopy(GOOD)})

    created = await admin.create(obj, dry_run=True)

    assert created.get("spec") == GOOD


@pytest.mark.usefixtures("kind")
async def test_transition_rules_see_the_previous_value(admin: Client) -> None:
    created = await admin.create(Ruled(metadata=ObjectMeta(name="good"), content={"spec": copy.deepcopy(GOOD)}))
    for change, expected in BAD_CHANGES:
        changed = copy.deepcopy(created)
        changed.content["spec"] = {**GOOD, **change}

        with pytest.raises(Invalid) as caught:
            await admin.update(changed, dry_run=True)

        assert (change, found(caught.value)) == (change, expected)


async def test_a_new_rule_does_not_stop_updates_of_other_fields(admin: Client) -> None:
    """Ratcheting: what was stored before the rule came may stay."""
    created = await admin.apply(definition("ratchets", "Ratchet", {"a": NUMBER, "b": NUMBER}))
    await admin.wait_for(await admin.get(CustomResourceDefinition, f"ratchets.{GROUP}"), established)
    ratchet = Dynamic.of(f"{GROUP}/v1", "Ratchet", plural="ratchets", namespaced=False)
    stored = await admin.create(ratchet(metadata=ObjectMeta(name="old"), content={"spec": {"a": 3, "b": 1}}))
    await admin.apply(definition("ratchets", "Ratchet", {"a": ruled(NUMBER, "self % 2 == 0"), "b": NUMBER}))
    refused = ratchet(metadata=ObjectMeta(name="probe"), content={"spec": {"a": 3}})
    async with asyncio.timeout(60):
        while await is_accepted(admin, refused):
            # The server takes up a changed definition a moment later, without any notification.
            await asyncio.sleep(0)

    stored.content["spec"] = {"a": 3, "b": 2}
    kept = await admin.update(stored)
    kept.content["spec"] = {"a": 5, "b": 2}
    with pytest.raises(Invalid) as caught:
        await admin.update(kept)

    assert found(caught.value) == [("spec.a", "Invalid value: 5: failed rule: self % 2 == 0")]
    await admin.delete(created)


async def test_a_definition_with_a_bad_rule_is_refused(admin: Client) -> None:
    root = "spec.validation.openAPIV3Schema"
    for schema, expected in BAD_SCHEMAS:
        attempt = admin.create(definition("refuseds", "Refused", {"a": schema}), dry_run=True)
        if not expected:
            await attempt
            continue
        with pytest.raises(Invalid) as caught:
            await attempt

        errors = [(f"{root}.properties[spec].properties[a].{at}" if at else root, refusal) for at, refusal in expected]
        assert (schema, found(caught.value)) == (schema, sorted(errors))


# Rules over a list of ones, and the number of them up to which they may run. More forms are in the tests of `metering`.
COSTS: dict[str, tuple[str, int]] = {"all": ("self.all(q, self.all(x, x >= 0))", 446)}
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


async def test_a_rule_that_costs_too_much_is_stopped(admin: Client) -> None:
    numbers: dict[str, JSONValue] = {"type": "array", "maxItems": 600, "items": NUMBER}
    rules: dict[str, JSONValue] = {name: ruled(numbers, rule) for name, (rule, _) in COSTS.items()}
    created = await admin.apply(definition("dears", "Dear", rules))
    await admin.wait_for(await admin.get(CustomResourceDefinition, f"dears.{GROUP}"), established)
    dear = Dynamic.of(f"{GROUP}/v1", "Dear", plural="dears", namespaced=False)

    for name, (rule, most) in COSTS.items():
        just = dear(metadata=ObjectMeta(name="just"), content={"spec": {name: [1] * most}})
        over = dear(metadata=ObjectMeta(name="over"), content={"spec": {name: [1] * (most + 1)}})
        await admin.create(just, dry_run=True)
        with pytest.raises(Invalid) as caught:
            await admin.create(over, dry_run=True)

        why = "no further validation rules will be run due to call cost exceeds limit for rule"
        limit = "operation cancelled: actual cost limit exceeded"
        assert found(caught.value) == [(f"spec.{name}", f"Invalid value: \"array\": '{limit}': {why}: {rule}")]
    await admin.delete(created)


async def test_rules_that_cost_too_much_together_are_stopped(admin: Client) -> None:
    """With patterns, which cost much and take no time."""
    long: dict[str, JSONValue] = {"type": "string", "maxLength": 1000}
    many: JSONValue = {"type": "array", "maxItems": 24, "items": ruled(long, f"!self.matches('{'y' * 4000}')")}
    created = await admin.apply(definition("manies", "Many", {f"field{number}": many for number in range(6)}))
    await admin.wait_for(await admin.get(CustomResourceDefinition, f"manies.{GROUP}"), established)
    kind = Dynamic.of(f"{GROUP}/v1", "Many", plural="manies", namespaced=False)
    texts: JSONValue = ["x" * 1000] * 24

    just = {f"field{number}": texts for number in range(4)}
    await admin.create(kind(metadata=ObjectMeta(name="just"), content={"spec": just}), dry_run=True)
    over = kind(metadata=ObjectMeta(name="over"), content={"spec": {f"field{number}": texts for number in range(6)}})
    with pytest.raises(Invalid) as caught:
        await admin.create(over, dry_run=True)

    # Each costs 101,002 of 10,000,000; whichever field the server comes to last, it comes to its fourth text.
    ((field, message),) = found(caught.value)
    assert (field[-3:], message) == ("[3]", f'Invalid value: "string": {OUT_OF_BUDGET}')
    await admin.delete(created)
