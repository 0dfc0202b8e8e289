"""Whether a schema is structural: every field it speaks of has a type outside of `allOf`, `anyOf`, `oneOf` and `not`.

Only structural schemas can be pruned by and defaulted from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, forbidden_field, invalid_value, required
from kubewright.controlplane.embedded.schema.patterns import InvalidPattern, go_pattern

Level = Literal["root", "items", "field"]

_INT_OR_STRING: JSONValue = [{"type": "integer"}, {"type": "string"}]
_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "items": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
# What a value validation must not say, besides `type`: the field and the state it has to be in.
_NOT_NESTED = (
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-embedded-resource", "false"),
    ("x-kubernetes-int-or-string", "false"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
    ("x-kubernetes-validations", "empty"),
)
_UNSUPPORTED = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)


def is_set(value: JSONValue) -> bool:
    """Whether a keyword is there for Go: false, null and everything empty are not. Zero is (a pointer to it)."""
    return value is not None and value is not False and value not in ("", [], {})


def unsupported(schema: JSONObject) -> str:
    """Why a schema cannot even be read as a structural one; empty when it can."""
    for inner in everywhere(schema):
        for name, shown in _UNSUPPORTED:
            if is_set(inner.get(name)):
                return f"OpenAPIV3Schema '{shown}' is not supported"
        if isinstance(inner.get("items"), list):
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
        if inner.get("x-kubernetes-preserve-unknown-fields") is False:
            return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return ""


def check_structural(schema: JSONObject, path: str) -> list[FieldError]:
    """What keeps a schema from being structural, sorted by text as the real server does."""
    errors = [*_invariants(schema, "root", path), *_complete(schema, schema, path, path)]
    return sorted(errors, key=str)


def everywhere(schema: JSONObject) -> Iterator[JSONObject]:
    """The schema and all schemas in it."""
    waiting = [schema]
    while waiting:
        found = waiting.pop()
        yield found
        inner: list[JSONValue] = [found.get("not"), found.get("items"), found.get("additionalProperties")]
        inner += mapping(found, "properties").values()
        for junction in ("allOf", "anyOf", "oneOf"):
            inner += items(found, junction)
        waiting += [schema for schema in inner if isinstance(schema, dict)]


def _invariants(schema: JSONObject, level: Level, path: str) -> Iterator[FieldError]:
    type_ = text(schema, "type")
    inner_items, extra = schema.get("items"), schema.get("additionalProperties")
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    preserves = schema.get("x-kubernetes-preserve-unknown-fields") is True
    int_or_string = schema.get("x-kubernetes-int-or-string") is True
    properties = mapping(schema, "properties")
    if type_ == "array" and inner_items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(inner_items, dict):
        yield from _invariants(inner_items, "items", f"{path}.items")
    for name in properties:
        yield from _invariants(mapping(properties, name), "field", f"{path}.properties[{name}]")
    if extra is not None:
        if level == "root":
            yield forbidden_field(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(extra, dict):
            yield from _invariants(extra, "field", f"{path}.additionalProperties")
    if int_or_string and preserves:
        detail = "must be false if x-kubernetes-int-or-string is true"
        yield invalid_value(f"{path}.x-kubernetes-preserve-unknown-fields", True, detail)
    if int_or_string and embedded:
        detail = "must be false if x-kubernetes-int-or-string is true"
        yield invalid_value(f"{path}.x-kubernetes-embedded-resource", True, detail)
    all_of = items(schema, "allOf")
    yield from _value_validation(
        schema,
        path,
        skip_any_of=schema.get("anyOf") == _INT_OR_STRING,
        skip_in_first=bool(all_of) and mapping(all_of[0]).get("anyOf") == _INT_OR_STRING,
    )
    if embedded and type_ != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid_value(f"{path}.type", type_, detail) if type_ else required(f"{path}.type", detail)
    elif not type_ and not int_or_string and not preserves:
        yield required(f"{path}.type", _EMPTY_TYPE[level])
    if embedded and extra is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden_field(f"{path}.additionalProperties", detail)
    if level == "root" and type_ and type_ != "object":
        yield invalid_value(f"{path}.type", type_, "must be object at the root")
    yield from _meta(properties, level, embedded, path)
    if embedded and not preserves and not properties:
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", detail)


def _meta(properties: JSONObject, level: Level, embedded: bool, path: str) -> Iterator[FieldError]:
    is_resource = level == "root" or embedded
    for name in ("kind", "apiVersion"):
        type_ = text(properties, name, "type")
        if is_resource and name in properties and type_ != "string":
            yield invalid_value(f"{path}.properties[{name}].type", type_, "must be string")
    if "metadata" not in properties:
        return
    metadata = mapping(properties, "metadata")
    where = f"{path}.properties[metadata]"
    if is_resource and text(metadata, "type") != "object":
        yield invalid_value(f"{where}.type", text(metadata, "type"), "must be object")
    if level == "root":
        specified = {name for name, value in metadata.items() if is_set(value)} - {"type", "default"}
        if mapping(metadata, "properties").keys() <= {"name", "generateName"}:
            specified.discard("properties")
        if specified:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden_field(where, detail)


def _value_validation(
    schema: JSONObject, path: str, *, skip_any_of: bool = False, skip_in_first: bool = False
) -> Iterator[FieldError]:
    if not skip_any_of:
        for index, inner in enumerate(items(schema, "anyOf")):
            yield from _nested(mapping(inner), f"{path}.anyOf[{index}]")
    for index, inner in enumerate(items(schema, "allOf")):
        yield from _nested(mapping(inner), f"{path}.allOf[{index}]", skip_any_of=skip_in_first and index == 0)
    for index, inner in enumerate(items(schema, "oneOf")):
        yield from _nested(mapping(inner), f"{path}.oneOf[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _nested(mapping(schema, "not"), f"{path}.not")
    pattern = text(schema, "pattern")
    if pattern:
        try:
            go_pattern(pattern)
        except InvalidPattern as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield invalid_value(f"{path}.pattern", pattern, detail)


def _nested(schema: JSONObject, path: str, *, skip_any_of: bool = False) -> Iterator[FieldError]:
    yield from _value_validation(schema, path, skip_any_of=skip_any_of)
    if isinstance(schema.get("items"), dict):
        yield from _nested(mapping(schema, "items"), f"{path}.items")
    properties = mapping(schema, "properties")
    for name in properties:
        yield from _nested(mapping(properties, name), f"{path}.properties[{name}]")
    if text(schema, "type"):
        yield forbidden_field(f"{path}.type", "must be empty to be structural")
    if schema.get("additionalProperties") not in (None, False):
        yield forbidden_field(f"{path}.additionalProperties", "must be undefined to be structural")
    if schema.get("default") is not None:
        yield forbidden_field(f"{path}.default", "must be undefined to be structural")
    for name, state in _NOT_NESTED:
        if is_set(schema.get(name)):
            yield forbidden_field(f"{path}.{name}", f"must be {state} to be structural")
    if "metadata" in properties:
        yield forbidden_field(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _complete(validation: JSONObject, schema: JSONValue, path: str, where: str) -> Iterator[FieldError]:
    """What the junctions of the root (`validation`, at `where`) speak of is in the `schema` (at `path`) itself."""
    if isinstance(validation.get("not"), dict):
        yield from _nested_complete(mapping(validation, "not"), schema, path, f"{where}.not")
    for junction in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(items(validation, junction)):
            yield from _nested_complete(mapping(inner), schema, path, f"{where}.{junction}[{index}]")


def _nested_complete(validation: JSONObject, schema: JSONValue, path: str, where: str) -> Iterator[FieldError]:
    if not isinstance(schema, dict):
        yield required(path, f"because it is defined in {where}")
        return
    yield from _complete(validation, schema, path, where)
    if isinstance(validation.get("items"), dict):
        inner = mapping(validation, "items")
        yield from _nested_complete(inner, schema.get("items"), f"{path}.items", f"{where}.items")
    properties = mapping(validation, "properties")
    for name in properties:
        step = f".properties[{name}]"
        known = mapping(schema, "properties").get(name)
        yield from _nested_complete(mapping(properties, name), known, path + step, where + step)
