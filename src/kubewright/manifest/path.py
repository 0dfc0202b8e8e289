"""Where the path of a column, a scale or a selectable field leads in a schema."""

from __future__ import annotations

from kubewright.api.field_path import FieldPath, Step
from kubewright.api.markers import JSONValue
from kubewright.api.naming import json_name


class PathError(ValueError):
    """The path leads nowhere; the message says what was found instead."""


def schema_at(schema: dict[str, JSONValue], path: FieldPath) -> dict[str, JSONValue]:
    """The schema of what `path` leads to; empty when the type leaves that open, as JSONValue does.

    Raises `PathError` when there is no such field.
    """
    current, here = schema, ""
    for step in path.steps:
        current = _next(current, step, here or "the object", path)
        here += f".{step}" if isinstance(step, str) else f"[{step}]" if isinstance(step, int) else step.text
    return current


def _next(schema: dict[str, JSONValue], step: Step, here: str, path: FieldPath) -> dict[str, JSONValue]:
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    if isinstance(step, str):
        following = known.get(step, schema.get("additionalProperties"))
        what = f'{here} has no field "{step}" (it has {", ".join(known) or "no fields"})'
        if json_name(step) in known:
            what = f'{here} has no field "{step}": write "{json_name(step)}", as in JSON'
    else:
        following, what = schema.get("items"), f"{here} is no list"
    if isinstance(following, dict):
        return following
    if "x-kubernetes-preserve-unknown-fields" in schema or not schema:
        return {}
    raise PathError(f'"{path.text}" leads nowhere: {what}')
