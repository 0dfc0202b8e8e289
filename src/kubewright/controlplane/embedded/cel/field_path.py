"""The `fieldPath` of a rule and the `jsonPath` of a selectable field: properties and map keys that a schema has.

The real server has this parser for these two, and its reasons reach the client; ours is `kubewright.api.field_path`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+|'", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FoundField(NamedTuple):
    """What a path leads to."""

    steps: tuple[str, ...]
    shown: str
    """As field errors show it, without a leading dot."""
    schema: JSONObject


def field_path(path: str, schema: JSONObject, *, brackets: bool = True) -> FoundField:
    """The field at a path; ValueError with the real server's reason when the schema has none."""
    tokens = iter(_TOKEN.findall(path))
    steps: list[str] = []
    shown = ""
    for token in tokens:
        if token == "[" and not brackets:  # noqa: S105 (a token of a path)
            raise ValueError("array notation is not allowed")
        if token not in (".", "["):
            raise ValueError(f"expected [ or . but got: {token}")
        name = next(tokens, None)
        if name is None:
            raise ValueError("unexpected end of JSON path")
        if token == "[":  # noqa: S105 (a token of a path)
            if len(name) < 2 or name[0] != "'" or name[-1] != "'":
                raise ValueError(f"expected single quoted string but got {name}")
            name = _ESCAPE.sub(_unescaped, name[1:-1])
            closing = next(tokens, None)
            if closing != "]":
                raise ValueError(f"expected ] but got {closing}" if closing else "unexpected end of JSON path")
        properties = mapping(schema, "properties")
        additional = schema.get("additionalProperties")
        if properties:
            if name not in properties:
                raise ValueError("does not refer to a valid field")
            schema = mapping(properties, name)
            shown = f"{shown}.{name}" if shown else name
        elif isinstance(additional, dict):
            schema = additional
            shown = f"{shown}[{name}]"
        else:
            raise ValueError("does not refer to a valid field")
        steps.append(name)
    return FoundField(tuple(steps), shown, schema)


def _unescaped(found: re.Match[str]) -> str:
    if found[1] not in _ESCAPES:
        raise ValueError(f"invalid string literal: invalid escape char {found.group()}")
    return _ESCAPES[found[1]]
