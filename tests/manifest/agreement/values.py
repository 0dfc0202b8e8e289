"""Random values: such that fit a type and what its markers say to the server, and such that nearly do."""

from __future__ import annotations

import base64
import copy
import enum
import json
import types
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Raw, UnsetType

from kubewright.api.codec import to_json
from kubewright.api.markers import Format, JSONObject, JSONValue, ListMap, ListSet, Values
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import BuiltIn, Default
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object, resource_info
from kubewright.api.time import MicroTime

TEXTS = ["", "a", "b", "ab", "abc", "é", "\U0001f600", "line\nline", "admin", "9", "x y", "\x00", "Z" * 9]
INTEGERS = [0, 1, -1, 2, 3, 6, 7, 12, 100, -100, 2**31 - 1, -(2**31), 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, 0.5, -0.5, 1.0, 0.25, -1.0, 1.5, 1e-9, 1e20, 3.0, 2.75, 1e300]
QUANTITIES: list[JSONValue] = ["0", "1", "250m", "1.5", "64Mi", "2Gi", "10k", "1e3", "-1", "+.5", "5.", 3, -3, 0]
ANYTHING: list[JSONValue] = [None, True, 1, -0.5, "a", [], {}, [1, None, {"a": None}], {"a": {"b": [None]}, "": 0}]
FORMATTED = {
    "uuid": ["01234567-89ab-4def-8123-456789abcdef"],
    "ipv4": ["192.0.2.1"],
    "date": ["2026-01-31"],
}
PATTERNS = {"^[a-z]+$": ["a", "abc"], r"\d": ["1", "a1é"], "^[0-9]+%$": ["5%", "100%"]}

ODD: list[JSONValue] = [
    *ANYTHING,
    *TEXTS,
    *INTEGERS,
    *FLOATS,
    *QUANTITIES,
    False,
    [None],
    [1],
    {"a": None},
    -0.0,
    2**63,
]
ODD += [1e19, "A", "1", "true", "a\n", "\u0661", "2026-01-01T00:00:00Z", "2026-01-01", "YQ", "YQ==", "1E", "- 1"]
ODD += ["2026-01-01T00:00:00", "2026-01-01t00:00:00z", "2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00.1234567Z"]
ODD += ["2026-01-01T24:00:00Z", "2026-01-01 00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T00:00:60Z", "File", "URL"]
ODD += ["0001-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "2026-01-01T00:00:00.5+05:30", "2026-01-01T00:00:00+0100"]
ODD += [
    "2026-01-01T00:00:00-24:00",
    "2026-1-1T00:00:00Z",
    "2026-01-01T00:00Z",
    "YQ==\n",
    "Y Q==",
    "YQ=",
    "YR==",
    "----",
]
ODD += [
    "Kind",
    "a/b/c",
    "red",
    "RED",
    "One",
    "Two",
    "1Gi ",
    "1ki",
    "0x1",
    "1_000",
    "١",  # noqa: RUF001 (a digit that is not ASCII is meant)
    "Always",
    "always",
    "{}",
    "null",
]


class Unsatisfiable(Exception):
    """No value was found that fits."""


def value_of(random: Random, annotation: Any, markers: tuple[object, ...] = ()) -> JSONValue:
    """A value of a type, as JSON, that both the type and the server accept, but for rules."""
    if isinstance(annotation, NewType):
        return value_of(random, annotation.__supertype__, markers)
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Annotated:
        return value_of(random, arguments[0], (*arguments[1:], *markers))
    if origin in (Union, types.UnionType):
        return value_of(random, random.choice([each for each in arguments if each is not UnsetType]), markers)
    if origin is list:
        return _items(random, arguments[0] if arguments else Any, markers)
    if origin is dict:
        size = _size(random, markers)
        return {f"{random.choice('abc/.é')}{key}": value_of(random, arguments[1]) for key in range(size)}
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return structure_value(random, annotation)
    return _scalar(random, annotation, origin, markers)


def structure_value(random: Random, annotation: Any) -> JSONObject:
    """A value of a structure."""
    cls = get_origin(annotation) or annotation
    given: JSONObject = {}
    config = cls.__struct_config__
    if config.tag_field is not None:
        given[config.tag_field] = config.tag
    if cls is ObjectMeta:
        return random.choice([{}, {"name": "it"}, {"labels": {"a": "b"}}])
    if issubclass(cls, Object):
        info = resource_info(cls)
        given |= {"apiVersion": info.gvk.api_version, "kind": info.gvk.kind, "metadata": {"name": "it"}}
    fields = [field for field in msgspec.structs.fields(annotation) if field.encode_name not in given]
    # Some structures of Kubernetes have many fields, and nest deeply.
    share = 0.7 if len(fields) < 8 else 0.1
    return given | {
        field.encode_name: value_of(random, field.type) for field in fields if field.required or random.random() < share
    }


def _items(random: Random, item: Any, markers: tuple[object, ...]) -> JSONValue:
    items = [value_of(random, item) for _ in range(_size(random, markers))]
    for marker in markers:
        if isinstance(marker, ListSet):
            items = [*{json.dumps(each): each for each in items}.values()]
        elif isinstance(marker, ListMap):
            items = [*{identity(marker, item, each): each for each in items}.values()]
    if len(items) < _bound(markers, "min_length", 0):
        raise Unsatisfiable
    return items


def identity(marker: ListMap, item: Any, content: Any) -> str:
    """What identifies an item of a keyed list, also where it leaves a key to its default."""
    item = get_args(item)[0] if get_origin(item) in (Union, types.UnionType, Annotated) else item
    cls = get_origin(item) or item
    known = {field.encode_name: field.default_factory for field in msgspec.structs.fields(item)}
    defaults: JSONObject = {}
    if issubclass(cls, BuiltIn):
        defaults = {**dict.fromkeys(marker.keys, ""), "protocol": "TCP"}
    defaults |= {name: to_json(made.value) for name, made in known.items() if isinstance(made, Default)}
    found = [content.get(key) for key in marker.keys]
    return json.dumps(
        [defaults.get(key) if each is None else each for key, each in zip(marker.keys, found, strict=True)]
    )


def _scalar(random: Random, annotation: Any, origin: Any, markers: tuple[object, ...]) -> JSONValue:
    for marker in markers:
        if isinstance(marker, Values):
            return random.choice(marker.values)
    if origin in (types.NoneType, None):
        return None
    if origin is Literal:
        return random.choice(arguments) if (arguments := get_args(annotation)) else None
    if annotation is Any or annotation is Raw:
        return copy.deepcopy(random.choice(ANYTHING))
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return random.choice([*origin]).value  # type: ignore[no-any-return]
    if origin is Quantity:
        return random.choice(QUANTITIES)
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(10**8))
    if origin is MicroTime:
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if origin is datetime:
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    if origin is bool:
        return random.random() < 0.5
    if origin is bytes or Format("byte") in markers:
        return base64.b64encode(random.randbytes(random.randrange(4))).decode()
    made: dict[Any, Callable[[], JSONValue]] = {
        int: lambda: random.choice([random.choice(INTEGERS), random.randrange(-9, 10)]),
        float: lambda: random.choice([random.choice(FLOATS), random.uniform(-2, 2), random.randrange(-9, 10) / 4]),
        str: lambda: _text(random, markers),
    }
    for _ in range(1000):
        value = made[origin]()
        if _fits(value, markers):
            return value
    raise Unsatisfiable


