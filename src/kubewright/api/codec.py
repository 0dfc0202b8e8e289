"""Conversion between JSON and objects.

Decoding is tolerant where Kubernetes is: unknown fields are kept aside (see `origin`), null is absent.
It is strict where a mistake would spread: a wrong type raises `DecodeError` with the object and the field.
"""

from __future__ import annotations

from functools import cache
from threading import RLock
from typing import Protocol, TypeVar, cast

import msgspec

from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import DecodeError, MalformedJSON
from kubewright.api.header import read_header
from kubewright.api.markers import JSONInput, JSONValue
from kubewright.api.meta import ListMeta, ObjectMeta
from kubewright.api.model import Model
from kubewright.api.partials import PARTIAL, set_fields
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object
from kubewright.api.shallow import elements, members
from kubewright.api.shape import SCALAR, Shape
from kubewright.api.time import MicroTime, refuse_naive_times

T = TypeVar("T", bound=msgspec.Struct)
ObjectT = TypeVar("ObjectT", bound=Object)

_ORIGIN = "_origin"
_MANIFEST = "_manifest"

# Strings are checked for UTF-8 only when they are decoded, and then by Python itself, which also limits the depth.
NOT_JSON: tuple[type[Exception], ...] = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Scalar(Protocol):
    """A scalar type of ours, such as Quantity."""

    @classmethod
    def from_json(cls, value: object) -> object: ...

    def to_json(self) -> object: ...


# msgspec calls the hooks for every such value, so this is a look-up and not an isinstance of a protocol (6 µs).
_SCALARS: frozenset[type[_Scalar]] = frozenset((Quantity, MicroTime))


def encode_scalar(value: object) -> object:
    """The JSON value of one of our scalar types; msgspec's enc_hook."""
    if type(value) in _SCALARS:
        return cast(_Scalar, value).to_json()
    if isinstance(value, type):
        raise TypeError(f"{value.__name__} is a class, and no value: write {value.__name__}(...)")
    raise TypeError(f"{type(value).__qualname__} has no JSON form")


def decode_scalar(cls: type, value: object) -> object:
    """One of our scalar types from its JSON value; msgspec's dec_hook."""
    if cls in _SCALARS:
        return cls.from_json(value)
    raise NotImplementedError(f"{cls.__qualname__} has no JSON form")


_encoder = msgspec.json.Encoder(enc_hook=encode_scalar)
_json = msgspec.json.Decoder()


_making = RLock()


