"""Answers in protobuf: a body of JSON becomes the one that kube-apiserver would have sent instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.protobuf.layout import ENVELOPE_FIELDS, PREFIX
from kubewright.controlplane.embedded.protobuf.writers import MessageWriter, writer_of_kind, writer_with

_BATCH: Final = 64 * 1024
"""Bytes of JSON that are encoded before others have their turn."""

_ENVELOPE: Final = writer_with(ENVELOPE_FIELDS)
_EVENT: Final = writer_with(("1 type string", "2 object as-sent"))
_RAW: Final = writer_with(("1 raw as-sent",))
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def protobuf_pieces(body: bytes) -> Iterator[bytes]:
    """An object in JSON as protobuf. What is long is encoded in steps, before each of which there is an empty piece."""
    if len(body) <= _BATCH:
        yield _encoded(body)
        return
    fields = _fields(body)
    kind: JSONObject = {name: msgspec.json.decode(fields[name]) for name in ("apiVersion", "kind") if name in fields}
    made: list[bytes] = []
    for piece in _writer(kind).pieces(fields, _BATCH):
        made.append(piece)
        yield b""
    yield _enveloped(kind, b"".join(made))


def event_frame(event_type: bytes, rendered: bytes) -> bytes:
    """An event as it is sent on a stream of protobuf, of an object in JSON."""
    raw = _RAW.write(cast(JSONObject, {"raw": _encoded(rendered)}))
    event = _EVENT.write(cast(JSONObject, {"type": event_type.decode(), "object": raw}))
    return len(event).to_bytes(4, "big") + event


def _encoded(body: bytes) -> bytes:
    value: JSONObject = msgspec.json.decode(body)
    return _enveloped(value, _writer(value).write(value))


def _writer(kind: JSONObject) -> MessageWriter:
    writer = writer_of_kind(text(kind, "apiVersion"), text(kind, "kind"))
    if writer is None:
        why = "does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
        raise StatusError(406, "NotAcceptable", f"object {why}")
    return writer


def _enveloped(kind: JSONObject, raw: bytes) -> bytes:
    type_meta: JSONObject = {"apiVersion": text(kind, "apiVersion"), "kind": text(kind, "kind")}
    return PREFIX + _ENVELOPE.write(cast(JSONObject, {"typeMeta": type_meta, "raw": raw}))
