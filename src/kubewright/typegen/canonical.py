"""When two schemas mean the same.

A definition can say one thing in several ways: `format: int64` of an integer says nothing, a list without a list type
is atomic, a required field that has a default is never missing. The canonical form of a schema says all of it in one
way, and leaves out prose, so that schemas that mean the same to an API server are equal.
"""

from __future__ import annotations

import json
from typing import Final

from kubewright.api.markers import JSONValue
from kubewright.manifest.schema import Schema
from kubewright.typegen.keywords import INT_OR_STRING, PRESERVE, PROSE, fields, required

_INTEGER_OR_STRING: Final = ({"type": "integer"}, {"type": "string"})
_OBJECT_FIELDS: Final = ("apiVersion", "kind", "metadata")
_SAID_BY_ABSENCE: Final[dict[str, JSONValue]] = {
    "x-kubernetes-list-type": "atomic",
    "x-kubernetes-map-type": "granular",
    "minLength": 0,
    "minItems": 0,
    "minProperties": 0,
}


def canonical(schema: Schema) -> Schema:
    """The canonical form of a structural schema."""
    result: Schema = {}
    for keyword, value in schema.items():
        is_said = value is not None and (value is not False or keyword == "default")
        if keyword in PROSE or not is_said or _SAID_BY_ABSENCE.get(keyword, ...) == value:
            continue
        result[keyword] = _keyword(keyword, value)
    _shape(result)
    _enumeration(result)
    _defaults(result)
    return result


def canonical_kind(schema: Schema) -> Schema:
    """The canonical form of the schema of a kind, without the three fields that every object has."""
    own = {name: field for name, field in fields(schema).items() if name not in _OBJECT_FIELDS}
    needed: list[JSONValue] = [*sorted(required(schema) - {*_OBJECT_FIELDS})]
    return canonical({**schema, "properties": {**own}, "required": needed})


def _keyword(keyword: str, value: JSONValue) -> JSONValue:
    if keyword == "properties" and isinstance(value, dict):
        return {name: canonical(field) for name, field in value.items() if isinstance(field, dict)}
    if keyword in ("items", "additionalProperties") and isinstance(value, dict):
        # A default of an item stands in for null only, which is not written.
        return canonical({name: value[name] for name in value if name != "default"})
    if keyword == "not" and isinstance(value, dict):
        return canonical(value)
    if keyword in ("allOf", "anyOf", "oneOf") and isinstance(value, list):
        return [canonical(part) if isinstance(part, dict) else part for part in value]
    if keyword in ("enum", "required") and isinstance(value, list):
        return sorted(value, key=json.dumps)
    return value


def _shape(schema: Schema) -> None:
    if schema.get("type") == "integer" and schema.get("format") == "int64":
        del schema["format"]
    if INT_OR_STRING in schema:
        schema.pop("type", None)
        alternatives = schema.get("anyOf")
        if isinstance(alternatives, list) and all(part in _INTEGER_OR_STRING for part in alternatives):
            del schema["anyOf"]
    values = schema.get("additionalProperties")
    if values is True or values in ({}, {PRESERVE: True}):
        del schema["additionalProperties"]
        schema[PRESERVE] = True
    if schema.get("properties") == {}:
        del schema["properties"]
    if schema.get(PRESERVE) and "type" not in schema:
        schema.pop("nullable", None)  # without a type, null is a value like any other


def _enumeration(schema: Schema) -> None:
    """Of a field that may be null, the values are in a part of their own: the server checks it only for others."""
    parts = schema.get("allOf")
    if schema.get("nullable") and isinstance(parts, list) and len(parts) == 1:
        (part,) = parts
        if isinstance(part, dict) and part.keys() == {"enum"}:
            del schema["allOf"]
            schema["enum"] = part["enum"]


def _defaults(schema: Schema) -> None:
    if "default" in schema:
        schema["default"] = _filled(schema["default"], schema)
    if "required" in schema:
        with_default = {name for name, field in fields(schema).items() if "default" in field}
        schema["required"] = [*sorted(required(schema) - with_default)]
        if not schema["required"]:
            del schema["required"]


def _filled(value: JSONValue, schema: JSONValue) -> JSONValue:
    """A value with the defaults of what is in it, as the server fills them in."""
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list):
        return [_filled(item, schema.get("items")) for item in value]
    if isinstance(value, dict):
        known = fields(schema)
        values = schema.get("additionalProperties")
        given = {name: _filled(item, known.get(name, values)) for name, item in value.items()}
        absent = {name: known[name]["default"] for name in known if name not in given and "default" in known[name]}
        return {**given, **absent}
    return value
