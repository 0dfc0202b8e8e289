"""How every kind that kube-apiserver knows as protobuf is laid out, from the table that tools/generate_protobuf writes.

The table is read when it is first needed.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final, NamedTuple

import msgspec

PREFIX: Final = b"k8s\0"
"""What every body begins with."""
ENVELOPE_FIELDS: Final = (
    "1 typeMeta:TypeMeta TypeMeta",
    "2 raw as-sent",
    "3 contentEncoding string",
    "4 contentType string",
)
"""What follows: the kind and the encoded object."""

_OF_EVERY_VERSION: Final = "meta/v1."


class _Table(msgspec.Struct):
    kinds: dict[str, dict[str, str]]
    messages: dict[str, list[str]]


@cache
def _table() -> _Table:
    content = resources.files(__package__).joinpath("table.json").read_bytes()
    return msgspec.json.decode(content, type=_Table)


def message_name(api_version: str, kind: str) -> str | None:
    """The message of a kind; None when there is no such kind."""
    kinds = _table().kinds
    name = kinds.get(api_version, {}).get(kind)
    if name is None:
        name = kinds["v1"].get(kind, "")
        if not name.startswith(_OF_EVERY_VERSION):
            return None
    return name


def fields_of(message: str) -> list[FieldLayout]:
    """The fields of a message, in the order of the Go struct."""
    return [parsed(written) for written in _table().messages[message]]


class FieldLayout(NamedTuple):
    """One field of a message."""

    number: int
    name: str
    """As in JSON; empty for a struct whose fields JSON has beside those of the message."""
    go_name: str
    type: str
    """A message or a scalar, after `*` for a pointer, `[]` for a list, `{}` for a map."""
    keeps_zero: bool
    """Whether JSON shows a zero."""


def parsed(written: str) -> FieldLayout:
    """A field as the table has it: `<number> <json name>[:<Go name>] <type>[?]`."""
    number, label, type_ = written.split(" ")
    name, _, go_name = label.partition(":")
    go_name = go_name or f"{name[0].upper()}{name[1:]}"
    return FieldLayout(int(number), name, go_name, type_.removesuffix("?"), not type_.endswith("?"))
