"""Defaults as Python writes them: `Template(image="nginx")`, `Quantity("1Gi")`, `[]`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kubewright.api.codec import to_json
from kubewright.api.markers import JSONValue
from kubewright.api.quantity import Quantity
from kubewright.manifest.keywords import Schema, fields, inner, is_untyped, required
from kubewright.typegen.annotations import Annotations, is_nullable, is_structure
from kubewright.typegen.canonical import is_condition, is_quantity
from kubewright.typegen.layout import Bracket, Expression, Prefixed, call, literal, text
from kubewright.typegen.names import field_names
from kubewright.typegen.unions import members_of


class NoExpression(Exception):
    """Python has no such value, or writes it in another way: it lacks what its structure requires, or has more."""


def default_value(value: JSONValue, schema: Schema, annotations: Annotations) -> Expression:
    """The expression that makes a value of a schema; `NoExpression` when there is none."""
    if value is None and not is_untyped(schema):
        if not is_nullable(schema):
            raise NoExpression
        return "None"
    if isinstance(value, dict) and (members := members_of(schema)) is not None:
        member = members.schemas.get(str(value.get(members.tag_field)))
        if member is None:
            raise NoExpression
        return _structure(value, member, annotations)
    if isinstance(value, dict) and (is_structure(schema) or is_condition(schema)):
        return _structure(value, schema, annotations)
    nested = inner(schema)
    if isinstance(value, list) and nested is not None:
        return Bracket("[", tuple(default_value(item, nested, annotations) for item in value), "]")
    if isinstance(value, dict) and nested is not None:
        items = (Prefixed(f"{text(key)}: ", default_value(item, nested, annotations)) for key, item in value.items())
        return Bracket("{", tuple(items), "}")
    if is_quantity(schema) and isinstance(value, str | int):
        _check_spelling(value, lambda: Quantity(value))
        return call(annotations.use("Quantity"), literal(value))
    if schema.get("format") == "date-time" and isinstance(value, str):
        _check_spelling(value, lambda: datetime.fromisoformat(value))
        return call(f"{annotations.use('datetime')}.fromisoformat", text(value))
    return literal(value)


def _check_spelling(value: str | int, make: Callable[[], object]) -> None:
    """`NoExpression` unless what Python makes of a value is sent as it was written."""
    try:
        sent = to_json(make())
    except ValueError:
        raise NoExpression from None
    if sent != value:
        raise NoExpression


def _structure(value: dict[str, JSONValue], schema: Schema, annotations: Annotations) -> Expression:
    known = fields(schema)
    tag_field = annotations.tag_field(schema)
    if tag_field:
        if value.get(tag_field) != known.pop(tag_field).get("default"):
            raise NoExpression
        value = {name: content for name, content in value.items() if name != tag_field}
    if value.keys() - known.keys():
        raise NoExpression
    names = field_names(known)
    arguments: dict[str, Expression] = {}
    for name, field in known.items():
        is_set = name in required(schema) or field.get("default") is not None
        if name in value:
            # What can be any value is absent when it is None, if that is its default.
            if value[name] is None and is_untyped(field) and not is_set:
                raise NoExpression
            arguments[names[name]] = default_value(value[name], field, annotations)
        elif is_set and field.get("default") is None:
            raise NoExpression
    return call(annotations.class_of(schema), **arguments)
