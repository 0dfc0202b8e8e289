"""The keywords of a structural schema, and how to read what they hold."""

from __future__ import annotations

from typing import Final

from kubewright.manifest.schema import Schema

PROSE: Final = frozenset({"description", "title", "example", "externalDocs", "id", "$schema"})
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"


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


def described(schema: Schema) -> str:
    """The description, empty when there is none."""
    description = schema.get("description")
    return description.strip() if isinstance(description, str) else ""