def _text(random: Random, markers: tuple[object, ...]) -> str:
    formats = [marker.name for marker in markers if isinstance(marker, Format) and marker.name in FORMATTED]
    if formats:
        return random.choice(FORMATTED[formats[0]])
    pattern = _bound(markers, "pattern", None)
    if pattern in PATTERNS:
        return random.choice(PATTERNS[pattern])
    return random.choice([random.choice(TEXTS), "".join(random.choices("abc123é ", k=random.randrange(6)))])


def _fits(value: Any, markers: tuple[object, ...]) -> bool:
    """Whether a number or a text keeps the bounds."""
    if Format("int32") in markers and not -(2**31) <= value < 2**31:
        return False
    extra = [marker.extra_json_schema for marker in markers if isinstance(marker, Meta) and marker.extra_json_schema]
    if any(isinstance(value, str) and len(value) < each.get("minLength", 0) for each in extra):
        return False
    if any(not isinstance(value, str) and value > each.get("maximum", value) for each in extra):
        return False
    if any("pattern" in each for each in extra):
        return False
    try:
        metas = [marker for marker in markers if isinstance(marker, Meta)]
        for meta in metas:
            msgspec.convert(value, Annotated[type(value), meta])
    except (msgspec.ValidationError, TypeError):
        return False
    return True


def _bound(markers: tuple[object, ...], name: str, otherwise: Any) -> Any:
    found = [getattr(marker, name) for marker in markers if isinstance(marker, Meta)]
    return next((each for each in found if each is not None), otherwise)


def _size(random: Random, markers: tuple[object, ...]) -> int:
    least = _bound(markers, "min_length", 0)
    return random.randint(least, min(_bound(markers, "max_length", least + 3), least + 3))


def spoiled(random: Random, value: JSONObject) -> JSONObject:
    """A structure in which something was changed, somewhere."""
    result: Any = copy.deepcopy(value)
    places = _places(result)
    if not places:
        return {"value": copy.deepcopy(random.choice(ODD))}
    container, key = random.choice(places)
    random.choice([_replace, _replace, _replace, _nudge, _remove, _add, _repeat, _retag])(random, container, key)
    return result  # type: ignore[no-any-return]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every value in a structure, as its container and its key."""
    keys = [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
    return [place for key in keys for place in ((value, key), *_places(value[key]))]


def _replace(random: Random, container: Any, key: Any) -> None:
    container[key] = copy.deepcopy(random.choice(ODD))


def _nudge(random: Random, container: Any, key: Any) -> None:
    match container[key]:
        case bool(value):
            container[key] = not value
        case int(value) | float(value):
            container[key] = value + random.choice([1, -1, 0.5, 100])
        case str(value):
            container[key] = random.choice([f"{value}\n", f"{value}a", value[:-1], value.upper(), f" {value}"])
        case value:
            container[key] = [value]


def _remove(random: Random, container: Any, key: Any) -> None:
    del container[key]


def _add(random: Random, container: Any, key: Any) -> None:
    content = copy.deepcopy(random.choice([container[key], *ODD]))
    if isinstance(container, list):
        container.append(content)
    else:
        names = ["value", "unknown", "size", "size0", "size1", "lid", "xCommon", "maxSize1", "from0", "items2"]
        container.setdefault(random.choice(names), content)


def _retag(random: Random, container: Any, key: Any) -> None:
    """Make a member of a union another one, with the fields that it has."""
    tag_field = next((name for name in ("type", "kind") if isinstance(container, dict) and name in container), key)
    container[tag_field] = random.choice(["File", "URL", "a", "b/c", "d-e", "One", "Two"])


def _repeat(random: Random, container: Any, key: Any) -> None:
    if isinstance(container[key], list):
        container[key] = [*container[key], *copy.deepcopy(container[key])]
    else:
        container[key] = [copy.deepcopy(container[key])] * 2
