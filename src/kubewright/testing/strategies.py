"""Values of a type, as JSON, for property tests with hypothesis: what the type decodes, and a server accepts.

Bounds, lengths and patterns of `Meta` are kept, and so are the markers that only servers check: the range of `Int32`,
the values of a `Choice`, the items of a `ListSet` or `ListMap` once each. Rules in CEL are not: filter for them.
"""

from __future__ import annotations

import base64
import enum
import math
import re
import types
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NewType, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st
from msgspec import Meta, Raw, UnsetType

from kubewright.api.codec import to_json
from kubewright.api.markers import Format, JSONObject, JSONValue, ListMap, ListSet
from kubewright.api.markers import Values as KnownValues
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Default
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object, resource_info
from kubewright.api.time import MicroTime

Values = st.SearchStrategy[JSONValue]

_MAX_ITEMS: Final = 4
_INT64: Final = 2**63
_INT32: Final = 2**31
_HEAD: Final = ("apiVersion", "kind", "metadata")
_CHARACTERS: Final = st.characters(codec="utf-8")
_TEXT: Final = st.text(_CHARACTERS, max_size=12)
_ANYTHING: Final[Values] = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)
_MOMENTS: Final = st.datetimes(datetime(1970, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC))
_SCALARS: Final[dict[object, Values]] = {
    bool: st.booleans(),
    Quantity: st.sampled_from(["0", "1", "250m", "1.5", "64Mi", "2Gi", "10k", 3]),
    MicroTime: _MOMENTS.map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")),
    datetime: _MOMENTS.map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ")),
}
_FORMATTED: Final[dict[str, Sequence[str]]] = {
    "cidr": ["10.0.0.0/8"],
    "date": ["2026-01-31"],
    "date-time": ["2026-01-31T12:00:00Z"],
    "duration": ["1h", "90s"],
    "email": ["ann@example.com"],
    "hostname": ["example.com"],
    "ipv4": ["192.0.2.1"],
    "ipv6": ["2001:db8::1"],
    "mac": ["00:00:5e:00:53:01"],
    "uri": ["https://example.com/a"],
    "uuid": ["01234567-89ab-4def-8123-456789abcdef"],
}
"""Examples of what servers accept by the name of a format; they ignore the names that they do not know."""


def contents_of(kind: type[Object]) -> st.SearchStrategy[JSONObject]:
    """The content of objects of a kind: spec, status and all other fields but names and metadata."""
    return _Strategies().structure(kind, without=_HEAD)


def values_of(annotation: object) -> Values:
    """The values of a type, such as `Annotated[list[Port], ListMap("name")]`. A TypeError for one that JSON has not."""
    return _Strategies().values(annotation)


class _Strategies:
    """Knows the structures that it has met: they may be recursive."""

    def __init__(self) -> None:
        self._known: dict[object, st.SearchStrategy[JSONObject]] = {}

    def structure(self, annotation: object, without: Sequence[str] = ()) -> st.SearchStrategy[JSONObject]:
        if annotation not in self._known:
            self._known[annotation] = st.deferred(lambda: self._known[annotation])
            self._known[annotation] = self._fields(annotation, without)
        return self._known[annotation]

    def values(self, annotation: object, markers: tuple[object, ...] = ()) -> Values:
        """The values of a type that has `markers` besides its own."""
        if isinstance(annotation, NewType):
            return self.values(annotation.__supertype__, markers)
        origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
        if origin is Annotated:
            return self.values(arguments[0], (*arguments[1:], *markers))
        if origin is Union or origin is types.UnionType:
            return st.one_of([self.values(each, markers) for each in arguments if each is not UnsetType])
        if origin is list:
            return self._lists(arguments[0] if arguments else Any, markers)
        if origin is dict:
            values = self.values(arguments[1] if arguments else Any)
            least, limit = _lengths(markers, _MAX_ITEMS)
            return st.dictionaries(_TEXT, values, min_size=least, max_size=limit)
        if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
            return self.structure(annotation)
        return _scalars(annotation, origin, markers)

    def _fields(self, annotation: Any, without: Sequence[str]) -> st.SearchStrategy[JSONObject]:
        cls = get_origin(annotation) or annotation
        fields = [field for field in msgspec.structs.fields(annotation) if field.encode_name not in without]
        strategies = {field.encode_name: self.values(field.type) for field in fields}
        required = {field.encode_name for field in fields if field.required}
        given: JSONObject = {}
        if cls.__struct_config__.tag_field is not None:
            given[cls.__struct_config__.tag_field] = cls.__struct_config__.tag
        if issubclass(cls, Object) and not without:
            info = resource_info(cls)
            given |= {"apiVersion": info.gvk.api_version, "kind": info.gvk.kind, "metadata": {"name": "it"}}
        elif cls is ObjectMeta:
            return st.fixed_dictionaries({}, optional={"labels": self.values(dict[str, str]), "name": st.just("it")})
        return st.fixed_dictionaries(
            {name: each for name, each in strategies.items() if name in required and name not in given},
            optional={name: each for name, each in strategies.items() if name not in required and name not in given},
        ).map(lambda content: {**given, **content})

    def _lists(self, item: object, markers: tuple[object, ...]) -> Values:
        least, limit = _lengths(markers, _MAX_ITEMS)
        identity: Callable[[JSONValue], object] | None = None
        for marker in markers:
            if isinstance(marker, ListSet):
                identity = msgspec.json.encode
            elif isinstance(marker, ListMap):
                identity = _identity(marker.keys, item)
        return st.lists(self.values(item), min_size=least, max_size=limit, unique_by=identity)


