"""Rules on objects: where they apply, what they see, and the errors when they do not hold."""

from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.status import FieldError
from kubewright.controlplane.embedded.cel import compile_rules

EVEN: JSONValue = [{"rule": "self % 2 == 0"}]
KEYED: JSONObject = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


def rules(*sources: str, **more: JSONValue) -> JSONValue:
    return [{"rule": source, **more} for source in sources]


def errors(spec: JSONObject, new: JSONValue, old: JSONValue = None) -> list[str]:
    compiled = compile_rules({"type": "object", "properties": {"spec": spec}})
    assert compiled is not None
    found = compiled.validate({"spec": new}, None if old is None else {"spec": old})
    return [f"({error})" if error.tolerated else str(error) for error in found]


def integer(*sources: str, **more: JSONValue) -> JSONObject:
    return {"type": "integer", "x-kubernetes-validations": rules(*sources, **more)}


def structure(properties: JSONObject, *sources: str, **more: JSONValue) -> JSONObject:
    return {"type": "object", "properties": properties, "x-kubernetes-validations": rules(*sources, **more)}


def test_a_schema_without_rules_compiles_to_nothing() -> None:
    assert compile_rules({"type": "object", "properties": {"spec": {"type": "string"}}}) is None


def test_the_value_of_a_scalar_is_shown_and_the_one_of_an_object_is_not() -> None:
    assert errors(integer("self > 5"), 3) == ["spec: Invalid value: 3: failed rule: self > 5"]
    assert errors(structure({"a": {"type": "integer"}}, "self.a > 5"), {"a": 3}) == [
        "spec: Invalid value: failed rule: self.a > 5"
    ]


def test_a_rule_that_cannot_be_evaluated_names_the_type() -> None:
    assert errors(structure({"a": {"type": "integer"}}, "self.a > 5"), {}) == [
        'spec: Invalid value: "object": no such key: a evaluating rule: self.a > 5'
    ]


def test_rules_apply_to_items_and_values_wherever_they_are() -> None:
    spec: JSONObject = {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": EVEN}},
    }
    assert errors(spec, {"a": [2, 3], "b": [5]}) == [
        "spec[a][1]: Invalid value: 3: failed rule: self % 2 == 0",
        "spec[b][0]: Invalid value: 5: failed rule: self % 2 == 0",
    ]


def test_a_rule_at_the_root_sees_kind_and_name_but_no_other_metadata() -> None:
    schema: JSONObject = {
        "type": "object",
        "properties": {"spec": {"type": "integer"}},
        "x-kubernetes-validations": rules(
            "self.metadata.name == 'x' && self.kind == 'K' && self.apiVersion == 'v'", "has(self.metadata.labels)"
        ),
    }
    compiled = compile_rules(schema)
    assert compiled is not None
    object_: JSONObject = {"apiVersion": "v", "kind": "K", "metadata": {"name": "y", "labels": {"a": "b"}}, "spec": 1}
    first, second = compiled.validate(object_)
    assert (first.field, first.detail) == (
        "<nil>",
        "failed rule: self.metadata.name == 'x' && self.kind == 'K' && self.apiVersion == 'v'",
    )
    assert "undefined field 'labels'" in second.detail


def test_message_replaces_the_rule() -> None:
    spec = integer("self > 5", message=" too small ")
    assert errors(spec, 3) == ["spec: Invalid value: 3: too small"]


@pytest.mark.parametrize(
    ("expression", "detail"),
    [
        ("'got ' + string(self)", "got 3"),
        ("'  spaced  '", "spaced"),
        ("''", "plain"),
        ("'two\\nlines'", "plain"),
        ("string(1 / (self - 3))", "plain"),
    ],
)
def test_a_message_expression_is_used_unless_it_is_empty(expression: str, detail: str) -> None:
    spec = integer("self > 5", message="plain", messageExpression=expression)
    assert errors(spec, 3) == [f"spec: Invalid value: 3: {detail}"]


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("FieldValueInvalid", "spec: Invalid value: 3: no"),
        ("FieldValueForbidden", "spec: Forbidden: no"),
        ("FieldValueRequired", "spec: Required value: no"),
        ("FieldValueDuplicate", "spec: Duplicate value: 3"),
    ],
)
def test_reason_decides_the_kind_of_error(reason: str, shown: str) -> None:
    assert errors(integer("false", message="no", reason=reason), 3) == [shown]


@pytest.mark.parametrize(
    ("path", "field"), [(".a", "spec.a"), ("['a']", "spec.a"), (".m['x y']", "spec.m[x y]"), (".m.foo", "spec.m[foo]")]
)
def test_field_path_points_at_the_culprit(path: str, field: str) -> None:
    properties: JSONObject = {
        "a": {"type": "integer"},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    }
    assert errors(structure(properties, "false", fieldPath=path, message="no"), {}) == [f"{field}: Invalid value: no"]


