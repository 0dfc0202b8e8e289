"""JSON paths into a schema: `.status.conditions[?(@.type=="Ready")].status`.

Only the paths that columns, scale and selectable fields may have, in the syntax of kubectl's jsonpath.
"""

from __future__ import annotations

import re
from typing import Final

from kubewright.api.markers import JSONValue

# A name after a dot or in quoted brackets; a backslash escapes the dots of a label: .metadata.labels.example\.com/app
_STEP: Final = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\\s{}'"])+)
      | \[(?:'(?P<single>[^']+)'|"(?P<double>[^"]+)")\]
      | \[(?P<items>\*|-?\d+|-?\d*:-?\d*(?::\d+)?|\?\(.+?\))\]""",
    re.VERBOSE,
)


class PathError(ValueError):
    """The path is malformed or leads nowhere; the message says what was found instead."""


def schema_at(schema: dict[str, JSONValue], path: str, *, plain: bool = False) -> dict[str, JSONValue]:
    """The schema of what `path` leads to; empty when the type leaves that open, as JSONValue does.

    A `plain` path has nothing but names. Raises `PathError` when there is no such field.
    """
    if not path.startswith("."):
        raise PathError(f'"{path}" does not start with a dot: expected a path such as .spec.replicas')
    position, current = 0, schema
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None or (plain and step["name"] is None):
            form = "names after dots, such as .spec.replicas" if plain else 'a path such as .spec.ports[0]["port"]'
            raise PathError(f'"{path}" cannot be read at "{path[position:]}": expected {form}')
        current = _next(current, step, path[:position] or "the object", path)
        position = step.end()
    return current


def _next(schema: dict[str, JSONValue], step: re.Match[str], here: str, path: str) -> dict[str, JSONValue]:
    properties = schema.get("properties")
    if step["items"]:
        following, what = schema.get("items"), f"{here} is no list"
    else:
        name = step["single"] or step["double"] or re.sub(r"\\(.)", r"\1", step["name"])
        known = properties if isinstance(properties, dict) else {}
        following = known.get(name, schema.get("additionalProperties"))
        what = f'{here} has no field "{name}" (it has {", ".join(known) or "no fields"})'
    if isinstance(following, dict):
        return following
    if "x-kubernetes-preserve-unknown-fields" in schema or not schema:
        return {}
    raise PathError(f'"{path}" leads nowhere: {what}')