@cache
def decoder_of(cls: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a structure. An error of msgspec when there is none, because of an annotation."""
    # What msgspec learns of a structure it keeps in the class, also while it is incomplete: a decoder that another
    # thread makes of it meanwhile would crash the process.
    with _making:
        return msgspec.json.Decoder(cls, dec_hook=decode_scalar)


def encode(value: object) -> bytes:
    """Compact JSON of an object, a model or plain values. A time without time zone is a ValueError naming its field.

    Of an object made by `partial` it is what was set.
    """
    if isinstance(value, Dynamic):
        value = _dynamic_fields(value)
    elif isinstance(value, Object) and PARTIAL in value.__dict__:
        value = set_fields(value)
    encoded = _encoder.encode(value)
    refuse_naive_times(value, encoded, encode_scalar)
    return encoded


def to_json(value: object) -> JSONValue:
    """An object, a model or plain values as dicts, lists and scalars."""
    return decode_json(encode(value))


def decode_json(raw: bytes | msgspec.Raw) -> JSONValue:
    """Plain values from JSON."""
    value: JSONValue = _json.decode(raw)
    return value


def decode_model(cls: type[T], raw: bytes | msgspec.Raw) -> T:
    """A structure from JSON. Raises `DecodeError` with the path of the first field that does not fit."""
    try:
        model: T = decoder_of(cls).decode(raw)
    except msgspec.ValidationError as error:
        complaint = error
    except NOT_JSON as error:
        raise _unreadable(error) from None
    else:
        return model
    mended = _decode_without_nulls(cls, raw)
    if mended is None:
        raise DecodeError(f"not a valid {cls.__name__}: {complaint}") from None
    return mended


def decode(cls: type[ObjectT], raw: bytes | msgspec.Raw) -> ObjectT:
    """An object from the JSON that a server sent, which it keeps: later changes can be patched.

    Raises `DecodeError` naming the object and the field, `MalformedJSON` when it is no JSON. Manifests are read by
    `from_json`.
    """
    raw = bytes(raw)
    try:
        decoded = cast(ObjectT, _decode_dynamic(cls, raw)) if issubclass(cls, Dynamic) else decode_model(cls, raw)
    except MalformedJSON:
        raise
    except DecodeError as error:
        raise _about(cls, raw, error) from None
    decoded.__dict__[_ORIGIN] = raw
    return decoded


def decode_list(cls: type[ObjectT], raw: bytes) -> tuple[ListMeta, list[ObjectT]]:
    """The metadata and the items of a list response."""
    metadata, items = split_list(raw)
    return metadata, [decode(cls, item) for item in items]


def split_list(raw: bytes) -> tuple[ListMeta, list[msgspec.Raw]]:
    """The metadata of a list response, and its items as JSON."""
    try:
        page = decode_model(_Page, raw)
    except MalformedJSON:
        raise
    except DecodeError:
        return _split_deep_list(raw)
    return page.metadata, page.items or []


def from_json(cls: type[ObjectT], value: JSONInput) -> ObjectT:
    """An object from plain values, such as a YAML document: a manifest, which no server has sent.

    `create`, `apply` and `update` write it as it stands, with what was changed in Python: fields that the type does not
    know are kept, and defaults of the type that it leaves out are left to the server. Quantities, times and models may
    be among the values. A value without a JSON form is a TypeError.
    """
    decoded = decode(cls, _encoder.encode(value))
    decoded.__dict__[_MANIFEST] = decoded.__dict__.pop(_ORIGIN)
    return decoded


def origin(obj: Object) -> bytes | None:
    """The JSON that a server sent an object as; None for manifests and for objects made in Python."""
    return obj.__dict__.get(_ORIGIN)


def remembered(obj: Object) -> bytes | None:
    """The JSON an object was decoded from, a server's or a manifest; None for objects made in Python."""
    return obj.__dict__.get(_ORIGIN) or obj.__dict__.get(_MANIFEST)


class _Page(Model):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


class _Named(Model):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta | None = None


def _split_deep_list(raw: bytes) -> tuple[ListMeta, list[msgspec.Raw]]:
    """One of the items is nested too deeply for the decoder: the others must not be lost for it."""
    try:
        fields = members(raw)
        items = elements(fields.get("items", b""))
    except msgspec.DecodeError as error:
        raise MalformedJSON(str(error)) from None
    return decode_model(ListMeta, fields.get("metadata", b"{}")), [msgspec.Raw(item) for item in items]


def _about(cls: type[Object], raw: bytes, error: DecodeError) -> DecodeError:
    """The same error, naming the object (`Pod "default/web-1": …`) when that much can be read."""
    info = cls.__naming__.info
    kind = info.gvk.kind if info is not None else cls.__name__
    try:
        key = read_header(raw).key
    except msgspec.DecodeError:
        return DecodeError(str(error), kind=kind)
    return DecodeError(f'{kind} "{key}": {error}' if key.name else str(error), kind=kind, key=key)


def _unreadable(error: Exception) -> DecodeError:
    if isinstance(error, RecursionError):
        return DecodeError("nested too deeply to be decoded")
    return MalformedJSON(str(error))


def _decode_dynamic(cls: type[Dynamic], raw: bytes) -> Dynamic:
    named = decode_model(_Named, raw)
    try:
        content = cast("dict[str, JSONValue]", _json.decode(raw))
    except NOT_JSON as error:
        raise _unreadable(error) from None
    for name in ("apiVersion", "kind", "metadata"):
        content.pop(name, None)
    decoded = cls(metadata=named.metadata or ObjectMeta(), content=content)
    # Items of lists come without the two; the class knows them.
    decoded.api_version = named.api_version or decoded.api_version
    decoded.kind = named.kind or decoded.kind
    return decoded


def _dynamic_fields(obj: Dynamic) -> dict[str, object]:
    return {"apiVersion": obj.api_version, "kind": obj.kind, "metadata": obj.metadata, **obj.content}


def _decode_without_nulls(cls: type[T], raw: bytes | msgspec.Raw) -> T | None:
    """Decode again with null read as Go reads it: a list or map that must be there is empty, and all else is absent.

    Go servers send null for nil slices without omitempty (`rules: null` of a Role). It is rare enough not to make
    every list in every type optional for it. None when that was not the problem.
    """
    try:
        value = _without_nulls(_json.decode(raw), Shape("model", model=cls))
    except NOT_JSON as error:  # the part behind the field that does not fit
        raise _unreadable(error) from None
    try:
        return cast(T, decoder_of(cls).decode(_encoder.encode(value)))
    except msgspec.ValidationError:
        return None


def _without_nulls(value: object, shape: Shape) -> object:
    if isinstance(value, dict) and shape.form == "model":
        fields, required = shape.fields, _required_fields(shape)
        return {
            name: _empty(fields.get(name, SCALAR)) if field is None else _without_nulls(field, fields.get(name, SCALAR))
            for name, field in value.items()
            if field is not None or (name in required and fields[name].form in ("list", "map"))
        }
    if isinstance(value, dict) and shape.item is not None:
        return {name: _without_nulls(item, shape.item) for name, item in value.items()}
    if isinstance(value, list) and shape.item is not None:
        return [_without_nulls(item, shape.item) for item in value]
    return value


@cache
def _required_fields(shape: Shape) -> frozenset[str]:
    models = shape.members or ((shape.model,) if shape.model is not None else ())
    return frozenset(field.encode_name for each in models for field in msgspec.structs.fields(each) if field.required)


def _empty(shape: Shape) -> object:
    return [] if shape.form == "list" else {}