def test_a_transition_rule_runs_only_when_there_is_an_old_value() -> None:
    spec = integer("self >= oldSelf")
    assert errors(spec, 3) == []
    assert errors(spec, 3, 4) == ["spec: Invalid value: 3: failed rule: self >= oldSelf"]
    assert errors({"type": "object", "properties": {"a": spec}}, {"a": 3}, {}) == []


def test_an_optional_old_value_makes_a_transition_rule_run_always() -> None:
    spec = integer("oldSelf.hasValue() ? self >= oldSelf.value() : self == 0", optionalOldSelf=True)
    assert errors(spec, 0) == []
    assert errors(spec, 3) != []
    assert errors(spec, 3, 2) == []
    assert errors(spec, 3, 5) != []


def test_items_of_a_list_of_type_map_belong_together_by_key() -> None:
    item: JSONObject = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": integer("self >= oldSelf")},
    }
    new: JSONValue = [{"name": "a", "size": 3}, {"name": "b", "size": 5}, {"name": "c", "size": 0}]
    old: JSONValue = [{"name": "b", "size": 5}, {"name": "a", "size": 4}]
    assert errors({"type": "array", "items": item, **KEYED}, new, old) == [
        "spec[0].size: Invalid value: 3: failed rule: self >= oldSelf"
    ]
    assert errors({"type": "array", "items": item}, new, old) == []


def test_sets_and_maps_are_equal_in_any_order() -> None:
    items: JSONObject = {"type": "object", "properties": {"name": {"type": "string"}}}
    rule = rules("self == oldSelf")
    as_map: JSONObject = {"type": "array", "items": items, "x-kubernetes-validations": rule, **KEYED}
    as_set: JSONObject = {
        "type": "array",
        "items": {"type": "integer"},
        "x-kubernetes-list-type": "set",
        "x-kubernetes-validations": rule,
    }
    atomic: JSONObject = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rule}
    assert errors(as_map, [{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}]) == []
    assert errors(as_set, [1, 2], [2, 1]) == []
    assert errors(atomic, [1, 2], [2, 1]) == ["spec: Invalid value: failed rule: self == oldSelf"]


def test_adding_merges_sets_and_maps() -> None:
    items: JSONObject = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    }
    as_map: JSONObject = {
        "type": "array",
        "items": items,
        "x-kubernetes-validations": rules("(self + oldSelf).map(e, e.name + string(e.size)) == ['a1', 'b3', 'c1']"),
        **KEYED,
    }
    old: JSONValue = [{"name": "b", "size": 3}, {"name": "c", "size": 1}]
    assert errors(as_map, [{"name": "a", "size": 1}, {"name": "b", "size": 2}], old) == []
    as_set: JSONObject = {
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "set",
        "x-kubernetes-validations": rules("self + oldSelf == ['a', 'b', 'c']"),
    }
    assert errors(as_set, ["a", "b"], ["b", "c"]) == []


def test_errors_that_an_update_did_not_touch_are_tolerated() -> None:
    spec: JSONObject = {
        "type": "object",
        "properties": {"a": {"type": "integer", "x-kubernetes-validations": EVEN}, "b": {"type": "integer"}},
    }
    assert errors(spec, {"a": 3, "b": 2}, {"a": 3, "b": 1}) == [
        "(spec.a: Invalid value: 3: failed rule: self % 2 == 0)"
    ]
    assert errors(spec, {"a": 5, "b": 1}, {"a": 3, "b": 1}) == ["spec.a: Invalid value: 5: failed rule: self % 2 == 0"]


