"""The readers of all messages. Only those that come are made ready to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.protobuf.layout import FieldLayout, fields_of, message_name, parsed
from kubewright.controlplane.embedded.protobuf.message import MapEntry, Message, MessageField, SentAgain
from kubewright.controlplane.embedded.protobuf.scalars import (
    CONTENTS,
    NUMBERS,
    SINGLE_VALUED,
    SPECIAL,
    ZEROS,
    Reader,
    double,
)
from kubewright.controlplane.embedded.protobuf.wire import FIXED64, LENGTH, VARINT, varint

_TIMES: Final = ("Time", "MicroTime")


def message_of_kind(api_version: str, kind: str) -> Message | None:
    """The message of a kind; None when there is no such kind."""
    name = message_name(api_version, kind)
    return None if name is None else _message(name)


@cache
def _message(name: str) -> Message:
    return Message(name.rpartition(".")[2], lambda: [made for field in fields_of(name) for made in _fields(field)])


def message_with(go_name: str, fields: Iterable[str]) -> Message:
    """A message with fields written as in the table."""
    return Message(go_name, lambda: [made for written in fields for made in _fields(parsed(written))])


def _fields(field: FieldLayout) -> Iterable[MessageField]:
    number, name, go_name, type_, keeps_zero = field
    unsent = _unsent(name, type_) if keeps_zero else None
    if not name:
        yield MessageField(number, LENGTH, go_name, _inline(type_), put_unsent=_unsent_inline(type_))
    elif type_.startswith("{}"):
        yield MessageField(number, LENGTH, go_name, _map(name, type_.removeprefix("{}")), put_unsent=unsent)
    elif type_.startswith("[]"):
        item = type_.removeprefix("[]")
        if item in NUMBERS:
            put_number, put_packed = _numbers(name, NUMBERS[item])
            yield MessageField(number, VARINT, go_name, put_number=put_number, put_unsent=unsent)
            yield MessageField(number, LENGTH, go_name, put_packed)
        else:
            yield MessageField(number, LENGTH, go_name, _list(name, _reader(item)), put_unsent=unsent)
    else:
        base = type_.removeprefix("*")
        keeps_zero |= base != type_
        if base in NUMBERS:
            put = _number(name, NUMBERS[base], keeps_zero)
            yield MessageField(number, VARINT, go_name, put_number=put, put_unsent=unsent)
        elif base == "double":
            yield MessageField(number, FIXED64, go_name, _content(name, double, keeps_zero), put_unsent=unsent)
        elif base in CONTENTS or base in _TIMES:
            yield MessageField(number, LENGTH, go_name, _content(name, _reader(base), keeps_zero), put_unsent=unsent)
        else:
            put_message = _single_message(name, _reader(base), keeps_zero)
            yield MessageField(number, LENGTH, go_name, put_message, put_unsent=unsent, is_message=True)


def _reader(type_: str) -> Reader:
    """What reads one value that has a length."""
    if type_ in CONTENTS:
        return CONTENTS[type_]
    if type_ in SPECIAL:
        fields, converted = SPECIAL[type_]
        message = message_with("Timestamp" if type_ in _TIMES else type_, fields)
    else:
        message = _message(type_)
        converted_or_none = SINGLE_VALUED.get(type_.rpartition(".")[2])
        if converted_or_none is None:
            return message.read
        converted = converted_or_none
    if type_ in _TIMES:
        # Nothing at all is Go's zero, not the beginning of 1970.
        return lambda content: converted(message.read(content)) if content else None
    return lambda content: converted(message.read(content))


# What JSON shows of fields that were not sent


def _unsent(name: str, type_: str) -> Callable[[JSONObject], None]:
    zero = _zero(type_)

    def put(found: JSONObject) -> None:
        if name not in found:
            found[name] = zero()

    return put


def _zero(type_: str) -> Callable[[], JSONValue]:
    if type_ in ZEROS:
        value = ZEROS[type_]
        return lambda: value
    if type_ in CONTENTS or type_.startswith(("*", "[]", "{}")):
        return lambda: None
    read = _reader(type_)
    return lambda: read(b"")


def _unsent_inline(type_: str) -> Callable[[JSONObject], None] | None:
    if type_.startswith("*"):
        return None
    message = _message(type_)

    def put(found: JSONObject) -> None:
        for name, value in message.read(b"").items():
            found.setdefault(name, value)

    return put


# Where what was sent goes


def _content(name: str, read: Reader, keeps_zero: bool) -> Callable[[JSONObject, bytes], None]:
    def put(found: JSONObject, content: bytes) -> None:
        value = read(content)
        if value or keeps_zero:
            found[name] = value
        else:
            found.pop(name, None)

    return put


def _single_message(name: str, read: Reader, keeps_zero: bool) -> Callable[[JSONObject, bytes], None]:
    def put(found: JSONObject, content: bytes) -> None:
        if name in found:
            raise SentAgain
        value = read(content)
        if value or keeps_zero:
            found[name] = value

    return put


def _number(name: str, convert: Callable[[int], JSONValue], keeps_zero: bool) -> Callable[[JSONObject, int], None]:
    def put(found: JSONObject, number: int) -> None:
        if number or keeps_zero:
            found[name] = convert(number)
        else:
            found.pop(name, None)

    return put


def _numbers(
    name: str, convert: Callable[[int], JSONValue]
) -> tuple[Callable[[JSONObject, int], None], Callable[[JSONObject, bytes], None]]:
    def put(found: JSONObject, number: int) -> None:
        _append(found, name, convert(number))

    def put_packed(found: JSONObject, content: bytes) -> None:
        position = 0
        while position < len(content):
            number, position = varint(content, position)
            _append(found, name, convert(number))

    return put, put_packed


def _list(name: str, read: Reader) -> Callable[[JSONObject, bytes], None]:
    def put(found: JSONObject, content: bytes) -> None:
        _append(found, name, read(content))

    return put


def _append(found: JSONObject, name: str, value: JSONValue) -> None:
    collected = found.get(name)
    if isinstance(collected, list):
        collected.append(value)
    else:
        found[name] = [value]


def _map(name: str, type_: str) -> Callable[[JSONObject, bytes], None]:
    entry = MapEntry("", lambda: [*_fields(parsed("1 key string")), *_fields(parsed(f"2 value {type_}"))])
    # Go makes an empty slice before it reads what a map holds, so none is null there.
    empty = str if type_ == "bytes" else list if type_.endswith(".ExtraValue") else None

    def put(found: JSONObject, content: bytes) -> None:
        sent = entry.read(content)
        collected = found.get(name)
        if not isinstance(collected, dict):
            collected = found[name] = {}
        value = sent["value"]
        collected[text(sent, "key")] = empty() if value is None and empty else value

    return put


def _inline(type_: str) -> Callable[[JSONObject, bytes], None]:
    message = _message(type_.removeprefix("*"))

    def put(found: JSONObject, content: bytes) -> None:
        found.update(message.read(content))

    return put
