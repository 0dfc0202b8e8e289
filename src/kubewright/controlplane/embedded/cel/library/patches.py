"""What expressions of mutating policies make: objects to apply (`Object{}`), and steps of a JSON patch (`JSONPatch{}`).

No schema is known when such an expression is compiled: an object may have any fields. That the name of a nested type is
the path to it (`Object.spec.template{}` in `spec.template`) is checked when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.cel.library.overload import Overload, function
from kubewright.controlplane.embedded.cel.types import DYN, STRING, CelType
from kubewright.controlplane.embedded.cel.values import (
    EvaluationError,
    Keyed,
    Opaque,
    elements_of,
    found_in,
    keys_of,
    type_name,
)

OBJECT: Final = "Object"
JSON_PATCH: Final = "JSONPatch"


class _AnyField(dict[str, CelType]):
    """Every name is a field."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> CelType:
        return DYN


_PATCH_FIELDS: Final[Mapping[str, CelType]] = {"op": STRING, "from": STRING, "path": STRING, "value": DYN}


def patch_type(name: str) -> CelType | None:
    """The type of what `name{}` makes; None when there is no such type."""
    if name == JSON_PATCH:
        return CelType("struct", JSON_PATCH, fields=_PATCH_FIELDS)
    if name == OBJECT or name.startswith(f"{OBJECT}."):
        return CelType("struct", name, fields=_AnyField())
    return None


class PatchMessage(Opaque):
    """A value of such a type."""

    __slots__ = ("fields", "type_name")

    def __init__(self, name: str, fields: Mapping[str, object]) -> None:
        self.type_name = name
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PatchMessage) and (self.type_name, self.fields) == (other.type_name, other.fields)

    __hash__ = None  # type: ignore[assignment]  # its fields are not hashable


def new_message(name: str, fields: Mapping[str, object]) -> PatchMessage:
    """`name{fields}`."""
    if name == JSON_PATCH:
        for field in ("op", "path", "from"):
            if not isinstance(fields.get(field, ""), str):
                raise EvaluationError(f"unexpected type {type_name(fields[field])} for JSONPatchType '{field}' field")
    return PatchMessage(name, fields)


def misplaced(value: object) -> str:
    """What is wrong with the names of the types within an object; empty when they are the paths to them."""
    path = value.type_name if isinstance(value, PatchMessage) else OBJECT
    return "\n".join(_misplaced(value, path))


def _misplaced(value: object, path: str) -> Iterator[str]:
    if isinstance(value, PatchMessage):
        if value.type_name != path:
            expected = f"expected {quoted(path)}, which matches field name path from root Object type"
            yield f"unexpected type name {quoted(value.type_name)}, {expected}"
        for name, nested in value.fields.items():
            yield from _misplaced(nested, f"{path}.{name}")
    elif isinstance(value, dict):
        for nested in value.values():
            yield from _misplaced(nested, path)
    elif isinstance(value, list):
        for nested in value:
            yield from _misplaced(nested, path)


class NoJSON(Exception):
    """A value that cannot be part of an object."""


def as_json(value: object) -> JSONValue:
    """A value as it is put into an object; NoJSON when it cannot be."""
    if isinstance(value, PatchMessage):
        return {name: as_json(nested) for name, nested in value.fields.items()}
    elements = elements_of(value)
    if elements is not None:
        return [as_json(element) for element in elements]
    if isinstance(value, dict | Keyed):
        return _as_object(value)
    return _plain(value)


def _as_object(value: object) -> JSONObject:
    made: JSONObject = {}
    for key in keys_of(value) or ():
        if not isinstance(key, str):
            raise NoJSON(f"map key {key} is not a string")
        pair = found_in(value, key)
        made[key] = as_json(pair[1] if pair else None)
    return made


def _plain(value: object) -> JSONValue:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, int):
        return int(value)
    raise NoJSON(f"type conversion error from {type(value).__name__}")


def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


PATCH_FUNCTIONS: Final[list[Overload]] = [function("jsonpatch.escapeKey", [STRING], STRING, _escape_key)]