def test_a_list_without_keys_is_left_alone_as_a_whole_or_not_at_all() -> None:
    spec: JSONObject = {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": EVEN}}
    assert errors(spec, [1, 2], [1, 2]) == ["(spec[0]: Invalid value: 1: failed rule: self % 2 == 0)"]
    assert errors(spec, [1, 2, 4], [1, 2]) == ["spec[0]: Invalid value: 1: failed rule: self % 2 == 0"]


def test_reordering_a_list_of_type_map_leaves_it_alone() -> None:
    items: JSONObject = {"type": "object", "properties": {"name": {"type": "string"}}}
    properties: JSONObject = {"l": {"type": "array", "items": items, **KEYED}, "n": {"type": "integer"}}
    new: JSONValue = {"l": [{"name": "a"}, {"name": "b"}], "n": 1}
    old: JSONValue = {"l": [{"name": "b"}, {"name": "a"}], "n": 1}
    assert errors(structure(properties, "self.n > 5"), new, old) == ["(spec: Invalid value: failed rule: self.n > 5)"]


def test_unknown_fields_count_as_changed() -> None:
    spec = structure({"n": {"type": "integer"}}, "self.n > 5") | {"x-kubernetes-preserve-unknown-fields": True}
    assert errors(spec, {"n": 1, "z": 1}, {"n": 1, "z": 1}) == ["spec: Invalid value: failed rule: self.n > 5"]


def test_names_that_are_no_identifiers_are_escaped() -> None:
    names = ["a-b", "a.b", "a/b", "a__b", "namespace", "if", "_x"]
    rule = (
        "self.a__dash__b + self.a__dot__b + self.a__slash__b + self.a__underscores__b + self.__namespace__ + "
        "self.namespace + self.__if__ + self._x == 8"
    )
    properties: JSONObject = {name: {"type": "integer"} for name in names}
    assert errors(structure(properties, rule), dict.fromkeys(names, 1)) == []


def test_a_property_that_no_rule_can_name_has_rules_of_its_own() -> None:
    spec: JSONObject = {"type": "object", "properties": {"1 a": {"type": "integer", "x-kubernetes-validations": EVEN}}}
    assert errors(spec, {"1 a": 3}) == ["spec.1 a: Invalid value: 3: failed rule: self % 2 == 0"]


def test_formats_have_types() -> None:
    properties: JSONObject = {
        "bytes": {"type": "string", "format": "byte"},
        "date": {"type": "string", "format": "date"},
        "time": {"type": "string", "format": "date-time"},
        "period": {"type": "string", "format": "duration"},
        "number": {"type": "number"},
    }
    rule = (
        "self.bytes == b'abc' && self.date == timestamp('2024-01-02T00:00:00Z') && self.time > self.date && "
        "self.period == duration('48h') && self.number / 2.0 == 1.5"
    )
    value: JSONValue = {
        "bytes": "YWJj",
        "date": "2024-01-02",
        "time": "2024-01-02T03:04:05.5Z",
        "period": "2 days",
        "number": 3,
    }
    assert errors(structure(properties, rule), value) == []


def test_a_value_that_does_not_fit_its_schema_is_an_error_not_a_crash() -> None:
    properties: JSONObject = {"s": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}}
    spec = structure(properties, "self.s.startsWith('a')", "self.l.all(x, x.startsWith('a'))", "has(self.l)")
    assert errors(spec, {"s": 1, "l": {}}) == [
        'spec: Invalid value: "object": invalid data, expected string, got int64 evaluating rule: '
        "self.s.startsWith('a')",
        'spec: Invalid value: "object": invalid data, expected an array for the provided schema with type=array '
        "evaluating rule: self.l.all(x, x.startsWith('a'))",
        'spec: Invalid value: "object": invalid data, expected an array for the provided schema with type=array '
        "evaluating rule: has(self.l)",
    ]


def test_a_stored_value_that_no_longer_fits_is_an_error_of_its_rules() -> None:
    assert errors(integer("self > 5"), "a") == [
        'spec: Invalid value: "integer": invalid data, expected int, got string evaluating rule: self > 5'
    ]


def test_null_is_absent_in_an_object_and_a_value_in_a_list() -> None:
    properties: JSONObject = {
        "n": {"type": "integer", "nullable": True},
        "l": {"type": "array", "items": {"type": "string", "nullable": True}},
    }
    spec = structure(properties, "!has(self.n)", "self.l[0].startsWith('a')")
    assert errors(spec, {"n": None, "l": [None]}) == [
        "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator, "
        "function or macro signature for rule: self.l[0].startsWith('a')"
    ]


def test_an_embedded_resource_shows_its_name() -> None:
    spec = structure({}, "self.kind == 'P' && self.metadata.name == 'n'") | {"x-kubernetes-embedded-resource": True}
    assert errors(spec, {"apiVersion": "v1", "kind": "P", "metadata": {"name": "n"}}) == []


def test_values_nested_too_deeply_are_an_error_not_a_crash() -> None:
    deep: JSONValue = {}
    other: JSONValue = {}
    for _ in range(5000):
        deep, other = {"a": deep}, {"a": other}
    properties: JSONObject = {"v": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    (error,) = errors(structure(properties, "self.v == oldSelf.v"), {"v": deep}, {"v": other})
    assert "nested too deeply" in error


def test_errors_are_field_errors() -> None:
    compiled = compile_rules(
        {"type": "object", "x-kubernetes-validations": rules("false", reason="FieldValueForbidden")}
    )
    assert compiled is not None
    assert compiled.validate({}) == [FieldError("FieldValueForbidden", "<nil>", None, "failed rule: false")]
