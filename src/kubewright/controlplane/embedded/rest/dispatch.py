"""From a request for a resource to its response: reads the body, runs the verb, renders the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.decoding import decode_body
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, json_response
from kubewright.controlplane.embedded.http.negotiation import (
    PROTOBUF,
    YAML,
    MediaTypeOptions,
    negotiate,
    not_acceptable,
)
from kubewright.controlplane.embedded.protobuf import decode_protobuf
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest import patching
from kubewright.controlplane.embedded.rest.bodies import read_object
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.deleting import delete, delete_collection, options_of, success
from kubewright.controlplane.embedded.rest.options import check_options
from kubewright.controlplane.embedded.rest.presentation import WatchPresentation
from kubewright.controlplane.embedded.rest.reading import (
    MANY,
    Listed,
    get,
    json_list,
    list_entries,
    rendered,
    rendered_list,
)
from kubewright.controlplane.embedded.rest.reviews import REVIEWS
from kubewright.controlplane.embedded.rest.subresources import HANDLERS
from kubewright.controlplane.embedded.rest.watching import watch
from kubewright.controlplane.embedded.rest.writing import create, update
from kubewright.controlplane.embedded.storage.store import StoredObject
from kubewright.controlplane.embedded.tables import table_of, watch_presentation


def dispatch(call: Call, request: HTTPRequest, wanted: MediaTypeOptions) -> HTTPResponse:
    """Answer a request for a resource. Raises StatusError."""
    target, resource = call.target, call.resource
    check_options(call, request.header("content-type"))
    if target.subresource != "status":
        handler = HANDLERS.get((resource.gvk.group, resource.plural, target.subresource)) or HANDLERS.get(
            ("*", "*", target.subresource)
        )
        if handler is not None:
            if target.subresource == "token":
                # There is no table of a token.
                negotiate(request.header("accept"), groups=())
            if target.verb == "create":
                call.services.admission.enter(call, {})
            return handler(call, request)
    review = REVIEWS.get((resource.gvk.group, resource.plural))
    if review is not None:
        # There is no table of a review.
        negotiate(request.header("accept"), groups=())
        return json_response(review(call, read_object(call, request)), 201)
    return _VERBS[target.verb](call, request, wanted)


def _get(call: Call, request: HTTPRequest, wanted: MediaTypeOptions) -> HTTPResponse:
    return answer(call, get(call), wanted)


def _list(call: Call, request: HTTPRequest, wanted: MediaTypeOptions) -> HTTPResponse:
    return answer_list(call, list_entries(call), wanted)


def _watch(call: Call, request: HTTPRequest, wanted: MediaTypeOptions) -> HTTPResponse:
    if wanted.content_type == YAML:
        raise not_acceptable(watch=True)
    presentation = _presentation(call, wanted)
    if wanted.content_type != PROTOBUF:
        return HTTPResponse(200, stream=watch(call, presentation))
    # Most control planes never see a client that requests it.
    from kubewright.controlplane.embedded.protobuf.encoding import event_frame

    framed = replace(presentation, key=lambda: (PROTOBUF, presentation.key()), line=event_frame)
    return HTTPResponse(200, stream=watch(call, framed), content_type=f"{PROTOBUF};stream=watch")


def _presentation(call: Call, wanted: MediaTypeOptions) -> WatchPresentation:
    if wanted.form == "table":
        return watch_presentation(call, wanted.version)
    resource, version = call.resource, wanted.version
    if wanted.form == "metadata":
        return WatchPresentation(lambda entry: _metadata_bytes(entry, version), lambda: (resource, version))
    opening = resource.opening
    return WatchPresentation(lambda entry: opening + entry.raw[1:], lambda: resource)


def _create(call: Call, request: HTTPRequest, wanted: MediaTypeOptions) -> HTTPResponse:
    obj = read_object(call, request)
    return answer(call, create(call, obj), wanted, status=201)


def _update(call: Call, request: HTTPRequest, wanted: MediaTypeOptions) -> HTTPResponse:
    obj = read_object(call, request)
    entry, created = update(call, obj)
    return answer(call, entry, wanted, status=201 if created else 200)


def _patch(call: Call, request: HTTPRequest, wanted: MediaTypeOptions) -> HTTPResponse:
    content_type = request.header("content-type").partition(";")[0].strip()
    entry, created = patching.patch(call, content_type, request.body)
    return answer(call, entry, wanted, status=201 if created else 200)


def _delete(call: Call, request: HTTPRequest, wanted: MediaTypeOptions) -> HTTPResponse:
    options = options_of(call, _read_options(request))
    deleted = delete(call, options)
    if deleted.is_gone and not call.resource.strategy.returns_deleted_object:
        return json_response(success(call, deleted))
    return answer(call, deleted.entry, wanted, status=202 if options.cascading and not deleted.is_gone else 200)


def _delete_collection(call: Call, request: HTTPRequest, wanted: MediaTypeOptions) -> HTTPResponse:
    options = options_of(call, _read_options(request))
    listed = list_entries(call)
    # Before the first is gone: what is handled again must find the same list.
    call.services.admission.prepare_deletions(call, listed.entries)
    deletions = delete_collection(call, options, listed)
    if len(listed.entries) <= MANY:
        for _ in deletions:
            pass
        return answer_list(call, listed, wanted)

    def pieces() -> Iterator[bytes]:
        for _ in deletions:
            yield b""
        yield from answer_list(call, listed, wanted).pieces or ()

    return HTTPResponse(200, pieces=pieces())


_VERBS: dict[str, Callable[[Call, HTTPRequest, MediaTypeOptions], HTTPResponse]] = {
    "get": _get,
    "list": _list,
    "watch": _watch,
    "create": _create,
    "update": _update,
    "patch": _patch,
    "delete": _delete,
    "deletecollection": _delete_collection,
}


def _read_options(request: HTTPRequest) -> JSONObject | None:
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


def answer(call: Call, entry: StoredObject, wanted: MediaTypeOptions, status: int = 200) -> HTTPResponse:
    """One object in the representation that was negotiated."""
    if wanted.form == "table":
        return HTTPResponse(status, b"".join(table_of(call, [entry], None, wanted.version)))
    if wanted.form == "metadata":
        _check_plurality(call, wanted, "PartialObjectMetadata")
        return HTTPResponse(status, _metadata_bytes(entry, wanted.version) + b"\n")
    return HTTPResponse(status, rendered(call.resource, entry) + b"\n")


def answer_list(call: Call, listed: Listed, wanted: MediaTypeOptions) -> HTTPResponse:
    """Several objects in the representation that was negotiated."""
    if wanted.form == "table":
        pieces = table_of(call, listed.entries, listed, wanted.version)
    elif wanted.form == "metadata":
        _check_plurality(call, wanted, "PartialObjectMetadataList")
        pieces = _metadata_list(listed, wanted.version)
    else:
        pieces = rendered_list(call.resource, listed)
    if len(listed.entries) > MANY:
        return HTTPResponse(200, pieces=pieces)
    return HTTPResponse(200, b"".join(pieces))


def _check_plurality(call: Call, wanted: MediaTypeOptions, kind: str) -> None:
    """The metadata of one object is no list, that of several is."""
    if wanted.kind != kind:
        is_list = kind.endswith("List")
        go_type = _go_type(call.resource, is_list=is_list)
        problem = f"the requested object is {'a' if is_list else 'not a'} list ({go_type})"
        raise StatusError(406, "NotAcceptable", f"you requested {wanted.kind}, but {problem}")


def _go_type(resource: ResourceType, *, is_list: bool) -> str:
    if resource.custom:
        return "*unstructured.UnstructuredList" if is_list else "*unstructured.Unstructured"
    package = resource.gvk.group.partition(".")[0] or "core"
    return f"*{package}.{resource.gvk.kind}{'List' if is_list else ''}"


def _metadata_bytes(entry: StoredObject, version: str) -> bytes:
    api_version = f"meta.k8s.io/{version}"
    return msgspec.json.encode(
        {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": entry.value.get("metadata")}
    )


def _metadata_list(listed: Listed, version: str) -> Iterator[bytes]:
    metadata: JSONObject = {"resourceVersion": str(listed.revision)}
    if listed.continue_:
        metadata["continue"] = listed.continue_
    api_version = f"meta.k8s.io/{version}"
    opening = msgspec.json.encode(
        {"kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": metadata, "items": None}
    )
    # Of nothing, the real server sends null.
    if not listed.entries:
        return iter((opening, b"\n"))
    items = (_metadata_bytes(entry, version) for entry in listed.entries)
    return json_list(opening.removesuffix(b"null}"), items, b"}\n")
