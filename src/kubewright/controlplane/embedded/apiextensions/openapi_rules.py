"""The rules that a definition's schema keeps besides being structural: which keywords, where, and with which others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from kubewright.controlplane.embedded.schema.structural import is_set

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
_UNSUPPORTED = ("additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
# Of these, even what is empty or false is there.
_POINTERS = frozenset(("additionalItems", "$ref"))


@dataclass(frozen=True, slots=True)
class _Context:
    """Where in the schema we are: why defaults may not be here, and whether this is the metadata of a resource."""

    no_defaults: str = ""
    in_metadata: bool = False


def check_schema(schema: JSONObject, path: str) -> list[FieldError]:
    """What is wrong with the keywords of a definition's schema."""
    return list(_check(schema, path, _Context(), root=True))


def _check(schema: JSONObject, path: str, context: _Context, *, root: bool = False) -> Iterator[FieldError]:
    yield from _keywords(schema, path, context)
    if schema.get("uniqueItems") is True:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{path}.uniqueItems", detail)
    properties = mapping(schema, "properties")
    extra = schema.get("additionalProperties")
    if extra is not None:
        if properties and extra is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            yield forbidden_field(f"{path}.additionalProperties", detail)
        inside = context
        if context.in_metadata:
            inside = replace(context, no_defaults=" inside additionalProperties applying to object metadata")
        if isinstance(extra, dict):
            yield from _check(extra, f"{path}.additionalProperties", inside)
    for name in properties:
        inside = context
        if (root or schema.get("x-kubernetes-embedded-resource") is True) and name in _META:
            reason = f" in top-level {name}" if root else context.no_defaults
            inside = replace(context, in_metadata=True, no_defaults=reason)
        yield from _check(mapping(properties, name), f"{path}.properties[{name}]", inside)
    if isinstance(schema.get("not"), dict):
        yield from _check(mapping(schema, "not"), f"{path}.not", context)
    for junction in ("allOf", "oneOf", "anyOf"):
        for index, inner in enumerate(items(schema, junction)):
            yield from _check(mapping(inner), f"{path}.{junction}[{index}]", context)
    definitions = mapping(schema, "definitions")
    for name in definitions:
        yield from _check(mapping(definitions, name), f"{path}.definitions[{name}]", context)
    if isinstance(schema.get("items"), dict):
        yield from _check(mapping(schema, "items"), f"{path}.items", context)
    for index, inner in enumerate(items(schema, "items")):
        yield from _check(mapping(inner), f"{path}.items[{index}]", context)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid_value(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _map_type(schema, path)
    yield from _list_type(schema, path)


def _keywords(schema: JSONObject, path: str, context: _Context) -> Iterator[FieldError]:
    type_ = text(schema, "type")
    if type_ and type_ not in _TYPES:
        yield not_supported(f"{path}.type", type_, _TYPES)
    if schema.get("default") is not None and context.no_defaults:
        yield forbidden_field(f"{path}.default", f"must not be set{context.no_defaults}")
    if text(schema, "id"):
        yield forbidden_field(f"{path}.id", "id is not supported")
    for name in _UNSUPPORTED:
        if is_set(schema.get(name)) or (name in _POINTERS and schema.get(name) is not None):
            yield forbidden_field(f"{path}.{name}", f"{name} is not supported")
    if type_ == "null":
        yield forbidden_field(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if items(schema, "items"):
        yield forbidden_field(f"{path}.items", "items must be a schema object and not an array")
    if context.in_metadata and schema.get("x-kubernetes-embedded-resource") is True:
        yield forbidden_field(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")


def _map_type(schema: JSONObject, path: str) -> Iterator[FieldError]:
    map_type, type_ = schema.get("x-kubernetes-map-type"), text(schema, "type")
    if map_type is None:
        return
    if type_ != "object":
        yield _needs_type(path, type_, "must be object if x-kubernetes-map-type is specified")
    if map_type not in ("atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _needs_type(path: str, type_: str, detail: str) -> FieldError:
    return invalid_value(f"{path}.type", type_, detail) if type_ else required(f"{path}.type", detail)


def _list_type(schema: JSONObject, path: str) -> Iterator[FieldError]:
    list_type, type_ = schema.get("x-kubernetes-list-type"), text(schema, "type")
    keys = items(schema, "x-kubernetes-list-map-keys")
    item = schema.get("items")
    if list_type is not None and type_ != "array":
        yield _needs_type(path, type_, "must be array if x-kubernetes-list-type is specified")
    elif list_type == "set" and isinstance(item, dict):
        yield from _atomic_items(item, path)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.x-kubernetes-list-type"
        yield required(where, detail) if list_type is None else invalid_value(where, list_type, detail)
    if list_type == "map":
        yield from _keyed_items(keys, item, path)
    if list_type in ("set", "map") and isinstance(item, dict):
        if item.get("nullable") is True:
            detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
            yield forbidden_field(f"{path}.items.nullable", detail)
        if list_type == "map":
            yield from _present_keys(keys, item, path)


def _atomic_items(item: JSONObject, path: str) -> Iterator[FieldError]:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    list_type = item.get("x-kubernetes-list-type")
    if text(item, "type") == "array" and list_type not in (None, "atomic"):
        yield invalid_value(f"{path}.items.x-kubernetes-list-type", list_type, detail)
    if text(item, "type") == "object" and item.get("x-kubernetes-map-type") != "atomic":
        # The real server shows the list type here, whatever the map type is.
        yield invalid_value(f"{path}.items.x-kubernetes-map-type", list_type, detail)


def _keyed_items(keys: list[JSONValue], item: JSONValue, path: str) -> Iterator[FieldError]:
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{path}.x-kubernetes-list-map-keys", detail)
    if item is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if not isinstance(item, dict):
        return
    if text(item, "type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid_value(f"{path}.items.type", text(item, "type"), detail)
        return
    seen: set[str] = set()
    for key in map(str, keys):
        known = mapping(item, "properties").get(key)
        if known is None:
            detail = "entries must all be names of item properties"
            yield invalid_value(f"{path}.x-kubernetes-list-map-keys", keys, detail)
        elif text(known, "type") in ("array", "object"):
            # The real server shows the type of the item.
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid_value(f"{path}.items.properties[{key}].type", "object", detail)
        if key in seen:
            yield invalid_value(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")
        seen.add(key)


def _present_keys(keys: list[JSONValue], item: JSONObject, path: str) -> Iterator[FieldError]:
    for key in map(str, keys):
        known = mapping(item, "properties").get(key)
        if not isinstance(known, dict):
            continue
        where = f"{path}.items.properties[{key}]"
        if key not in items(item, "required") and known.get("default") is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield required(f"{where}.default", detail)
        if known.get("nullable") is True:
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield forbidden_field(f"{where}.nullable", detail)
