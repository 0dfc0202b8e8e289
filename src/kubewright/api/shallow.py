"""The outermost parts of a JSON text, found without recursion.

Servers accept objects that are nested deeper than Python decodes. What such an object is called can still be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

# Strings are matched whole: brackets, commas and colons inside of them mean nothing. One that does not end is a quote.
# Compiled when first used: most programs never meet such an object.
_STRUCTURE = rb'(?s)"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:"]'


def members(raw: bytes) -> dict[str, bytes]:
    """The members of an object, each value as the JSON it is. Raises `msgspec.DecodeError` when it is no object."""
    found: dict[str, bytes] = {}
    for start, colon, end in _parts(raw, b"{"):
        name = msgspec.json.decode(raw[start:colon], type=str)
        found[name] = raw[colon + 1 : end].strip()
    return found


def elements(raw: bytes) -> list[bytes]:
    """The elements of an array, each as the JSON it is. Raises `msgspec.DecodeError` when it is no array."""
    return [raw[start:end].strip() for start, _, end in _parts(raw, b"[")]


def _parts(raw: bytes, opening: bytes) -> Iterator[tuple[int, int, int]]:
    """Of each part on the first level: where it begins, where its first colon is, and where it ends."""
    if not raw.lstrip().startswith(opening):
        raise msgspec.DecodeError(f"JSON is malformed: expected {opening.decode()}")
    depth = start = 0
    colon = -1
    for found in re.finditer(_STRUCTURE, raw):
        match found[0]:
            case b"{" | b"[":
                depth += 1
                if depth == 1:
                    start = found.end()
            case b"}" | b"]":
                depth -= 1
                if depth == 0:
                    if raw[start : found.start()].strip():
                        yield start, colon, found.start()
                    return
            case b"," if depth == 1:
                yield start, colon, found.start()
                start, colon = found.end(), -1
            case b":" if depth == 1 and colon < 0:
                colon = found.start()
            case b'"':
                break
            case _:
                pass
    raise msgspec.DecodeError("Input data was truncated")
