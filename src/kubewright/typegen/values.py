"""Defaults as Python writes them: `Template(image="nginx")`, `Quantity("1Gi")`, `[]`."""

from __future__ import annotations

from kubewright.api.markers import JSONValue
from kubewright.manifest.schema import Schema
from kubewright.typegen.annotations import Annotations, is_condition, is_quantity, is_structure
from kubewright.typegen.keywords import fields, inner, required
from kubewright.typegen.layout import Bracket, Expression, Prefixed, call, literal, text
from kubewright.typegen.names import field_names


class NoExpression(Exception):
    """The default cannot be made in Python: it lacks something that its structure requires."""


def default_value(value: JSONValue, schema: Schema, annotations: Annotations) -> Expression:
    """The expression that makes a value of a schema; `NoExpression` when there is none."""
    if isinstance(value, dict) and (is_structure(schema) or is_condition(schema)):
        return _structure(value, schema, annotations)
    nested = inner(schema)
    if isinstance(value, list) and nested is not None:
        return Bracket("[", tuple(default_value(item, nested, annotations) for item in value), "]")
    if isinstance(value, dict) and nested is not None:
        items = (Prefixed(f"{text(key)}: ", default_value(item, nested, annotations)) for key, item in value.items())
        return Bracket("{", tuple(items), "}")
    if is_quantity(schema) and isinstance(value, str | int):
        return call(annotations.use("Quantity"), literal(value))
    if schema.get("format") == "date-time" and isinstance(value, str):
        return call(f"{annotations.use('datetime')}.fromisoformat", text(value))
    return literal(value)


def _structure(value: dict[str, JSONValue], schema: Schema, annotations: Annotations) -> Expression:
    names = field_names(fields(schema))
    arguments: dict[str, Expression] = {}
    for name, field in fields(schema).items():
        if value.get(name) is not None:
            arguments[names[name]] = default_value(value[name], field, annotations)
        elif name in required(schema) and field.get("default") is None:
            raise NoExpression
    return call(annotations.class_of(schema), **arguments)
