"""Definitions as the real server shows them in errors: its internal types, which have Go's names for their fields."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping

# Every field of Go's JSONSchemaProps in order: its name, ours, and what it is when it is not set.
_SCHEMA: tuple[tuple[str, str, JSONValue], ...] = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
    ("Items", "items", None),
    ("AllOf", "allOf", None),
    ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None),
    ("Not", "not", None),
    ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None),
    ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None),
    ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None),
    ("ExternalDocs", "externalDocs", None),
    ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None),
    ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)
GO_NAMES = {name: go_name for go_name, name, _ in _SCHEMA}


def shown_schema(schema: JSONObject) -> JSONObject:
    """A schema with all fields of the internal type."""
    return {go_name: _keyword(name, schema[name]) if name in schema else unset for go_name, name, unset in _SCHEMA}


def _keyword(name: str, value: JSONValue) -> JSONValue:
    if name in ("allOf", "oneOf", "anyOf"):
        return [shown_schema(mapping(inner)) for inner in items(value)]
    if name in ("properties", "patternProperties", "definitions"):
        return {key: shown_schema(mapping(value, key)) for key in sorted(mapping(value))}
    if name == "not":
        return shown_schema(mapping(value))
    if name == "items":
        if isinstance(value, list):
            return {"Schema": None, "JSONSchemas": [shown_schema(mapping(inner)) for inner in value]}
        return {"Schema": shown_schema(mapping(value)), "JSONSchemas": None}
    if name in ("additionalProperties", "additionalItems"):
        if isinstance(value, dict):
            return {"Allows": True, "Schema": shown_schema(value)}
        return {"Allows": value is True, "Schema": None}
    if name == "x-kubernetes-validations":
        return [shown_rule(mapping(rule)) for rule in items(value)]
    return value


def shown_rule(rule: JSONObject) -> JSONObject:
    """A validation rule with all fields of the internal type."""
    return {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


def shown_version(version: JSONObject) -> JSONObject:
    """A version of a definition with all fields of the internal type."""
    schema, subresources = version.get("schema"), version.get("subresources")
    columns, fields = items(version, "additionalPrinterColumns"), items(version, "selectableFields")
    return {
        "Name": version.get("name", ""),
        "Served": version.get("served") is True,
        "Storage": version.get("storage") is True,
        "Deprecated": version.get("deprecated") is True,
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": _shown_validation(schema) if isinstance(schema, dict) else None,
        "Subresources": _shown_subresources(subresources) if isinstance(subresources, dict) else None,
        "AdditionalPrinterColumns": [_shown_column(mapping(column)) for column in columns] or None,
        "SelectableFields": [{"JSONPath": mapping(field).get("jsonPath", "")} for field in fields] or None,
    }


def _shown_validation(schema: JSONObject) -> JSONObject:
    found = schema.get("openAPIV3Schema")
    return {"OpenAPIV3Schema": shown_schema(found) if isinstance(found, dict) else None}


def _shown_subresources(subresources: JSONObject) -> JSONObject:
    scale = subresources.get("scale")
    shown: JSONObject | None = None
    if isinstance(scale, dict):
        shown = {
            "SpecReplicasPath": scale.get("specReplicasPath", ""),
            "StatusReplicasPath": scale.get("statusReplicasPath", ""),
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        }
    return {"Status": None if subresources.get("status") is None else {}, "Scale": shown}


def _shown_column(column: JSONObject) -> JSONObject:
    return {
        "Name": column.get("name", ""),
        "Type": column.get("type", ""),
        "Format": column.get("format", ""),
        "Description": column.get("description", ""),
        "Priority": column.get("priority", 0),
        "JSONPath": column.get("jsonPath", ""),
    }
