"""How the fields of a kind nest and merge: what patches, server-side apply and field checks need to know of a schema.

One interface over two sources: Kubernetes' own kinds, whose structure is in their Python types, and custom resources,
whose structure is in their OpenAPI schema.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from kubewright.api.int_or_string import IntOrString
from kubewright.api.markers import Atomic, JSONObject, JSONValue, ListMap, ListSet, StrategicMerge
from kubewright.api.resources import Object
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

Form: TypeAlias = Literal["scalar", "struct", "map", "list", "untyped"]
ScalarType: TypeAlias = Literal["string", "numeric", "boolean", "any"]


class Structure:
    """The structure of one value.

    `struct` has named fields, `map` has values of one structure under any name, `list` has items; `untyped` is whatever
    the JSON is, merged as Kubernetes merges what it has no schema for. `atomic` values are replaced whole.
    """

    form: Form = "untyped"
    scalar_type: ScalarType = "any"
    """What a scalar may be."""
    atomic: bool = False
    list_type: Literal["atomic", "set", "map"] = "atomic"
    list_keys: tuple[str, ...] = ()
    merge_key: str = ""
    """The key of strategic merge patches; empty when the list is not merged by them."""
    merge_list: bool = False
    """True for lists that strategic merge patches merge (primitive ones too)."""
    retain_keys: bool = False
    preserves_unknown: bool = False
    """Unknown fields are kept here."""

    def field(self, name: str) -> Structure | None:
        """The structure of a field of a struct, or of a value of a map; None when there is no such field."""
        return UNTYPED

    @property
    def item(self) -> Structure:
        """The structure of the items of a list or the values of a map."""
        return UNTYPED

    def default(self, key: str) -> JSONValue:
        """The schema's default of a field, as associative lists need it for absent keys."""
        return None


class _Untyped(Structure):
    preserves_unknown = True


UNTYPED: Structure = _Untyped()


class _Scalar(Structure):
    form = "scalar"

    def __init__(self, scalar_type: ScalarType = "any") -> None:
        self.scalar_type = scalar_type


SCALAR: Structure = _Scalar()
_SCALARS: Mapping[object, Structure] = {
    str: _Scalar("string"),
    bytes: _Scalar("string"),
    bool: _Scalar("boolean"),
    int: _Scalar("numeric"),
    float: _Scalar("numeric"),
}
_SCALAR_TYPES: Mapping[str, ScalarType] = {
    "string": "string",
    "integer": "numeric",
    "number": "numeric",
    "boolean": "boolean",
}


@dataclass(frozen=True)
class _Markers:
    found: tuple[object, ...] = ()

    def get(self, kind: type) -> object | None:
        return next((marker for marker in self.found if isinstance(marker, kind)), None)


class _Typed(Structure):
    """From a Python type."""

    def __init__(self, markers: _Markers) -> None:
        keys = markers.get(ListMap)
        merge = markers.get(StrategicMerge)
        self.atomic = markers.get(Atomic) is not None
        if isinstance(keys, ListMap):
            self.list_type, self.list_keys = "map", keys.keys
        elif markers.get(ListSet) is not None:
            self.list_type = "set"
        if isinstance(merge, StrategicMerge):
            self.merge_list, self.merge_key, self.retain_keys = True, merge.key, merge.retain_keys


class _Struct(_Typed):
    form = "struct"

    def __init__(self, cls: type[Struct], markers: _Markers) -> None:
        super().__init__(markers)
        self._cls = cls

    @cached_property
    def _fields(self) -> Mapping[str, Structure]:
        hints = get_type_hints(self._cls, include_extras=True)
        names = zip(self._cls.__struct_fields__, self._cls.__struct_encode_fields__, strict=True)
        return {json: _of_annotation(hints[name]) for name, json in names}

    def field(self, name: str) -> Structure | None:
        return self._fields.get(name)

    def default(self, key: str) -> JSONValue:
        # The one real default that associative lists rely on: ports are keyed by number and protocol.
        if key == "protocol" and key in self._fields:
            return "TCP"
        # What is required is held by value in Go, so that its absence is its zero.
        field = next((field for field in fields(self._cls) if field.encode_name == key and field.required), None)
        if field is None:
            return None
        return "" if _plain(get_type_hints(self._cls).get(field.name)) is str else 0


