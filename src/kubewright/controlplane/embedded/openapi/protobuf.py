"""OpenAPI v2 as protobuf, the only form that Go clients request: gnostic's `openapi.v2.Document`.

Only what the documents here can hold is known. Values without a form of their own, such as extensions, travel as YAML.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import yaml

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping

_Encode: TypeAlias = Callable[[JSONValue], Iterable[bytes]]
"""The bytes of a field for a value: one piece, or one for each of several."""

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_UNBROKEN = 2**31 - 1


def document_bytes(document: JSONObject) -> bytes:
    """The document as a Go client reads it."""
    return _message(_DOCUMENT)(document)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    number &= (1 << 64) - 1
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH) + _varint(len(content)) + content


def _text(number: int) -> _Encode:
    return lambda value: [_field(number, str(value).encode())]


def _texts(number: int) -> _Encode:
    return lambda value: [_field(number, str(each).encode()) for each in items(value)]


def _flag(number: int) -> _Encode:
    return lambda value: [_varint(number << 3 | _VARINT) + b"\x01"] if value is True else []


def _integer(number: int) -> _Encode:
    return lambda value: [_varint(number << 3 | _VARINT) + _varint(value)] if isinstance(value, int) and value else []


def _double(number: int) -> _Encode:
    return lambda value: (
        [_varint(number << 3 | _FIXED64) + struct.pack("<d", value)] if isinstance(value, int | float) and value else []
    )


def _any(value: JSONValue) -> bytes:
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, sort_keys=False, width=_UNBROKEN)
    return _field(2, text.removesuffix("...\n").encode())


class _Dumper(yaml.CSafeDumper):
    """YAML as Go writes it: a text that would be read as something else than text is in double quotes."""


_TEXT = "tag:yaml.org,2002:str"
_MEANINGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "null", "timestamp", "merge"))
_OLD_BOOLEANS = frozenset(("y", "Y", "n", "N"))  # which yes, no, on and off are to both libraries


def _represented(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    meaning: str = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # in its stubs
    is_something_else = text in _OLD_BOOLEANS or meaning in _MEANINGS
    return dumper.represent_scalar(_TEXT, text, style='"' if is_something_else else None)


_Dumper.add_representer(str, _represented)


def _one(number: int, encode: Callable[[JSONValue], bytes]) -> _Encode:
    return lambda value: [_field(number, encode(value))]


def _each(number: int, encode: Callable[[JSONValue], bytes]) -> _Encode:
    return lambda value: [_field(number, encode(each)) for each in items(value)]


def _named(encode: Callable[[JSONValue], bytes], number: int = 1) -> Callable[[JSONValue], bytes]:
    """A map: a message of pairs."""
    return lambda value: b"".join(_pair(number, name, encode(each)) for name, each in mapping(value).items())


def _pair(number: int, name: str, value: bytes) -> bytes:
    return _field(number, _field(1, name.encode()) + _field(2, value))


def _message(fields: Mapping[str, _Encode], extensions: int = 0) -> Callable[[JSONValue], bytes]:
    """A message of the fields in their order, and of what begins with `x-`."""

    def encode(value: JSONValue) -> bytes:
        content = mapping(value)
        pieces = [
            piece for name, encode_field in fields.items() if name in content for piece in encode_field(content[name])
        ]
        if extensions:
            pieces += [_pair(extensions, name, _any(each)) for name, each in content.items() if name.startswith("x-")]
        return b"".join(pieces)

    return encode


def _schema(value: JSONValue) -> bytes:
    return _SCHEMA(value)


def _additional(value: JSONValue) -> bytes:
    if isinstance(value, dict):
        return _field(1, _schema(value))
    return _varint(2 << 3 | _VARINT) + _varint(value is True)  # one of two: it is there when it is false, too


def _type(value: JSONValue) -> bytes:
    return b"".join(_texts(1)(value if isinstance(value, list) else [value]))


def _parameter(value: JSONValue) -> bytes:
    content = mapping(value)
    if content.get("in") == "body":
        return _field(1, _BODY(content))
    number, encode = _PLACES[str(content.get("in"))]
    return _field(2, _field(number, encode(content)))


def _parameter_or_reference(value: JSONValue) -> bytes:
    reference = mapping(value).get("$ref")
    return _field(2, _field(1, str(reference).encode())) if reference else _field(1, _parameter(value))


# The order is that of the numbers, as Go writes them.
_SCHEMA: Final = _message(
    {
        "$ref": _text(1),
        "format": _text(2),
        "title": _text(3),
        "description": _text(4),
        "default": _one(5, _any),
        "multipleOf": _double(6),
        "maximum": _double(7),
        "exclusiveMaximum": _flag(8),
        "minimum": _double(9),
        "exclusiveMinimum": _flag(10),
        "maxLength": _integer(11),
        "minLength": _integer(12),
        "pattern": _text(13),
        "maxItems": _integer(14),
        "minItems": _integer(15),
        "uniqueItems": _flag(16),
        "maxProperties": _integer(17),
        "minProperties": _integer(18),
        "required": _texts(19),
        "enum": _each(20, _any),
        "additionalProperties": _one(21, _additional),
        "type": _one(22, _type),
        "items": _one(23, lambda value: _field(1, _schema(value))),
        "allOf": _each(24, _schema),
        "properties": _one(25, _named(_schema)),
        "externalDocs": _one(29, _message({"description": _text(1), "url": _text(2)})),
        "example": _one(30, _any),
    },
    31,
)
_BODY: Final = _message(
    {
        "description": _text(1),
        "name": _text(2),
        "in": _text(3),
        "required": _flag(4),
        "schema": _one(5, _schema),
    },
    6,
)
_PLACED: Final = {"required": _flag(1), "in": _text(2), "description": _text(3), "name": _text(4)}
_PLACES: Final = {
    "header": (1, _message({**_PLACED, "type": _text(5), "format": _text(6), "uniqueItems": _flag(19)}, 22)),
    "query": (3, _message({**_PLACED, "type": _text(6), "format": _text(7), "uniqueItems": _flag(20)}, 23)),
    "path": (4, _message({**_PLACED, "type": _text(5), "format": _text(6), "uniqueItems": _flag(19)}, 22)),
}
_RESPONSE: Final = _message(
    {"description": _text(1), "schema": _one(2, lambda value: _field(1, _schema(value)))},
    5,
)
_OPERATION: Final = _message(
    {
        "tags": _texts(1),
        "summary": _text(2),
        "description": _text(3),
        "operationId": _text(5),
        "produces": _texts(6),
        "consumes": _texts(7),
        "parameters": _each(8, _parameter_or_reference),
        "responses": _one(9, _named(lambda value: _field(1, _RESPONSE(value)))),
        "schemes": _texts(10),
        "deprecated": _flag(11),
    },
    13,
)
_PATH: Final = _message(
    {
        **{
            verb: _one(number, _OPERATION)
            for number, verb in enumerate(("get", "put", "post", "delete", "options", "head", "patch"), 2)
        },
        "parameters": _each(9, _parameter_or_reference),
    },
    10,
)
_API_KEY: Final = _message({"type": _text(1), "name": _text(2), "in": _text(3), "description": _text(4)}, 5)
_DOCUMENT: Final[Mapping[str, _Encode]] = {
    "swagger": _text(1),
    "info": _one(2, _message({"title": _text(1), "version": _text(2), "description": _text(3)}, 7)),
    "paths": _one(8, _named(_PATH, 2)),
    "definitions": _one(9, _named(_schema)),
    "parameters": _one(10, _named(_parameter)),
    "security": _each(12, _named(lambda value: b"".join(_texts(1)(value)))),
    "securityDefinitions": _one(13, _named(lambda value: _field(2, _API_KEY(value)))),
}