def _identity(keys: tuple[str, ...], item: object) -> Callable[[JSONValue], object]:
    """What identifies an item of a keyed list, also where it leaves a key to its default."""
    cls: Any = get_args(item)[0] if get_origin(item) in (Union, types.UnionType) else item
    fields = {field.encode_name: field.default_factory for field in msgspec.structs.fields(cls)}
    defaults = {name: to_json(made.value) for name, made in fields.items() if isinstance(made, Default)}

    def identity(content: JSONValue) -> object:
        return msgspec.json.encode([content.get(key, defaults.get(key)) for key in keys])  # type: ignore[union-attr]

    return identity


def _scalars(annotation: object, origin: object, markers: tuple[object, ...]) -> Values:
    known = next((marker.values for marker in markers if isinstance(marker, KnownValues)), None)
    if known is not None:
        return st.sampled_from(known)
    if origin in _SCALARS:
        return _SCALARS[origin]
    if annotation is None or annotation is types.NoneType:
        return st.none()
    if origin is int:
        return _integers(markers)
    if origin is float:
        return _floats(markers)
    if origin is str:
        return _texts(markers)
    if origin is bytes:
        return _binary(markers)
    if origin is Literal:
        return st.sampled_from(get_args(annotation))
    if annotation is Any or annotation is Raw:
        return _ANYTHING
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return st.sampled_from([each.value for each in origin])
    raise TypeError(f"there is no strategy for values of {annotation}: give objects to your test instead")


def _bounds(markers: tuple[object, ...]) -> dict[str, Any]:
    """All limits of all `Meta` among the markers."""
    names = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
    metas = [marker for marker in markers if isinstance(marker, Meta)]
    return {name: value for meta in metas for name in names if (value := getattr(meta, name)) is not None}


def _integers(markers: tuple[object, ...]) -> Values:
    bounds = _bounds(markers)
    reach = _INT32 if Format("int32") in markers else _INT64
    least = max(-reach, bounds.get("ge", -reach), bounds.get("gt", -reach - 1) + 1)
    limit = min(reach - 1, bounds.get("le", reach - 1), bounds.get("lt", reach) - 1)
    step = bounds.get("multiple_of")
    if step is None:
        return st.integers(least, limit)
    return st.integers(-(-least // step), limit // step).map(lambda each: each * step)


def _floats(markers: tuple[object, ...]) -> Values:
    bounds = _bounds(markers)
    gt, lt, step = bounds.get("gt"), bounds.get("lt"), bounds.get("multiple_of")
    least, limit = bounds.get("ge", gt), bounds.get("le", lt)
    if step is None:
        floats = st.floats(least, limit, allow_nan=False, allow_infinity=False, width=32)
    else:
        first = -1000 if least is None else math.ceil(least / step)
        last = 1000 if limit is None else math.floor(limit / step)
        floats = st.integers(first, last).map(lambda each: each * float(step))
    return floats.filter(lambda each: (gt is None or each > gt) and (lt is None or each < lt))


def _texts(markers: tuple[object, ...]) -> Values:
    format_ = next((marker.name for marker in markers if isinstance(marker, Format)), "")
    if format_ == "byte":
        return _binary(())
    if format_ in _FORMATTED:
        return st.sampled_from(_FORMATTED[format_])
    least, limit = _lengths(markers, 12)
    pattern = _bounds(markers).get("pattern")
    if pattern is None:
        return st.text(_CHARACTERS, min_size=least, max_size=limit)
    # Servers know ASCII classes only, and no line end before the last newline.
    found = st.from_regex(re.compile(pattern, re.ASCII))
    longest = _bounds(markers).get("max_length")
    return found.filter(
        lambda each: not each.endswith("\n") and least <= len(each) <= (len(each) if longest is None else longest)
    )


def _binary(markers: tuple[object, ...]) -> Values:
    least, limit = _lengths(markers, 12)
    return st.binary(min_size=least, max_size=limit).map(lambda each: base64.b64encode(each).decode())


def _lengths(markers: tuple[object, ...], otherwise: int) -> tuple[int, int]:
    """The least length, and the greatest, which is kept small."""
    bounds = _bounds(markers)
    least, limit = bounds.get("min_length", 0), bounds.get("max_length")
    return least, min(least + otherwise, limit) if limit is not None else max(least, otherwise)
