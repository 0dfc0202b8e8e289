"""The keywords of a structural schema, and how to read what they hold."""

from __future__ import annotations

from typing import Final, TypeAlias

from kubewright.api.markers import JSONValue

Schema: TypeAlias = dict[str, JSONValue]

PROSE: Final = frozenset({"description", "title", "example", "externalDocs"})
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
RULES: Final = "x-kubernetes-validations"
OBJECT_FIELDS: Final = ("apiVersion", "kind", "metadata")
"""The fields that every object has."""


def is_said(keyword: str, value: JSONValue) -> bool:
    """Whether a keyword says something by its value: the server drops what is false, null or empty."""
    if value is False:
        return keyword in ("default", "example", "additionalProperties")
    return value is not None and (keyword in ("default", "example") or value not in ("", [], {}))


def fields(schema: Schema) -> dict[str, Schema]:
    """The schemas of the named fields of an object, in the order of the definition."""
    properties = schema.get("properties")
    found = properties if isinstance(properties, dict) else {}
    return {name: field for name, field in found.items() if isinstance(field, dict)}


def required(schema: Schema) -> set[str]:
    """The names of the fields that an object must have, those with a default included."""
    names = schema.get("required")
    return {str(name) for name in names} if isinstance(names, list) else set()


def inner(schema: Schema) -> Schema | None:
    """The schema of the items of a list or of the values of a map."""
    for keyword in ("items", "additionalProperties"):
        found = schema.get(keyword)
        if isinstance(found, dict):
            return found
    return None


def rules(schema: Schema) -> list[Schema]:
    """The rules of a schema, without what says nothing."""
    found = schema.get(RULES)
    return [
        {keyword: value for keyword, value in rule.items() if value}
        for rule in (found if isinstance(found, list) else ())
        if isinstance(rule, dict)
    ]


def described(schema: Schema) -> str:
    """The description, empty when there is none."""
    description = schema.get("description")
    return description.strip() if isinstance(description, str) else ""


def is_untyped(schema: Schema) -> bool:
    """Whether every JSON value fits, null included."""
    return not (schema.get("type") or schema.get("properties") or schema.get(INT_OR_STRING))
