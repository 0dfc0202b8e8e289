"""The validated document as rules see it: shaped by its schema, converted when read, never copied."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.go_values import type_name
from kubewright.controlplane.embedded.cel.escaping import escaped
from kubewright.controlplane.embedded.cel.library.times import parsed_date, parsed_date_time, parsed_json_duration
from kubewright.controlplane.embedded.cel.values import (
    EvaluationError,
    Keyed,
    NoSuchOverload,
    Sequenced,
    all_equal,
    elements_of,
    equal,
    found_in,
)

Convert: TypeAlias = Callable[[JSONValue], object]


class Preserved:
    """A value no schema describes: it can only be compared."""

    __slots__ = ("raw",)

    def __init__(self, raw: JSONValue) -> None:
        self.raw = raw

    def __eq__(self, other: object) -> bool:
        return self.raw == (other.raw if isinstance(other, Preserved | ListView | ObjectView) else other)

    __hash__ = None  # type: ignore[assignment]  # documents are not hashable


class ListView(Sequenced):
    """An array. Sets and maps (`x-kubernetes-list-type`) are equal in any order, and merge when they are added."""

    __slots__ = ("_elements", "raw", "shape")

    def __init__(self, raw: list[JSONValue], shape: ListShape) -> None:
        self.raw = raw
        self.shape = shape
        self._elements: list[object] | None = None

    @property
    def elements(self) -> list[object]:
        """The items as values."""
        if self._elements is None:
            self._elements = [self.shape.item(raw) for raw in self.raw]
        return self._elements

    def equals(self, other: object) -> bool:
        """In order, or by content for sets, or by key for maps."""
        others = elements_of(other)
        if others is None:
            raise NoSuchOverload
        if len(others) != len(self.raw):
            return False
        if self.shape.kind == "set":
            return all(any(equal(mine, theirs) for mine in self.elements) for theirs in others)
        if self.shape.kind == "map":
            mine = {self.shape.key(raw): element for raw, element in zip(self.raw, self.elements, strict=True)}
            return all((key := self.shape.key(_raw(theirs))) in mine and equal(mine[key], theirs) for theirs in others)
        return all_equal(self.elements, others)

    def plus(self, other: object) -> object:
        """The items of both; those of a set once, those of a map replaced where they are."""
        others = elements_of(other)
        if others is None:
            raise NoSuchOverload
        if self.shape.kind == "atomic":
            return [*self.elements, *others]
        raws = list(self.raw)
        if self.shape.kind == "set":
            for theirs in others:
                if not any(equal(mine, theirs) for mine in self.elements) and _raw(theirs) not in raws:
                    raws.append(_raw(theirs))
            return ListView(raws, self.shape)
        positions = {self.shape.key(raw): position for position, raw in enumerate(raws)}
        for theirs in others:
            position = positions.get(self.shape.key(_raw(theirs)))
            if position is None:
                raws.append(_raw(theirs))
            else:
                raws[position] = _raw(theirs)
        return ListView(raws, self.shape)


class ObjectView(Keyed):
    """An object: with properties, which rules name escaped, or a map of values of one kind."""

    __slots__ = ("raw", "shape")

    def __init__(self, raw: JSONObject, shape: ObjectShape) -> None:
        self.raw = raw
        self.shape = shape

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def keys(self) -> list[str]:
        """The properties that are set, escaped; or the keys of the map."""
        if self.shape.values is not None:
            return list(self.raw)
        return [name for name, (json, _) in self.shape.properties.items() if json in self.raw]

    def get(self, key: str) -> object:
        """The value of a property or key; null is the same as absent in a property."""
        found = self.shape.properties.get(key)
        if found is not None:
            raw = self.raw.get(found[0])
            if raw is not None:
                return found[1](raw)
        elif self.shape.values is not None and key in self.raw:
            return self.shape.values(self.raw[key])
        raise EvaluationError(f"no such key: {key}")

    def has(self, key: str) -> bool:
        """Whether a property or key is set."""
        found = self.shape.properties.get(key)
        if found is not None:
            raw = self.raw.get(found[0])
            if raw is None:
                return False
            # Converted only to find out whether it fits: a value that does not is an error already when it is read.
            found[1](raw)
            return True
        return self.shape.values is not None and key in self.raw

    def find(self, key: object) -> tuple[bool, object]:
        """The value of a key, if it is there."""
        if not isinstance(key, str):
            raise NoSuchOverload
        return (True, self.get(key)) if self.has(key) else (False, None)

    def equals(self, other: object) -> bool:
        """Property by property; what the schema does not know is compared as it is."""
        if not isinstance(other, ObjectView | dict):
            raise NoSuchOverload
        if len(self) != len(other):
            return False
        for name, raw in self.raw.items():
            key = self.shape.key_of.get(name) if self.shape.values is None else name
            if key is None:
                if not isinstance(other, ObjectView):
                    raise NoSuchOverload
                if name in other.raw and other.raw[name] != raw:
                    return False
                continue
            found, mine = self.find(key)
            there, theirs = found_in(other, key) or (False, None)
            if found is not there or (found and not equal(mine, theirs)):
                return False
        return True


def _raw(value: object) -> JSONValue:
    if isinstance(value, ListView | ObjectView | Preserved):
        return value.raw
    if isinstance(value, dict):
        return {str(key): _raw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_raw(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise NoSuchOverload


class ListShape:
    """The schema of an array."""

    def __init__(self, schema: JSONObject) -> None:
        self.kind: Literal["atomic", "set", "map"] = "atomic"
        if text(schema, "x-kubernetes-list-type") == "set":
            self.kind = "set"
        elif text(schema, "x-kubernetes-list-type") == "map":
            self.kind = "map"
        self.item = converter(mapping(schema, "items"))
        self._keys = [str(key) for key in items(schema, "x-kubernetes-list-map-keys")]

    def key(self, raw: JSONValue) -> tuple[tuple[str, object], ...]:
        """The key of an item of a map list."""
        if not isinstance(raw, dict):
            return ()
        # The type is part of the key: 1 and true are different.
        return tuple((type(raw.get(key)).__name__, _hashable(raw.get(key))) for key in self._keys)


def _hashable(value: JSONValue) -> object:
    return repr(value) if isinstance(value, dict | list) else value


class ObjectShape:
    """The schema of an object: its properties by their escaped names, or the schema of all values."""

    def __init__(self, schema: JSONObject) -> None:
        self._schema = schema

    # Computed at first use: a rule rarely visits more than a corner of a large schema.
    @cached_property
    def properties(self) -> Mapping[str, tuple[str, Convert]]:
        """The name in JSON and the conversion of each property; one that rules cannot name has its own name."""
        return {
            escaped(name) or name: (name, converter(property_)) for name, property_ in _properties(self._schema).items()
        }

    @cached_property
    def key_of(self) -> Mapping[str, str]:
        """The escaped names by those in JSON."""
        return {name: key for key, (name, _) in self.properties.items()}

    @cached_property
    def values(self) -> Convert | None:
        """The conversion of every value of a map; None for an object with properties."""
        additional = self._schema.get("additionalProperties")
        return converter(additional) if not self.properties and isinstance(additional, dict) else None


def _properties(schema: JSONObject) -> Mapping[str, JSONObject]:
    if schema.get("x-kubernetes-embedded-resource") is True:
        schema = with_object_meta(schema)
    return {name: mapping(property_) for name, property_ in mapping(schema, "properties").items()}


_TEXT: JSONObject = {"type": "string"}


def with_object_meta(schema: JSONObject) -> JSONObject:
    """The schema of a resource with what rules always see: apiVersion, kind, metadata.name and .generateName."""
    meta = mapping(schema, "properties", "metadata")
    complete = (
        text(schema, "properties", "kind", "type") == "string"
        and text(schema, "properties", "apiVersion", "type") == "string"
        and text(meta, "type") == "object"
        and text(meta, "properties", "name", "type") == "string"
        and text(meta, "properties", "generateName", "type") == "string"
    )
    if complete:
        return schema
    seen: JSONObject = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
    added: JSONObject = {"kind": _TEXT, "apiVersion": _TEXT, "metadata": seen}
    return schema | {"properties": mapping(schema, "properties") | added}


def converter(schema: JSONObject) -> Convert:
    """How a value of a schema becomes one of a rule. Values that do not fit the schema are errors when read."""
    convert = _converter(schema)
    nullable = schema.get("nullable") is True

    def checked(raw: JSONValue) -> object:
        if raw is not None:
            return convert(raw)
        if nullable:
            return None
        raise EvaluationError("invalid data, got null for schema with nullable=false")

    return checked


def _converter(schema: JSONObject) -> Convert:
    if schema.get("x-kubernetes-int-or-string") is True:
        return _int_or_string
    match text(schema, "type"):
        case "object":
            return _object_converter(ObjectShape(schema))
        case "array":
            return _list_converter(ListShape(schema))
        case "string":
            return _FORMATS.get(text(schema, "format"), _text)
        case "number":
            return _number
        case "integer":
            return _integer
        case "boolean":
            return _boolean
        case _:
            return Preserved


def _object_converter(shape: ObjectShape) -> Convert:
    def convert(raw: JSONValue) -> object:
        if isinstance(raw, dict):
            return ObjectView(raw, shape)
        raise EvaluationError("invalid data, expected a map for the provided schema with type=object")

    return convert


def _list_converter(shape: ListShape) -> Convert:
    def convert(raw: JSONValue) -> object:
        if isinstance(raw, list):
            return ListView(raw, shape)
        raise EvaluationError("invalid data, expected an array for the provided schema with type=array")

    return convert


def _text(raw: JSONValue) -> object:
    if type(raw) is str:
        return raw
    raise EvaluationError(f"invalid data, expected string, got {type_name(raw)}")


def _integer(raw: JSONValue) -> object:
    if type(raw) is int:
        return raw
    raise EvaluationError(f"invalid data, expected int, got {type_name(raw)}")


def _number(raw: JSONValue) -> object:
    if type(raw) is int or type(raw) is float:
        return float(raw)
    raise EvaluationError(f"invalid data, expected float, got {type_name(raw)}")


def _boolean(raw: JSONValue) -> object:
    if type(raw) is bool:
        return raw
    raise EvaluationError(f"invalid data, expected bool, got {type_name(raw)}")


def _int_or_string(raw: JSONValue) -> object:
    if type(raw) is int or type(raw) is str:
        return raw
    raise EvaluationError("invalid data, expected XIntOrString value to be either a string or integer")


def _bytes(raw: JSONValue) -> object:
    content = _text(raw)
    try:
        return base64.b64decode(str(content), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError(f"Invalid byte formatted string {content}: illegal base64 data") from None


def _formatted(parse: Callable[[str], object], complaint: str) -> Convert:
    def convert(raw: JSONValue) -> object:
        content = str(_text(raw))
        try:
            return parse(content)
        except ValueError as error:
            raise EvaluationError(f"{complaint} {content}: {error}") from None

    return convert


_FORMATS: Mapping[str, Convert] = {
    "byte": _bytes,
    "duration": _formatted(parsed_json_duration, "Invalid duration"),
    "date": _formatted(parsed_date, "Invalid date formatted string"),
    "date-time": _formatted(parsed_date_time, "Invalid date-time formatted string"),
}
