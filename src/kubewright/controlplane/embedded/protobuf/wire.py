"""Protobuf's encoding: numbers, and how far a field reaches. Complaints are those of Kubernetes' generated readers."""

from __future__ import annotations

from typing import Final

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
START_GROUP: Final = 3
END_GROUP: Final = 4
FIXED32: Final = 5

_INT64 = 1 << 63
_UINT64 = (1 << 64) - 1
_ONE_BYTE: Final = [bytes((number,)) for number in range(0x80)]


class Malformed(Exception):
    """Bytes that are not the message they should be, in Go's words."""


def varint(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned 64-bit number and where it ends."""
    number = shift = 0
    while shift < 64:
        if position >= len(data):
            raise Malformed("unexpected EOF")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & _UINT64, position
        shift += 7
    raise Malformed("proto: integer overflow")


def varint_bytes(number: int) -> bytes:
    """An unsigned number as it is sent."""
    if number < 0x80:
        return _ONE_BYTE[number]
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def beyond(stop: int) -> Malformed:
    """What is wrong with a field that reaches to `stop`, where there is nothing."""
    return Malformed("proto: negative length found during unmarshaling" if stop >= _INT64 else "unexpected EOF")


def skipped(data: bytes, position: int) -> int:
    """Where the field ends whose tag is at `position`; groups end with their last tag."""
    depth = 0
    while True:
        tag, position = varint(data, position)
        wire_type = tag & 7
        if wire_type == VARINT:
            _, position = varint(data, position)
        elif wire_type == FIXED64:
            position += 8
        elif wire_type == LENGTH:
            length, position = varint(data, position)
            position += length
        elif wire_type == START_GROUP:
            depth += 1
        elif wire_type == END_GROUP:
            if not depth:
                raise Malformed("proto: unexpected end of group")
            depth -= 1
        elif wire_type == FIXED32:
            position += 4
        else:
            raise Malformed(f"proto: illegal wireType {wire_type}")
        if position > len(data):
            raise beyond(position)
        if not depth:
            return position
