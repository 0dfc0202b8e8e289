"""OpenAPI v2, for clients that know nothing newer: the documents of all groups and versions in one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping
from kubewright.controlplane.embedded.openapi.documents import INFO, SECURITY
from kubewright.controlplane.embedded.openapi.types import REFERENCE

_DEFINITIONS: Final = "#/definitions/"
_UNKNOWN: Final = frozenset(("oneOf", "anyOf", "allOf", "not", "nullable", "default"))
"""What v2 does not have, or has with another meaning."""
_KINDS: Final = "x-kubernetes-group-version-kind"


def document_v2(documents: Iterable[JSONObject]) -> JSONObject:
    """All documents as one."""
    paths: JSONObject = {}
    definitions: dict[str, JSONObject] = {}
    for document in documents:
        for path, item in mapping(document, "paths").items():
            paths[path] = _path(mapping(item))
        for name, schema in mapping(document, "components", "schemas").items():
            converted = mapping(_schema(schema))
            if name in definitions and _KINDS in converted:
                kinds = [*items(definitions[name], _KINDS), *items(converted, _KINDS)]
                converted[_KINDS] = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
            definitions[name] = converted
    return {
        "swagger": "2.0",
        "info": INFO,
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "securityDefinitions": SECURITY,
        "security": [{"BearerToken": []}],
    }


def _schema(schema: JSONValue) -> JSONValue:
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": _reference(schema)}
    description: JSONObject = {"description": schema["description"]} if "description" in schema else {}
    if schema.get("format") == "int-or-string":
        return {**description, "type": "string", "format": "int-or-string"}
    if "oneOf" in schema and schema.keys() <= {"oneOf", "description"}:
        return {**description, "type": "string"}  # a quantity
    converted: JSONObject = {name: _nested(name, value) for name, value in schema.items() if name not in _UNKNOWN}
    wrapped = items(schema, "allOf")
    if len(wrapped) == 1 and "$ref" in mapping(wrapped[0]):
        converted = {"$ref": _reference(mapping(wrapped[0])), **converted}
    _without_null(schema, converted)
    if schema.get("x-kubernetes-preserve-unknown-fields") is not True:
        return converted
    # Old clients would refuse or drop what they do not find here: so there is nothing to find.
    if _KINDS in schema:
        return {"type": "object", _KINDS: schema[_KINDS]}
    return {name: value for name, value in converted.items() if name not in ("type", "properties", "items", "required")}


def _without_null(schema: JSONObject, converted: JSONObject) -> None:
    """v2 has no null: what may be null is of no type at all, and is not required."""
    if schema.get("nullable") is True:
        for name in ("type", "properties", "items"):
            converted.pop(name, None)
    nullable = {name for name, field in mapping(schema, "properties").items() if mapping(field).get("nullable") is True}
    if nullable and "required" in converted:
        converted["required"] = [name for name in items(converted, "required") if name not in nullable]


def _nested(name: str, value: JSONValue) -> JSONValue:
    if name == "properties" and isinstance(value, dict):
        return {key: _schema(item) for key, item in value.items()}
    return _schema(value) if name in ("items", "additionalProperties") else value


def _reference(schema: JSONObject) -> str:
    return str(schema["$ref"]).replace(REFERENCE, _DEFINITIONS)


def _path(item: JSONObject) -> JSONObject:
    return {
        name: [_parameter(mapping(parameter)) for parameter in items(value)]
        if name == "parameters"
        else _operation(mapping(value))
        for name, value in item.items()
    }


def _parameter(parameter: JSONObject) -> JSONObject:
    rest: JSONObject = {name: value for name, value in parameter.items() if name != "schema"}
    return {**mapping(parameter, "schema"), **rest}


def _operation(operation: JSONObject) -> JSONObject:
    content = mapping(operation, "requestBody", "content")
    converted: JSONObject = {
        "consumes": list(content) or ["*/*"],
        "produces": ["application/json", "application/yaml"],
        "schemes": ["https"],
    }
    parameters: list[JSONValue] = []
    for body in list(content.values())[:1]:
        is_required = mapping(operation, "requestBody").get("required") is True
        sent: JSONObject = {"name": "body", "in": "body", **({"required": True} if is_required else {})}
        parameters.append({**sent, "schema": _schema(mapping(body, "schema"))})
    parameters += [_parameter(mapping(parameter)) for parameter in items(operation, "parameters")]
    for name, value in operation.items():
        if name == "responses":
            converted[name] = {code: _answer(mapping(answer)) for code, answer in mapping(value).items()}
        elif name not in ("requestBody", "parameters"):
            converted[name] = value
    if parameters:
        converted["parameters"] = parameters
    return converted


def _answer(answer: JSONObject) -> JSONObject:
    converted: JSONObject = {"description": answer.get("description")}
    schema = mapping(answer, "content", "application/json", "schema")
    if schema:
        converted["schema"] = _schema(schema)
    return converted
