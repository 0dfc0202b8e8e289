"""Objects of which something is missing that their type requires.

A server-side apply takes away what an earlier one had set, and has what remains converted to the versions of other
appliers: no such object is ever stored, but without its conversion the apply fails. As in Go, what is missing is zero.
"""

from __future__ import annotations

from msgspec import inspect

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.resources import Object


def completed(obj: JSONObject, cls: type[Object]) -> JSONValue:
    """The object with a zero value for each field that is required and missing."""
    return _completed(obj, inspect.type_info(cls))


def _completed(value: JSONValue, kind: inspect.Type) -> JSONValue:
    if isinstance(kind, inspect.UnionType):
        kind = next((each for each in kind.types if _nests(each, value)), kind)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        result = dict(value)
        for field in kind.fields:
            name = field.encode_name
            if value.get(name) is not None:
                result[name] = _completed(value[name], field.type)
            elif field.required:
                result[name] = _zero(field.type)
        return result
    if isinstance(kind, inspect.ListType) and isinstance(value, list):
        return [_completed(each, kind.item_type) for each in value]
    if isinstance(kind, inspect.DictType) and isinstance(value, dict):
        return {name: _completed(each, kind.value_type) for name, each in value.items()}
    return value


def _nests(kind: inspect.Type, value: JSONValue) -> bool:
    if isinstance(value, dict):
        return isinstance(kind, inspect.StructType | inspect.DictType)
    return isinstance(value, list) and isinstance(kind, inspect.ListType)


def _zero(kind: inspect.Type) -> JSONValue:
    match kind:
        case inspect.StructType():
            return _completed({}, kind)
        case inspect.UnionType(types=types):
            return None if kind.includes_none else _zero(types[0])
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.EnumType(cls=cls):
            value: JSONValue = next(iter(cls)).value
            return value
        case inspect.IntType(ge=least) | inspect.FloatType(ge=least):
            return least or 0
        case inspect.BoolType():
            return False
        case inspect.StrType(min_length=length):
            return "-" * (length or 0)
        case inspect.ListType(item_type=item, min_length=length):
            return [_zero(item) for _ in range(length or 0)]
        case inspect.DictType():
            return {}
        case inspect.DateTimeType():
            return "1970-01-01T00:00:00Z"
        case inspect.CustomType():
            return "0"  # a Quantity
        case _:
            return None
