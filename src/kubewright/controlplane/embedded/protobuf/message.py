"""Reads one protobuf message into the JSON that Go would write of the same struct.

A message is a table: what to do with each tag, and what JSON shows of a field that was not sent. Go sends zeros, too,
so what counts is not whether a field was sent, but whether JSON leaves its zero out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple, TypeAlias

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.protobuf.wire import END_GROUP, FIXED64, Malformed, beyond, skipped, varint

PutContent: TypeAlias = Callable[[JSONObject, bytes], None]
"""Puts what a field contains where it belongs in the object."""
PutNumber: TypeAlias = Callable[[JSONObject, int], None]
"""The same for an unsigned 64-bit number."""


class MessageField(NamedTuple):
    """What to do with one field; one that is sent in two ways, packed and not, is there twice."""

    number: int
    wire_type: int
    go_name: str
    put_content: PutContent | None = None
    put_number: PutNumber | None = None
    """Exactly one of the two."""
    put_unsent: Callable[[JSONObject], None] | None = None
    """Puts what JSON shows of the field if the object has nothing of it. None: nothing."""
    is_message: bool = False
    """Whether several contents are parts of one message; `put_content` raises SentAgain for the second."""


class SentAgain(Exception):
    """A message came for a field that has one: both are parts of the same."""


class Message:
    """Reads messages of one type. Its table is made when the first one comes: types refer to each other in circles."""

    def __init__(self, name: str, fields: Callable[[], Iterable[MessageField]]) -> None:
        self._name = name
        self._make_fields = fields

    @cached_property
    def _fields(self) -> dict[int, MessageField]:
        return {field.number << 3 | field.wire_type: field for field in self._make_fields()}

    @cached_property
    def _unsent(self) -> list[Callable[[JSONObject], None]]:
        return [field.put_unsent for field in self._fields.values() if field.put_unsent]

    @cached_property
    def _go_names(self) -> dict[int, str]:
        return {field.number: field.go_name for field in self._fields.values()}

    def read(self, data: bytes) -> JSONObject:
        """The message as JSON. Raises Malformed."""
        found: JSONObject = {}
        try:
            self._put(found, data)
        except SentAgain:
            found = {}
            self._put_united(found, data)
        for put_unsent in self._unsent:
            put_unsent(found)
        return found

    def _put(self, found: JSONObject, data: bytes) -> None:
        # The most frequent code of all: numbers of one byte, as nearly all are, are read in place.
        fields = self._fields
        position, end = 0, len(data)
        while position < end:
            start = position
            tag = data[position]
            position += 1
            if tag >= 0x80:
                tag, position = varint(data, start)
            field = fields.get(tag)
            if field is None:
                position = self._after_unknown(data, start, tag)
                continue
            _, wire_type, _, put_content, put_number, _, _ = field
            if wire_type == FIXED64:
                number = 8
            elif position < end and data[position] < 0x80:
                number = data[position]
                position += 1
            else:
                number, position = varint(data, position)
            if put_content is not None:
                stop = position + number
                if stop > end:
                    raise beyond(stop)
                put_content(found, data[position:stop])
                position = stop
            elif put_number is not None:
                put_number(found, number)

    def _after_unknown(self, data: bytes, start: int, tag: int) -> int:
        """Where to go on after a field that the table does not have in this form."""
        wire_type, number = tag & 7, tag >> 3 & 0xFFFFFFFF
        if wire_type == END_GROUP:
            raise Malformed(f"proto: {self._name}: wiretype end group for non-group")
        if number == 0 or number >= 1 << 31:
            signed = number - (1 << 32) if number else 0
            raise Malformed(f"proto: {self._name}: illegal tag {signed} (wire type {tag})")
        if number in self._go_names:
            raise Malformed(f"proto: wrong wireType = {wire_type} for field {self._go_names[number]}")
        return skipped(data, start)

    def _put_united(self, found: JSONObject, data: bytes) -> None:
        """`_put` for data with several parts of one message."""
        once = bytearray()
        parts: dict[int, bytearray] = {}
        position = 0
        while position < len(data):
            tag, content = varint(data, position)
            stop = skipped(data, position)
            if tag in self._fields and self._fields[tag].is_message:
                _, content = varint(data, content)
                parts.setdefault(tag, bytearray()).extend(data[content:stop])
            else:
                once += data[position:stop]
            position = stop
        self._put(found, bytes(once))
        for tag, united in parts.items():
            put_content = self._fields[tag].put_content
            if put_content is not None:
                put_content(found, bytes(united))


class MapEntry(Message):
    """Reads an entry of a map, in which Go skips what it does not expect.

    Known difference: a key or value that reaches beyond its entry is refused here; Go reads on in what follows.
    """

    def _after_unknown(self, data: bytes, start: int, tag: int) -> int:
        return skipped(data, start)
