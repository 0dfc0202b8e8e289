"""From a request for a resource to its answer: reads the body, runs the verb, renders what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

import msgspec

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.decoding import decode_body
from kubewright.controlplane.embedded.document import JSONObject, text
from kubewright.controlplane.embedded.exchange import Request, Response, json_response
from kubewright.controlplane.embedded.negotiation import Wanted
from kubewright.controlplane.embedded.protobuf import decode_protobuf
from kubewright.controlplane.embedded.rest import patching
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.deleting import delete, delete_collection, options_of, success
from kubewright.controlplane.embedded.rest.metadata import check_kind
from kubewright.controlplane.embedded.rest.reading import Listed, get, list_entries, rendered, rendered_list
from kubewright.controlplane.embedded.rest.reviews import REVIEWS
from kubewright.controlplane.embedded.rest.subresources import HANDLERS
from kubewright.controlplane.embedded.rest.unknown import check_fields
from kubewright.controlplane.embedded.rest.watching import watch
from kubewright.controlplane.embedded.rest.writing import create, update
from kubewright.controlplane.embedded.status import bad_request, method_not_allowed
from kubewright.controlplane.embedded.storage import Entry
from kubewright.controlplane.embedded.tables import table_of, watch_rendering


def dispatch(call: Call, request: Request, wanted: Wanted) -> Response:
    """Answer a request for a resource. Raises StatusError."""
    target, resource = call.target, call.resource
    if target.subresource and target.subresource != "status":
        handler = HANDLERS.get((resource.gvk.group, resource.plural, target.subresource)) or HANDLERS.get(
            ("*", "*", target.subresource)
        )
        if handler is not None:
            return handler(call, request)
    elif target.verb not in resource.verbs:
        raise method_not_allowed(resource.plural, resource.gvk.group, request.method)
    review = REVIEWS.get((resource.gvk.group, resource.plural))
    if review is not None:
        return json_response(review(call, read_object(call, request)), 201)
    return _VERBS[target.verb](call, request, wanted)


def _get(call: Call, request: Request, wanted: Wanted) -> Response:
    return answer(call, get(call), wanted)


def _list(call: Call, request: Request, wanted: Wanted) -> Response:
    return answer_list(call, list_entries(call), wanted)


def _watch(call: Call, request: Request, wanted: Wanted) -> Response:
    resource = call.resource
    if wanted.form == "table":
        return Response(200, stream=watch(call, watch_rendering(call)))
    render: Callable[[Entry], bytes] = (
        _metadata_bytes if wanted.form == "metadata" else lambda entry: rendered(resource, entry)
    )
    return Response(200, stream=watch(call, render))


def _create(call: Call, request: Request, wanted: Wanted) -> Response:
    obj = read_object(call, request)
    return answer(call, create(call, obj), wanted, status=201)


def _update(call: Call, request: Request, wanted: Wanted) -> Response:
    obj = read_object(call, request)
    entry, created = update(call, obj)
    return answer(call, entry, wanted, status=201 if created else 200)


def _patch(call: Call, request: Request, wanted: Wanted) -> Response:
    content_type = request.header("content-type").partition(";")[0].strip()
    body = decode_body(content_type, request.body, protobuf=decode_protobuf)
    entry, created = patching.patch(call, content_type, body)
    return answer(call, entry, wanted, status=201 if created else 200)


def _delete(call: Call, request: Request, wanted: Wanted) -> Response:
    deleted = delete(call, options_of(call, _read_options(request)))
    if deleted.is_gone and not call.resource.strategy.returns_deleted_object:
        return json_response(success(call, deleted))
    return answer(call, deleted.entry, wanted)


def _delete_collection(call: Call, request: Request, wanted: Wanted) -> Response:
    return answer_list(call, delete_collection(call, options_of(call, _read_options(request))), wanted)


_VERBS: dict[str, Callable[[Call, Request, Wanted], Response]] = {
    "get": _get,
    "list": _list,
    "watch": _watch,
    "create": _create,
    "update": _update,
    "patch": _patch,
    "delete": _delete,
    "deletecollection": _delete_collection,
}


def read_object(call: Call, request: Request) -> JSONObject:
    """The object in the body, of the kind of the endpoint, without fields its kind does not have."""
    duplicates: list[str] = []
    body = decode_body(
        request.header("content-type"),
        request.body,
        protobuf=partial(decode_protobuf, endpoint=call.resource.gvk),
        duplicates=duplicates,
    )
    if not isinstance(body, dict):
        raise bad_request(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {_json_type(body)} "
            "into Go value of type struct { APIVersion string; Kind string }"
        )
    check_kind(call, body)
    check_fields(call, body, duplicates)
    return body


def _json_type(value: JSONValue) -> str:
    return "array" if isinstance(value, list) else "string" if isinstance(value, str) else "number"


def _read_options(request: Request) -> JSONObject | None:
    if not request.body:
        return None
    body = decode_body(request.header("content-type"), request.body, protobuf=decode_protobuf)
    if not isinstance(body, dict):
        raise bad_request("the body of a deletion must be an object")
    if text(body, "kind") not in ("", "DeleteOptions"):
        kind, version = text(body, "kind"), text(body, "apiVersion")
        raise bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    return body


def answer(call: Call, entry: Entry, wanted: Wanted, status: int = 200) -> Response:
    """One object in the form the client wants."""
    if wanted.form == "table":
        return json_response(table_of(call, [entry], None), status)
    if wanted.form == "metadata":
        return Response(status, _metadata_bytes(entry) + b"\n")
    return Response(status, rendered(call.resource, entry) + b"\n")


def answer_list(call: Call, listed: Listed, wanted: Wanted) -> Response:
    """Several objects in the form the client wants."""
    if wanted.form == "table":
        return json_response(table_of(call, listed.entries, listed))
    if wanted.form == "metadata":
        return Response(200, b"".join(_metadata_list(listed)))
    return Response(200, b"".join(rendered_list(call.resource, listed)))


def _metadata_bytes(entry: Entry) -> bytes:
    return msgspec.json.encode(
        {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": entry.value.get("metadata")}
    )


def _metadata_list(listed: Listed) -> Iterable[bytes]:
    metadata: JSONObject = {"resourceVersion": str(listed.revision)}
    if listed.continue_:
        metadata["continue"] = listed.continue_
    items = cast("list[JSONValue]", [msgspec.Raw(_metadata_bytes(entry)) for entry in listed.entries])
    yield msgspec.json.encode(
        {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items}
    )
    yield b"\n"
