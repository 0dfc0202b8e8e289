"""Schemas of custom resources: what they accept, drop and fill in, and which definitions there may be."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.conformance.custom_kinds import Kind, typed, version

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import BadRequest, Invalid
from kubewright.client.wait import condition, established

GROUP = "schemas.example.com"
AnyDefinition = Dynamic.of(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
Checked = Dynamic.of(f"{GROUP}/v1", "Checked", plural="checkeds", namespaced=False)

KEYED: dict[str, JSONValue] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
}
PROPERTIES: dict[str, JSONValue] = {
    "text": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-c]+$"},
    "number": {"type": "integer", "minimum": 1, "maximum": 10},
    "small": {"type": "integer", "format": "int32"},
    "time": {"type": "string", "format": "date-time"},
    "address": {"type": "string", "format": "ipv4"},
    "choice": {"type": "string", "enum": ["a", "b"]},
    "either": {"x-kubernetes-int-or-string": True},
    "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "keyed": KEYED,
    "nested": {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string"}, "b": {"type": "integer", "default": 7}},
    },
    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "one": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "nothing": {"type": "string", "nullable": True},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "resource": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "port": {"type": "integer", "default": 80},
}

# A value of one field, and the errors: the field (if not that one) and the message.
BAD: list[tuple[str, JSONValue, list[tuple[str, str]]]] = [
    (
        "text",
        5,
        [("", 'Invalid value: "integer": spec.text in body must be of type string: "integer"')],
    ),
    ("text", "a", [("", 'Invalid value: "a": spec.text in body should be at least 2 chars long')]),
    ("text", "aaaaaa", [("", "Too long: may not be more than 5 bytes")]),
    ("text", "xyz", [("", "Invalid value: \"xyz\": spec.text in body should match '^[a-c]+$'")]),
    ("number", 0, [("", "Invalid value: 0: spec.number in body should be greater than or equal to 1")]),
    ("number", 11, [("", "Invalid value: 11: spec.number in body should be less than or equal to 10")]),
    (
        "number",
        1.5,
        [
            ("<nil>", 'Invalid value: "": Checked value must be of type integer (default format) in spec.number'),
            ("", 'Invalid value: "number": spec.number in body must be of type integer: "number"'),
        ],
    ),
    (
        "small",
        2**31,
        [("<nil>", 'Invalid value: "": Checked value must be of type integer with format int32 in spec.small')],
    ),
    ("time", "now", [("", 'Invalid value: "now": spec.time in body must be of type date-time: "now"')]),
    ("time", 5, [("", 'Invalid value: "int64": spec.time in body must be of type date-time: "int64"')]),
    ("address", "1.2.3", [("", 'Invalid value: "1.2.3": spec.address in body must be of type ipv4: "1.2.3"')]),
    ("choice", "c", [("", 'Unsupported value: "c": supported values: "a", "b"')]),
    (
        "either",
        True,
        [("", 'Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean"')],
    ),
    ("list", [], [("", "Invalid value: 0: spec.list in body should have at least 1 items")]),
    ("list", ["a", "b", "c"], [("", "Too many: 3: must have at most 2 items")]),
    (
        "list",
        ["a", 1],
        [("spec.list[1]", 'Invalid value: "integer": spec.list[1] in body must be of type string: "integer"')],
    ),
    ("set", ["a", "a"], [("spec.set[1]", 'Duplicate value: "a"')]),
    ("keyed", [{"name": "a"}, {"name": "a"}], [("spec.keyed[1]", 'Duplicate value: {"name":"a"}')]),
    ("keyed", [{}], [("spec.keyed[0].name", "Required value")]),
    ("nested", {}, [("spec.nested.a", "Required value")]),
    (
        "map",
        {"k": "v"},
        [("spec.map.k", 'Invalid value: "string": spec.map.k in body must be of type integer: "string"')],
    ),
    (
        "one",
        {},
        [
            (
                "<nil>",
                'Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found none valid',
            ),
            ("spec.one.a", "Required value"),
        ],
    ),
    (
        "one",
        {"a": "x", "b": "y"},
        [
            (
                "<nil>",
                'Invalid value: "": "spec.one" must validate one and only one schema (oneOf). '
                "Found 2 valid alternatives",
            )
        ],
    ),
    ("resource", {}, [("spec.resource.apiVersion", "Required value"), ("spec.resource.kind", "Required value")]),
]

# The schema of a field `a`, and what is wrong with it.
BAD_SCHEMAS: list[tuple[dict[str, JSONValue], list[tuple[str, str]]]] = [
    ({}, [("type", "Required value: must not be empty for specified object fields")]),
    ({"type": "array"}, [("items", "Required value: must be specified")]),
    (
        {"type": "string", "allOf": [{"type": "string"}]},
        [("allOf[0].type", "Forbidden: must be empty to be structural")],
    ),
    (
        {"type": "string", "default": 5},
        [("default", 'Invalid value: "integer":  in body must be of type string: "integer"')],
    ),
    (
        {"type": "object", "default": {"x": 1}},
        [("default", 'Invalid value: {"x":1}: must not have unknown fields')],
    ),
    (
        {"type": "string", "pattern": "(?=a)"},
        [
            (
                "pattern",
                'Invalid value: "(?=a)": must be a valid regular expression, but isn\'t: '
                "error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
            )
        ],
    ),
    (
        {**KEYED, "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        [
            (
                "items.properties[name].default",
                "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
                "required property",
            )
        ],
    ),
]


def definition(
    plural: str, kind: str, properties: dict[str, JSONValue], version: dict[str, JSONValue] | None = None
) -> Dynamic:
    schema: JSONValue = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    only: dict[str, JSONValue] = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec: dict[str, JSONValue] = {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": plural, "kind": kind},
        "versions": [{**only, **(version or {})}],
    }
    return AnyDefinition(metadata=ObjectMeta(name=f"{plural}.{GROUP}"), content={"spec": spec})


@pytest.fixture
async def checked(admin: Client) -> None:
    """A custom kind with one field for every constraint."""
    await admin.apply(definition("checkeds", "Checked", PROPERTIES))
    await admin.wait_for(await admin.get(CustomResourceDefinition, f"checkeds.{GROUP}"), established)


def found(error: Invalid) -> list[tuple[str, str]]:
    return sorted((cause.field, cause.message) for cause in error.status.causes)


@pytest.mark.usefixtures("checked")
async def test_a_value_that_a_schema_refuses_is_reported_with_field_and_reason(admin: Client) -> None:
    for name, value, expected in BAD:
        obj = Checked(metadata=ObjectMeta(name="bad"), content={"spec": {name: value}})

        with pytest.raises(Invalid) as caught:
            await admin.create(obj, dry_run=True)

        errors = sorted((field or f"spec.{name}", message) for field, message in expected)
        assert (name, value, found(caught.value)) == (name, value, errors)


@pytest.mark.usefixtures("checked")
async def test_nulls_and_gaps_are_filled_and_the_unknown_is_dropped(admin: Client) -> None:
    spec: dict[str, JSONValue] = {
        "text": None,
        "nothing": None,
        "port": None,
        "unknown": 1,
        "nested": {"a": "x", "c": 1},
        "free": {"x": {"y": None}},
        "resource": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "bar": 1}, "zip": 1},
    }
    obj = Checked(metadata=ObjectMeta(name="good"), content={"spec": spec})

    created = await admin.create(obj, dry_run=True, field_validation="Ignore")

    assert created.get("spec") == {
        "nothing": None,
        "port": 80,
        "nested": {"a": "x", "b": 7},
        "free": {"x": {"y": None}},
        "resource": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "zip": 1},
    }


@pytest.mark.usefixtures("checked")
async def test_numbers_are_stored_as_go_writes_them(admin: Client) -> None:
    numbers: JSONValue = [1.0, -0.0, 1e3, 2**53 + 1, 0.5, 2**63, 1e21]
    spec: dict[str, JSONValue] = {"number": 3.0, "either": 4.0, "map": {"a": 1e2}, "free": {"x": numbers}}
    obj = Checked(metadata=ObjectMeta(name="whole"), content={"spec": spec})

    created = await admin.create(obj, dry_run=True)

    stored = cast("dict[str, Any]", created.get("spec"))
    found = [stored["number"], stored["either"], stored["map"]["a"], *stored["free"]["x"]]
    assert found[:8] == [3, 4, 100, 1, 0, 1000, 2**53 + 1, 0.5]
    assert [type(each) for each in found[:8]] == [int] * 7 + [float]
    assert [float(each) for each in found[8:]] == [2.0**63, 1e21], "the one with all digits, the other without"


@pytest.mark.usefixtures("checked")
async def test_unknown_fields_are_named_if_requested(admin: Client) -> None:
    spec: dict[str, JSONValue] = {
        "zzz": 1,
        "list": ["a"],
        "keyed": [{"name": "a", "b": 1}],
        "nested": {"a": "x", "c": 1},
    }
    obj = Checked(metadata=ObjectMeta(name="strict"), content={"spec": spec})

    with pytest.raises(BadRequest) as caught:
        await admin.create(obj, dry_run=True, field_validation="Strict")

    assert caught.value.status.message == (
        'Checked in version "v1" cannot be handled as a Checked: strict decoding error: '
        'unknown field "spec.keyed[0].b", unknown field "spec.nested.c", unknown field "spec.zzz"'
    )


async def test_a_definition_with_a_bad_schema_is_refused(admin: Client) -> None:
    path = "spec.validation.openAPIV3Schema.properties[spec].properties[a]"
    for schema, expected in BAD_SCHEMAS:
        with pytest.raises(Invalid) as caught:
            await admin.create(definition("refuseds", "Refused", {"a": schema}), dry_run=True)

        errors = sorted((f"{path}.{field}", message) for field, message in expected)
        assert (schema, found(caught.value)) == (schema, errors)


async def test_a_definition_is_named_by_plural_and_group(admin: Client) -> None:
    wrong = definition("refuseds", "Refused", {})
    wrong.metadata.name = f"others.{GROUP}"

    with pytest.raises(Invalid) as caught:
        await admin.create(wrong, dry_run=True)

    assert found(caught.value) == [
        ("metadata.name", f'Invalid value: "others.{GROUP}": must be spec.names.plural+"."+spec.group')
    ]


async def test_a_definition_whose_kind_is_taken_is_not_established(admin: Client) -> None:
    first, second = definition("takens", "Taken", {}), definition("latecomers", "Taken", {})
    await admin.wait_for(
        await admin.get(CustomResourceDefinition, (await admin.apply(first)).metadata.name), established
    )
    await admin.apply(second)

    late = await admin.get(CustomResourceDefinition, f"latecomers.{GROUP}")

    refused = await admin.wait_for(late, condition("NamesAccepted", "False"))

    assert refused is not None
    assert [(one.type, one.status, one.reason, one.message) for one in refused.status.conditions] == [
        ("NamesAccepted", "False", "ListKindConflict", '"TakenList" is already in use'),
        ("Established", "False", "NotAccepted", "not all names are accepted"),
    ]


@pytest.mark.usefixtures("checked")
async def test_the_kind_of_an_established_definition_stays(admin: Client) -> None:
    current = await admin.get(AnyDefinition, f"checkeds.{GROUP}")
    spec = current.content["spec"]
    assert isinstance(spec, dict)
    names = spec["names"]
    assert isinstance(names, dict)
    names["kind"] = "Other"

    with pytest.raises(Invalid) as caught:
        await admin.update(current, dry_run=True)

    assert found(caught.value) == [("spec.names.kind", 'Invalid value: "Other": field is immutable')]


HOSTILE = "a" * 40 + "!"


@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        ({"type": "string", "pattern": "^(a+)+$"}, "should match '^(a+)+$'"),
        ({"type": "string", "format": "email"}, "must be of type email"),
        (
            {"type": "string", "maxLength": 100, "x-kubernetes-validations": [{"rule": "self.matches('^(a+)+$')"}]},
            "failed rule: self.matches('^(a+)+$')",
        ),
    ],
    ids=["pattern", "format", "rule"],
)
async def test_a_text_that_can_be_read_in_very_many_ways_is_refused_at_once(
    kind: Kind, schema: JSONValue, refused: str
) -> None:
    """An engine that tries them one after the other takes hours."""
    await kind.define(version(schema=typed(text=schema)))

    answer = await kind.create("hostile", spec={"text": HOSTILE})

    assert answer.code == 422
    assert refused in str(answer.body["message"])
