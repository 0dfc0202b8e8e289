"""Opens a protobuf body: four bytes that say it is one, then the kind and the encoded object."""

from __future__ import annotations

from typing import Final, cast

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import quoted, summarized
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request
from kubewright.controlplane.embedded.protobuf.layout import ENVELOPE_FIELDS, PREFIX
from kubewright.controlplane.embedded.protobuf.message import Message
from kubewright.controlplane.embedded.protobuf.readers import message_of_kind, message_with
from kubewright.controlplane.embedded.protobuf.wire import Malformed

_SCHEME: Final = "pkg/runtime/scheme.go:111"  # what kube-apiserver calls its kinds in messages

_ENVELOPE = message_with("Unknown", ENVELOPE_FIELDS)


def decode_protobuf(body: bytes, endpoint: GroupVersionKind | None = None) -> JSONObject:
    """The object in a body as Go would write it in JSON, beginning with its kind and apiVersion.

    `endpoint` is the kind that a create or update is for: it stands in for what the body leaves out, and errors are
    worded as there. Without it, they are worded as for the options of a deletion. Raises StatusError.
    """
    kind = None
    try:
        envelope = _ENVELOPE.read(_content(body))
        kind = _kind(mapping(envelope, "typeMeta"), endpoint)
        read = _message(kind).read(cast(bytes, envelope["raw"] or b""))
    except Malformed as error:
        raise _refused(str(error), body, kind, endpoint) from None
    except RecursionError:
        raise _refused("exceeded max depth", body, kind, endpoint) from None
    return {"kind": kind.kind, "apiVersion": kind.api_version, **read}


def _content(body: bytes) -> bytes:
    if not body:
        raise Malformed("empty data")
    if not body.startswith(PREFIX):
        expected = " ".join(map(str, PREFIX))
        raise Malformed(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    if body == PREFIX:
        raise Malformed("empty body")
    return body[len(PREFIX) :]


def _kind(sent: JSONObject, endpoint: GroupVersionKind | None) -> GroupVersionKind:
    """The kind of the object, as far as it is sent; an apiVersion that is none is as good as not sent."""
    api_version, kind = text(sent, "apiVersion"), text(sent, "kind")
    group, _, version = api_version.rpartition("/") if api_version.count("/") < 2 else ("", "", "")
    if endpoint is not None:
        kind = kind or endpoint.kind
        if not version:
            group, version = endpoint.group, endpoint.version
    for name, value in (("Kind", kind), ("apiVersion", version)):
        if not value:
            written = f"runtime.TypeMeta{{APIVersion:{quoted(api_version)}, Kind:{quoted(kind)}}}"
            raise Malformed(f"Object '{name}' is missing in '{written}'")
    return GroupVersionKind(group, version, kind)


def _message(kind: GroupVersionKind) -> Message:
    message = message_of_kind(kind.api_version, kind.kind)
    if message is None:
        named, version = quoted(kind.kind), quoted(kind.api_version)
        raise Malformed(f'no kind {named} is registered for version {version} in scheme "{_SCHEME}"')
    return message


def _refused(why: str, body: bytes, kind: GroupVersionKind | None, endpoint: GroupVersionKind | None) -> StatusError:
    if endpoint is None:
        return bad_request(why)
    if kind is not None:
        return bad_request(
            f"{kind.kind} in version {quoted(kind.version)} cannot be handled as a {endpoint.kind}: {why}"
        )
    shown = summarized(body)
    return bad_request(f"the object provided is unrecognized (must be of type {endpoint.kind}): {why} ({shown})")