def _plain(annotation: object) -> object:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


class _Collection(_Typed):
    def __init__(self, form: Literal["list", "map"], annotation: object, markers: _Markers) -> None:
        super().__init__(markers)
        self.form = form
        self._annotation = annotation

    @cached_property
    def _item(self) -> Structure:
        return _of_annotation(self._annotation)

    @property
    def item(self) -> Structure:
        return self._item

    def field(self, name: str) -> Structure | None:
        return self._item


@cache
def structure_of(cls: type[Object]) -> Structure:
    """The structure of a built-in kind."""
    return _Struct(cls, _Markers())


def _of_annotation(annotation: object, markers: _Markers | None = None) -> Structure:
    markers = markers or _Markers()
    if annotation == IntOrString:
        return SCALAR
    if get_origin(annotation) is Annotated:
        inner, *found = get_args(annotation)
        return _of_annotation(inner, _Markers((*markers.found, *found)))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Union or origin is types.UnionType:
        alternatives = [argument for argument in arguments if argument is not type(None)]
        return _of_annotation(alternatives[0], markers) if len(alternatives) == 1 else UNTYPED
    if origin is list:
        return _Collection("list", arguments[0], markers)
    if origin is dict:
        return _Collection("map", arguments[1], markers)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return _Struct(annotation, markers)
    if annotation == JSONValue:
        return UNTYPED
    return _SCALARS.get(annotation, SCALAR)


class SchemaStructure(Structure):
    """From an OpenAPI schema, as custom resource definitions have it."""

    def __init__(self, schema: JSONObject) -> None:
        self._schema = schema
        self.preserves_unknown = schema.get("x-kubernetes-preserve-unknown-fields") is True
        type_ = text(schema, "type")
        if schema.get("x-kubernetes-int-or-string") is True:
            self.form = "scalar"
        elif type_ in _SCALAR_TYPES:
            self.form, self.scalar_type = "scalar", _SCALAR_TYPES[type_]
        elif type_ == "array":
            self.form = "list"
            self.list_type = _list_type(text(schema, "x-kubernetes-list-type"))
            self.list_keys = tuple(str(key) for key in items(schema, "x-kubernetes-list-map-keys"))
            self.atomic = self.list_type == "atomic"
        elif isinstance(schema.get("additionalProperties"), dict):
            self.form = "map"
        elif type_ == "object" and ("properties" in schema or not self.preserves_unknown):
            self.form = "struct"
        if type_ == "object":
            self.atomic = text(schema, "x-kubernetes-map-type") == "atomic"

    def field(self, name: str) -> Structure | None:
        """A property, else `additionalProperties`, else untyped if unknown fields are preserved."""
        properties = mapping(self._schema, "properties")
        if name in properties:
            return SchemaStructure(mapping(properties, name))
        if isinstance(self._schema.get("additionalProperties"), dict):
            return SchemaStructure(mapping(self._schema, "additionalProperties"))
        if self.preserves_unknown or self._schema.get("additionalProperties") is True:
            return UNTYPED
        return None

    @property
    def item(self) -> Structure:
        """`items`, or `additionalProperties`."""
        if self.form == "list":
            return SchemaStructure(mapping(self._schema, "items"))
        return SchemaStructure(mapping(self._schema, "additionalProperties"))

    def default(self, key: str) -> JSONValue:
        """The default of a property."""
        return mapping(self._schema, "properties", key).get("default")


def _list_type(name: str) -> Literal["atomic", "set", "map"]:
    return "set" if name == "set" else "map" if name == "map" else "atomic"
