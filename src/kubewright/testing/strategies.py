"""Values of a type, as JSON, for property tests with hypothesis: within the bounds that the type has."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import cast

from hypothesis import strategies as st
from msgspec import inspect

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object
from kubewright.api.time import MicroTime

Values = st.SearchStrategy[JSONValue]

_MAX_ITEMS = 4
_INT64 = 2**63
_HEAD = ("apiVersion", "kind", "metadata")
_CHARACTERS = st.characters(codec="utf-8")
_TEXT = st.text(_CHARACTERS, max_size=12)
_SCALARS: Values = st.none() | st.booleans() | st.integers(-10, 10) | _TEXT
_ANYTHING: Values = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3), max_leaves=5
)
_MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC))
_CUSTOM: dict[type, Values] = {
    Quantity: st.sampled_from(["0", "1", "250m", "1.5", "64Mi", "2Gi", "10k"]),
    MicroTime: _MOMENTS.map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")),
}


def contents_of(kind: type[Object]) -> st.SearchStrategy[JSONObject]:
    """The content of objects of a kind: spec, status and all other fields but names and metadata."""
    return _Strategies().content(kind)


class _Strategies:
    """Knows the structures that it has met: they may be recursive."""

    def __init__(self) -> None:
        self._known: dict[type, Values] = {}

    def content(self, kind: type[Object]) -> st.SearchStrategy[JSONObject]:
        described = cast(inspect.StructType, inspect.type_info(kind))
        return self._fields([field for field in described.fields if field.encode_name not in _HEAD])

    def _fields(self, fields: list[inspect.Field]) -> st.SearchStrategy[JSONObject]:
        strategies = {field.encode_name: self.values(field.type) for field in fields}
        required = {field.encode_name for field in fields if field.required}
        return st.fixed_dictionaries(
            {name: each for name, each in strategies.items() if name in required},
            optional={name: each for name, each in strategies.items() if name not in required},
        )

    def values(self, described: inspect.Type) -> Values:
        """The values of a type, as JSON."""
        match described:
            case inspect.Metadata(type=inner):
                return self.values(inner)
            case inspect.StructType(cls=cls, fields=fields, tag_field=tag_field, tag=tag):
                if cls not in self._known:
                    self._known[cls] = st.deferred(lambda: self._known[cls])
                    tags: JSONObject = {tag_field: tag} if tag_field is not None else {}
                    self._known[cls] = self._fields(list(fields)).map(lambda content: {**tags, **content})
                return self._known[cls]
            case inspect.UnionType(types=types):
                return st.one_of([self.values(each) for each in types])
            case inspect.ListType(item_type=item, min_length=least, max_length=limit):
                return st.lists(self.values(item), min_size=least or 0, max_size=_limit(least, limit, _MAX_ITEMS))
            case inspect.DictType(key_type=key, value_type=value, min_length=least, max_length=limit):
                names = self.values(key).filter(lambda each: isinstance(each, str)).map(str)
                size = _limit(least, limit, _MAX_ITEMS)
                return st.dictionaries(names, self.values(value), min_size=least or 0, max_size=size)
        return _scalars(described)


def _scalars(described: inspect.Type) -> Values:
    match described:
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return _integers(described)
        case inspect.FloatType(gt=gt, ge=ge, lt=lt, le=le):
            least, limit = ge if gt is None else gt, le if lt is None else lt
            floats = st.floats(least, limit, allow_nan=False, allow_infinity=False, width=32)
            return floats.filter(lambda each: (gt is None or each > gt) and (lt is None or each < lt))
        case inspect.StrType(min_length=least, max_length=limit, pattern=pattern):
            if pattern is not None:
                found = st.from_regex(pattern)
                return found.filter(lambda each: (least or 0) <= len(each) <= (limit or len(each)))
            return st.text(_CHARACTERS, min_size=least or 0, max_size=_limit(least, limit, 12))
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.EnumType(cls=cls):
            return st.sampled_from([each.value for each in cls])
        case inspect.DateTimeType():
            return _MOMENTS.map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
        case inspect.BytesType(min_length=least, max_length=limit):
            content = st.binary(min_size=least or 0, max_size=_limit(least, limit, 12))
            return content.map(lambda each: base64.b64encode(each).decode())
        case inspect.CustomType(cls=cls) if cls in _CUSTOM:
            return _CUSTOM[cls]
        case inspect.AnyType() | inspect.RawType():
            return _ANYTHING
    raise TypeError(f"there is no strategy for values of {described}: give objects to your test instead")


def _integers(described: inspect.IntType) -> Values:
    least, limit, step = described.ge, described.le, described.multiple_of
    if described.gt is not None:
        least = described.gt + 1
    if described.lt is not None:
        limit = described.lt - 1
    numbers = st.integers(-_INT64 if least is None else least, _INT64 - 1 if limit is None else limit)
    return numbers if step is None else numbers.map(lambda each: each - each % step)


def _limit(least: int | None, limit: int | None, otherwise: int) -> int:
    return min(max(least or 0, otherwise), otherwise + (least or 0) if limit is None else limit)
