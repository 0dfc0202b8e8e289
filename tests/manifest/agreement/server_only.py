"""What only the server checks: the list of docs/definitions.md, as code.

A type and its server agree when the server refuses what the type does not decode, and besides that exactly this.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import re
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, NewType, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from tests.manifest.agreement.types import EVEN, NOT_ADMIN, SHORT, members_of
from tests.manifest.agreement.values import identity

from kubewright.api.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    FieldUnion,
    Format,
    JSONValue,
    ListMap,
    ListSet,
    Rule,
    Values,
)
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object
from kubewright.api.shape import shape_of
from kubewright.api.time import MicroTime

HEAD: Final[list[JSONValue]] = ["v1", "ConfigMap", {"name": "it"}]


class Undecided(Exception):
    """It has names or metadata of an embedded object, for which servers have rules of their own, or an integer that
    Python takes for a float and rounds.
    """


BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
QUANTITY: Final = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?"
TIME: Final = r"(?i)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"
RULES: Final[dict[str, Callable[[Any], bool]]] = {
    EVEN.rule: lambda value: value % 2 == 0,
    NOT_ADMIN.rule: lambda value: value != "admin",
    SHORT.rule: lambda value: len(value) <= 2,
}


def complaints(annotation: Any, value: JSONValue, markers: tuple[object, ...] = ()) -> Iterator[str]:
    """Why the server refuses a value that the type decodes."""
    if isinstance(annotation, NewType):
        yield from complaints(annotation.__supertype__, value, markers)
        return
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Annotated:
        yield from complaints(arguments[0], value, (*arguments[1:], *markers))
        return
    if origin is Union or origin is types.UnionType:
        yield from _of_union(members_of(annotation), value, markers)
        return
    if value is None:
        return
    yield from _of_markers(value, markers)
    if origin in (int, Quantity) and isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield "more than 64 bits"
    whole = int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 else value
    if origin is Quantity and not re.fullmatch(QUANTITY, str(whole) if isinstance(whole, int | str) else ""):
        yield "a quantity in another spelling"
    if origin in (datetime.datetime, MicroTime) and not re.fullmatch(TIME, str(value)):
        yield "a time in another spelling"
    if origin is list and isinstance(value, list):
        for item in value:
            yield from complaints(arguments[0] if arguments else Any, item)
        yield from _duplicates(value, arguments[0] if arguments else Any, markers)
    if origin is dict and isinstance(value, dict):
        for item in value.values():
            yield from complaints(arguments[1] if arguments else Any, item)
    if isinstance(origin, type) and issubclass(origin, Struct) and isinstance(value, dict):
        yield from _of_structure(annotation, origin, value)


def _of_union(members: list[Any], value: JSONValue, markers: tuple[object, ...]) -> Iterator[str]:
    if len(members) == 1:
        yield from complaints(members[0], value, markers)
    elif isinstance(value, dict):
        by_tag = {(get_origin(each) or each).__struct_config__.tag: each for each in members}
        tag_field = (get_origin(members[0]) or members[0]).__struct_config__.tag_field
        chosen = by_tag[value[tag_field]]
        known = {field.encode_name for each in members for field in msgspec.structs.fields(each)}
        own = {field.encode_name for field in msgspec.structs.fields(chosen)}
        if any(name in known - own and content is not None for name, content in value.items()):
            yield "a field of another member"
        yield from complaints(chosen, value, markers)
    elif value is not None:
        bare = {get_args(each)[0] if get_origin(each) is Annotated else each: each for each in members}
        # An integer that may as well be a float may have any size.
        kind = float if type(value) is int and float in bare and not -(2**63) <= value < 2**63 else type(value)
        yield from complaints(bare.get(kind, kind), value, markers)


def _of_markers(value: JSONValue, markers: tuple[object, ...]) -> Iterator[str]:
    for marker in markers:
        match marker:
            case Rule(rule=rule) if not RULES[rule](value):
                yield "a rule"
            case Values(values=values) if value not in values:
                yield "another value than those of a Choice"
            case Format(name="int32") if isinstance(value, int) and not -(2**31) <= value < 2**31:
                yield "more than 32 bits"
            case Format(name=name) if isinstance(value, str) and not _is_formatted(value, name):
                yield f"the format {name}"
            case Meta(pattern=str(pattern)) if isinstance(value, str) and not _found(pattern, value):
                yield "a pattern, as the server reads it"
            case Meta(multiple_of=int(factor)) if isinstance(value, float) and abs(value / factor) > 2**53:
                yield "a multiple beyond 2^53"
            case Meta(multiple_of=int(factor)) if isinstance(value, int) and abs(value) > 2**53:
                raise Undecided
            case Meta(extra_json_schema=dict(extra)):
                yield from _of_keywords(value, extra)


def _found(pattern: str, value: str) -> bool:
    return re.search(re.sub(r"\$$", r"\\Z", pattern), value, re.ASCII) is not None


def _of_keywords(value: Any, extra: dict[str, Any]) -> Iterator[str]:
    for keyword, said in extra.items():
        match keyword:
            case "minLength" if len(value) < said:
                yield "a keyword"
            case "maxLength" if len(value) > said:
                yield "a keyword"
            case "maximum" if value > said:
                yield "a keyword"
            case "minimum" if value < said:
                yield "a keyword"
            case "pattern" if not _found(said, value):
                yield "a keyword"


def _is_formatted(value: str, name: str) -> bool:
    try:
        match name:
            case "byte":
                return _found(BASE64, value)
            case "uuid":
                return (
                    re.fullmatch("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", value)
                    is not None
                )
            case "ipv4":
                ipaddress.IPv4Address(value)
            case "date":
                datetime.date.fromisoformat(value)
                return re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None
    except ValueError:
        return False
    return True


def _duplicates(items: list[JSONValue], item: Any, markers: tuple[object, ...]) -> Iterator[str]:
    for marker in markers:
        keys: list[str] = []
        if isinstance(marker, ListSet):
            keys = [json.dumps(each, sort_keys=True) for each in items]
        elif isinstance(marker, ListMap):
            keys = [identity(marker, item, each) for each in items]
        if len(set(keys)) < len(keys):
            yield "duplicates"


def _of_structure(annotation: Any, cls: type[Struct], value: dict[str, JSONValue]) -> Iterator[str]:
    if issubclass(cls, Object) and [value.get(name) for name in ("apiVersion", "kind", "metadata")] != HEAD:
        raise Undecided
    if cls is ObjectMeta and value.keys() - {"name", "labels"}:
        raise Undecided
    for field in msgspec.structs.fields(annotation):
        is_null = field.required and value.get(field.encode_name, ...) is None
        if is_null and shape_of(field.type).form in ("list", "map") and not _is_nullable(field.type):
            yield "null in place of a list or map that must be there"
        if field.encode_name in value and not (issubclass(cls, Object) and field.encode_name == "metadata"):
            yield from complaints(field.type, value[field.encode_name])
    for rule in cls.__rules__ if issubclass(cls, Model) else ():
        if isinstance(rule, FieldUnion):
            count = sum(value.get(name) is not None for name in rule.fields)
            kept = count >= 1 if isinstance(rule, AtLeastOneOf) else count <= 1
            if not kept or (count == 0 and not isinstance(rule, AtMostOneOf)):
                yield "a union of fields"


def _is_nullable(annotation: Any) -> bool:
    if isinstance(annotation, NewType):
        return _is_nullable(annotation.__supertype__)
    arguments = get_args(annotation)
    return type(None) in arguments or (get_origin(annotation) is Annotated and _is_nullable(arguments[0]))


def is_beyond_python(annotation: Any, value: JSONValue) -> bool:
    """Whether servers take a value that Python does not: a list for a text with a format, and some times."""
    return lists_for_texts(annotation, value) or re.search(r"-24:00|\+24:00|0000-", str(value)) is not None


def lists_for_texts(annotation: Any, value: JSONValue, markers: tuple[object, ...] = ()) -> bool:
    """Whether a list stands where a text has a format, which servers do not mind."""
    if isinstance(annotation, NewType):
        return lists_for_texts(annotation.__supertype__, value, markers)
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Annotated:
        return lists_for_texts(arguments[0], value, (*arguments[1:], *markers))
    if origin is Union or origin is types.UnionType:
        return any(lists_for_texts(each, value, markers) for each in members_of(annotation))
    if isinstance(value, list):
        has_format = any(isinstance(marker, Format) and marker.name != "byte" for marker in markers)
        if (origin is str and has_format) or origin in (datetime.datetime, MicroTime):
            return True
        return origin is list and any(lists_for_texts(arguments[0], item) for item in value)
    if not isinstance(value, dict):
        return False
    if origin is dict:
        return any(lists_for_texts(arguments[1], item) for item in value.values())
    if isinstance(origin, type) and issubclass(origin, Struct):
        return any(
            lists_for_texts(field.type, value[field.encode_name])
            for field in msgspec.structs.fields(annotation)
            if field.encode_name in value
        )
    return False
