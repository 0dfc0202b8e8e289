"""Documents that nest thousands of levels deep, as the real server takes them (10,000).

Python cannot follow them so far: every walk of an object, and msgspec's decoder with it, is bounded by the stack. What
lies deeper than `LEVELS`, far below anything a schema can describe, is therefore kept as text: an `msgspec.Raw`, which
is encoded as it stands and is one value to everything that reads an object. Equal values are equal texts. So such an
object is stored, listed, watched, compared and replaced like any other. Patches parse the text where they reach it
(`opened`) and cut the result again (`cut_again`); field managers own what is below as one value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar, cast

import msgspec

from kubewright.api.markers import JSONValue

LEVELS: Final = 250

_decoder: Final = msgspec.json.Decoder()
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|[^\s,:{}\[\]"]+')
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_END_OF_OBJECT, _END_OF_LIST, _COMMA = msgspec.Raw(b"}"), msgspec.Raw(b"]"), msgspec.Raw(b",")

_Container: TypeAlias = dict[str, JSONValue] | list[JSONValue]


def decode(body: bytes) -> JSONValue:
    """JSON, `cut`. Raises `RecursionError` when it is too deep for msgspec: `decode_deep` can read that."""
    value = cast(JSONValue, _decoder.decode(body))
    # Counting brackets is far cheaper than walking, and settles it for nearly all.
    return value if body.count(b"{") + body.count(b"[") <= LEVELS else cut(value)


def decode_deep(text: str, duplicates: list[str] | None = None, *, finite: bool = True) -> JSONValue:
    """Any JSON, `cut`, read without recursion; complaints about fields that appear twice go to `duplicates`.

    `text` is known to be JSON. Lone surrogates in it are replaced, as Go does. Raises `OverflowError` with a number
    that is beyond all bounds, unless it need not be `finite`.
    """
    repeated: dict[str, None] = {}  # instead of a set, for its order: each is reported once
    root: list[JSONValue] = []
    nesting: list[_Container] = [root]
    names: list[str | None] = [None]  # of each of these: the field that was read last
    expected = False  # whether that field's value is next
    for token in _TOKEN.finditer(text):
        container = nesting[-1]
        if token[0] in "}]":
            nesting.pop()
            names.pop()
            expected = False
            continue
        if isinstance(container, dict) and not expected:
            names[-1] = name = str(_scalar(token[0], finite))
            expected = True
            if duplicates is not None and name in container:
                repeated[f'duplicate field "{_path(nesting, names)}"'] = None
            continue
        expected = False
        value: JSONValue = {} if token[0] == "{" else [] if token[0] == "[" else _scalar(token[0], finite)
        if isinstance(container, dict):
            container[cast(str, names[-1])] = value
        else:
            container.append(value)
        if isinstance(value, (dict, list)):
            nesting.append(value)
            names.append(None)
    if duplicates is not None:
        duplicates += repeated
    return cut(root[0])


def _scalar(token: str, finite: bool) -> JSONValue:
    if token[0] in "-0123456789" and not math.isfinite(number := float(token)):
        if finite:
            raise OverflowError(token)
        return number
    value: JSONValue = json.loads(token)
    return _SURROGATES.sub("\ufffd", value) if isinstance(value, str) else value


def _path(nesting: Sequence[_Container], names: Sequence[str | None]) -> str:
    steps = [
        f".{name}" if isinstance(container, dict) else f"[{len(container) - 1}]"
        for container, name in zip(nesting[1:], names[1:], strict=True)
    ]
    return "".join(steps).removeprefix(".")


ValueType = TypeVar("ValueType")


def cut(value: ValueType) -> ValueType:
    """The same value, changed in place: objects and lists below `LEVELS` levels of them are text."""
    level: list[object] = [value]
    for _ in range(LEVELS - 1):
        level = [child for container in level for _, child in children(container) if isinstance(child, (dict, list))]
        if not level:
            return value
    for container in level:
        for position, child in children(container):
            if isinstance(child, (dict, list)):
                cast("dict[object, object]", container)[position] = msgspec.Raw(encoded(child))
    return value


def opened(value: JSONValue | msgspec.Raw) -> JSONValue:
    """What a text stands for, itself `cut`; any other value as it is."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return decode(bytes(value))
    except RecursionError:
        return decode_deep(bytes(value).decode())


def cut_again(value: JSONValue) -> JSONValue:
    """A copy, `cut`, of a value in which some of the text has been opened."""
    return decode_deep(encoded(value).decode())


def children(container: object) -> Sequence[tuple[object, object]]:
    """The names or indices of what a container holds, and that."""
    if isinstance(container, dict):
        return list(container.items())
    return list(enumerate(container)) if isinstance(container, list) else ()


def encoded(value: object) -> bytes:
    """JSON with its names in order, written without recursion."""
    written: list[bytes] = []
    # What is still to be written, the next one last; what is JSON already is a `Raw`.
    rest: list[object] = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, dict):
            fields = sorted(item.items(), key=lambda field: str(field[0]))
            written.append(b"{")
            rest.append(_END_OF_OBJECT)
            for index, (name, member) in reversed([*enumerate(fields)]):
                # The name as it is in an object: there a number is text.
                written_name = msgspec.json.encode({name: None})[1:-5]
                rest += (member, msgspec.Raw(written_name), _COMMA) if index else (member, msgspec.Raw(written_name))
        elif isinstance(item, list):
            written.append(b"[")
            rest.append(_END_OF_LIST)
            for index, member in reversed([*enumerate(item)]):
                rest += (member, _COMMA) if index else (member,)
        else:
            written.append(msgspec.json.encode(item))
    return b"".join(written)
