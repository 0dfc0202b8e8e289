"""How deep a schema may nest.

Schemas are compiled and followed recursively; this bound keeps that far from the interpreter's own.
"""

from __future__ import annotations

from kubewright.api.markers import JSONValue

MAX_SCHEMA_DEPTH = 100


class TooDeep(ValueError):
    """A schema that nests deeper than `MAX_SCHEMA_DEPTH` levels of objects."""


def check_depth(schema: JSONValue) -> None:
    """Raises `TooDeep`. Never recurses itself."""
    level: list[JSONValue] = [schema]
    for _ in range(2 * MAX_SCHEMA_DEPTH):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise TooDeep(f"must not nest deeper than {MAX_SCHEMA_DEPTH} levels")
