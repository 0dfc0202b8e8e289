"""Fields of an object that its schema does not have: servers drop them, or refuse the object when they are strict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubewright.api.markers import JSONValue
from kubewright.manifest.keywords import INT_OR_STRING, OBJECT_FIELDS, PRESERVE, Schema, fields, inner

_EMBEDDED = "x-kubernetes-embedded-resource"


class UnknownField(NamedTuple):
    """A field that is not known, and those that are known beside it."""

    path: str
    name: str
    known: list[str]


def unknown_fields(schema: Schema, obj: JSONValue) -> Iterator[UnknownField]:
    """Those of an object of a kind with this schema, but for its metadata, which is that of every kind."""
    yield from _unknown({**schema, _EMBEDDED: True}, obj, "")


def _unknown(schema: Schema, value: JSONValue, path: str) -> Iterator[UnknownField]:
    if isinstance(value, list):
        items = inner(schema)
        for index, item in enumerate(value if items is not None else ()):
            yield from _unknown(items or {}, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        known, others = fields(schema), inner(schema)
        is_open = schema.get(PRESERVE) or schema.get(INT_OR_STRING) or schema.get("additionalProperties") is True
        for name, field in value.items():
            where = f"{path}.{name}" if path else name
            found = known.get(name, others)
            if schema.get(_EMBEDDED) and name in OBJECT_FIELDS:
                continue
            if found is not None:
                yield from _unknown(found, field, where)
            elif not is_open:
                yield UnknownField(where, name, [*known])
