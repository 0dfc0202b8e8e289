"""Reading the object that a request carries: of the kind that is wanted, without what its kind does not have.

What cannot be read is refused with the real server's message, which shows the beginning of the body.
"""

from __future__ import annotations

from functools import partial

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.decoding import decode_body
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request
from kubewright.controlplane.embedded.http.exchange import HTTPRequest
from kubewright.controlplane.embedded.protobuf import decode_protobuf
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.metadata import check_kind, unrecognized
from kubewright.controlplane.embedded.rest.unknown import check_fields

_PARSING = "couldn't get version/kind; json parse error: "
_CONVERTING = "error converting YAML to JSON: "
_RECOGNISED = "the object provided is unrecognized"
_HANDLED = " cannot be handled as a "
# The type that the real server looks for kind and version with.
_PROBE = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


def read_object(call: Call, request: HTTPRequest) -> JSONObject:
    """The object in the body, of the kind of the endpoint, without fields its kind does not have."""
    duplicates: list[str] = []
    body = _recognised(call, _decoded(call, request, duplicates), request.body)
    check_kind(call, body, request.body)
    _check_metadata(call, body)
    check_fields(call, body, duplicates, sent=request.body)
    return body


def _decoded(call: Call, request: HTTPRequest, duplicates: list[str]) -> JSONValue:
    try:
        return decode_body(
            request.header("content-type"),
            request.body,
            protobuf=partial(decode_protobuf, endpoint=call.resource.gvk),
            duplicates=duplicates,
            # For built-in kinds, an error about a number names its field.
            finite=call.resource.custom,
        )
    except StatusError as error:
        # Errors inside of a recognised body come from the protobuf reader.
        if error.code != 400 or error.message.startswith(_RECOGNISED) or _HANDLED in error.message:
            raise
        raise unrecognized(call, error.message.removeprefix(_CONVERTING), request.body) from None


def _recognised(call: Call, value: JSONValue, body: bytes) -> JSONObject:
    if value is None:
        # As in Go, null sets no field.
        return {}
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {json_kind(value)} into Go value of type {_PROBE}"
        raise unrecognized(call, f"{_PARSING}{why}", body)
    for name in ("apiVersion", "kind"):
        found = value.get(name)
        if found is not None and not isinstance(found, str):
            why = f"json: cannot unmarshal {json_kind(found)} into Go struct field .{name} of type string"
            raise unrecognized(call, f"{_PARSING}{why}", body)
    return value


def _check_metadata(call: Call, obj: JSONObject) -> None:
    found, gvk = obj.get("metadata"), call.resource.gvk
    if found is not None and not isinstance(found, dict) and not call.resource.custom:
        raise bad_request(
            f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: json: cannot unmarshal '
            f"{json_kind(found)} into Go struct field {gvk.kind}.metadata of type v1.ObjectMeta"
        )
