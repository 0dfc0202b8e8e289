"""JSON as YAML. The items of a list are encoded one after the other, because many of them take long, all in all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import yaml

_BATCH: Final = 16 * 1024
"""Bytes of JSON that are encoded before others have their turn."""

_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def yaml_pieces(body: bytes) -> Iterator[bytes]:
    """A JSON object as YAML, its fields sorted."""
    try:
        if len(body) <= _BATCH:
            yield _yaml(msgspec.json.decode(body))
            return
        for name, raw in sorted(_fields(body).items()):
            if bytes(memoryview(raw)[:1]) == b"[" and (items := _items(raw)):
                yield _yaml({name: 0}).removesuffix(b" 0\n") + b"\n"
                yield from _yaml_items(items)
            else:
                yield _yaml({name: msgspec.json.decode(raw)})
    except RecursionError:
        # Where indenting would take more than the stack has (and more room than anybody has), JSON is YAML, too.
        yield body


def _yaml_items(items: list[msgspec.Raw]) -> Iterator[bytes]:
    batch: list[object] = []
    size = 0
    for item in items:
        batch.append(msgspec.json.decode(item))
        size += len(bytes(item))
        if size > _BATCH:
            yield _yaml(batch)
            batch, size = [], 0
    if batch:
        yield _yaml(batch)


def _yaml(value: object) -> bytes:
    encoded: bytes = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=True, encoding="utf-8")
    return encoded
