"""Writes protobuf by hand, for what Go's clients would never send."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

WriteField: TypeAlias = Callable[[int, bytes | str | int], bytes]
WriteBody: TypeAlias = Callable[[str, str, bytes], bytes]


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


@pytest.fixture
def field() -> WriteField:
    """A field: a number as varint, all else with its length."""
    return _field


@pytest.fixture
def envelope() -> WriteBody:
    """A body, of apiVersion, kind and encoded object."""
    return lambda api_version, kind, raw: (
        b"k8s\0" + _field(1, _field(1, api_version) + _field(2, kind)) + _field(2, raw)
    )
