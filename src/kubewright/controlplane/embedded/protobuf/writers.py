"""The writers of all messages: JSON becomes the bytes that Kubernetes' generated writers make of the same Go struct.

Fields come in the order of their numbers, the keys of a map sorted. A field that is neither a pointer nor a list nor a
map is written even if JSON left it out: with Go's zero, which is known beforehand.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from typing import Final, TypeAlias, cast

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.protobuf.layout import FieldLayout, fields_of, message_name, parsed
from kubewright.controlplane.embedded.protobuf.message_forms import MESSAGE_FORMS
from kubewright.controlplane.embedded.protobuf.scalars import SPECIAL
from kubewright.controlplane.embedded.protobuf.wire import FIXED64, LENGTH, VARINT, varint_bytes

Write: TypeAlias = Callable[[JSONValue], bytes]

_UINT64: Final = (1 << 64) - 1
_DOUBLE: Final = struct.Struct("<d")


class MessageWriter:
    """Writes messages of one type. Its fields are made when the first one comes: types refer to each other."""

    def __init__(self, fields: Callable[[], Iterable[FieldLayout]]) -> None:
        self._layout = fields

    @cached_property
    def _fields(self) -> list[tuple[str, Write, bytes]]:
        """The name, what writes a value, and what is written if there is none. A name may be empty: see `write`."""
        return [(field.name, *_field(field)) for field in sorted(self._layout())]

    def write(self, value: JSONObject) -> bytes:
        """The message of an object."""
        get = value.get
        return b"".join(
            [
                # What has no name in JSON has its fields beside the others.
                write(value) if not name else unset if (found := get(name)) is None else write(found)
                for name, write, unset in self._fields
            ]
        )

    def pieces(self, value: dict[str, msgspec.Raw], batch: int) -> Iterator[bytes]:
        """The message of an object whose fields are still JSON; lists come in pieces of about `batch` bytes of it."""
        for name, write, unset in self._fields:
            raw = value.get(name)
            if raw is None:
                yield unset
            elif bytes(memoryview(raw)[:1]) == b"[":
                yield from _list_pieces(raw, write, batch)
            else:
                found: JSONValue = msgspec.json.decode(raw)
                yield unset if found is None else write(found)


def _list_pieces(raw: msgspec.Raw, write: Write, batch: int) -> Iterator[bytes]:
    items: list[JSONValue] = []
    size = 0
    for item in msgspec.json.decode(raw, type=list[msgspec.Raw]):
        items.append(msgspec.json.decode(item))
        size += len(memoryview(item))
        if size > batch:
            yield write(items)
            items, size = [], 0
    yield write(items)


def writer_of_kind(api_version: str, kind: str) -> MessageWriter | None:
    """The writer of a kind; None when there is no such kind."""
    name = message_name(api_version, kind)
    return None if name is None else _message(name)


@cache
def _message(name: str) -> MessageWriter:
    return MessageWriter(lambda: fields_of(name))


def writer_with(fields: Iterable[str]) -> MessageWriter:
    """A writer of a message with fields written as in the table."""
    return MessageWriter(lambda: map(parsed, fields))


def _field(field: FieldLayout) -> tuple[Write, bytes]:
    """What writes a field, and what is written if it has no value."""
    type_ = field.type
    if type_.startswith("{}"):
        return _map(field.number, type_.removeprefix("{}")), b""
    if type_.startswith("[]"):
        return _list(_single(field.number, type_.removeprefix("[]"))), b""
    if type_.startswith("*"):
        return _single(field.number, type_.removeprefix("*")), b""
    write = _single(field.number, type_)
    return write, _zero(field.number, type_, write)


def _zero(number: int, type_: str, write: Write) -> bytes:
    match type_:
        case "bytes" | "json" | "as-sent":
            return b""
        case "bool" | "int32" | "int64" | "double":
            return write(0)
        case "string":
            return write("")
        case "Quantity":
            return write("0")
        case "IntOrString":
            return write(0)
        case "Time" | "MicroTime" | "RawExtension" | "FieldsV1" | "JSON":
            return varint_bytes(number << 3 | LENGTH) + b"\0"
    return write({})


def _single(number: int, type_: str) -> Write:
    """What writes one value with its tag."""
    if type_ in ("bool", "int32", "int64"):
        tag = varint_bytes(number << 3 | VARINT)
        return lambda value: tag + varint_bytes(int(cast(int, value)) & _UINT64)
    if type_ == "double":
        tag = varint_bytes(number << 3 | FIXED64)
        return lambda value: tag + _DOUBLE.pack(cast(float, value))
    tag, content = varint_bytes(number << 3 | LENGTH), _content(type_)

    def write(value: JSONValue) -> bytes:
        written = content(value)
        return tag + varint_bytes(len(written)) + written

    return write


def _content(type_: str) -> Write:
    """What writes one value that has a length."""
    match type_:
        case "string":
            return lambda value: cast(str, value).encode()
        case "bytes":
            return lambda value: base64.b64decode(cast(str, value))
        case "json":
            return msgspec.json.encode
        case "as-sent":
            return lambda value: cast(bytes, value)
    writer = writer_with(SPECIAL[type_][0]) if type_ in SPECIAL else _message(type_)
    form = MESSAGE_FORMS.get(type_.rpartition(".")[2])
    if form is None:
        return lambda value: writer.write(cast(JSONObject, value))
    return lambda value: writer.write(form(value))


def _list(item: Write) -> Write:
    return lambda values: b"".join(map(item, cast(list[JSONValue], values)))


def _map(number: int, type_: str) -> Write:
    tag, key = varint_bytes(number << 3 | LENGTH), _single(1, "string")
    value = _single(2, type_)

    def write(values: JSONValue) -> bytes:
        written = bytearray()
        for name, found in sorted(cast(JSONObject, values).items()):
            entry = key(name) + (b"" if found is None else value(found))
            written += tag + varint_bytes(len(entry)) + entry
        return bytes(written)

    return write
