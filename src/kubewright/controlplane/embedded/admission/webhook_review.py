"""AdmissionReview: what a webhook is asked, and whether what it answers is an answer."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.admission.request import AdmissionRequest
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.registry.resources import ResourceType

_BAD_REQUEST = 400

_RESPONSE: Mapping[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}
_STATUS: Mapping[str, tuple[type, str]] = {
    "message": (str, "string"),
    "reason": (str, "v1.StatusReason"),
    "details": (dict, "v1.StatusDetails"),
    "code": (int, "int32"),
}
_DETAILS: Mapping[str, tuple[type, str]] = {
    "name": (str, "string"),
    "group": (str, "string"),
    "kind": (str, "string"),
    "uid": (str, "types.UID"),
    "causes": (list, "[]v1.StatusCause"),
    "retryAfterSeconds": (int, "int32"),
}

Version: TypeAlias = Literal["v1", "v1beta1"]


class InvalidResponse(Exception):
    """An answer that cannot be decoded, or breaks the rules of AdmissionReview."""


class ReviewResponse(NamedTuple):
    """What a webhook answered."""

    is_allowed: bool
    status: JSONObject
    patch: bytes
    patch_type: str
    warnings: list[str]
    annotations: dict[str, str]


def review(
    request: AdmissionRequest, resource: ResourceType, new: JSONObject | None, uid: str, version: Version
) -> bytes:
    """The AdmissionReview about a request, in which `new` is the object after it."""
    asked: JSONObject = {
        "uid": uid,
        "options": None,
        **request.document(resource),
        "object": new,
        "oldObject": request.old_object_in(resource),
    }
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": asked}
    )


def check_types(answer: JSONObject) -> None:
    """Raises InvalidResponse when an answer could not be an AdmissionReview."""
    _check_fields(answer, "AdmissionReview", "", {"response": (dict, "v1.AdmissionResponse")})
    response = mapping(answer, "response")
    _check_fields(response, "AdmissionResponse", "response.", _RESPONSE)
    for name, values in (
        ("auditAnnotations", list(mapping(response, "auditAnnotations").values())),
        ("warnings", items(response, "warnings")),
    ):
        for value in values:
            _check_fields({name: value}, "AdmissionResponse", "response.", {name: (str, "string")})
    status = mapping(response, "status")
    _check_fields(status, "Status", "response.status.", _STATUS)
    _check_fields(mapping(status, "details"), "StatusDetails", "response.status.details.", _DETAILS)
    try:
        b64decode(_without_breaks(text(response, "patch")), validate=True)
    except binascii.Error:
        raise InvalidResponse("illegal base64 data at input byte 0") from None


def _check_fields(value: JSONObject, struct: str, path: str, fields: Mapping[str, tuple[type, str]]) -> None:
    for name, (kind, go_type) in fields.items():
        found = value.get(name)
        if found is None or (isinstance(found, kind) and not (kind is int and isinstance(found, bool))):
            continue
        shown = f"number {found}" if kind is int and isinstance(found, float) else json_kind(found)
        raise InvalidResponse(
            f"json: cannot unmarshal {shown} into Go struct field {struct}.{path}{name} of type {go_type}"
        )


def _without_breaks(encoded: str) -> str:
    """Go ignores the ends of lines in what is encoded."""
    return encoded.replace("\r", "").replace("\n", "")


def verified(answer: JSONValue, uid: str, version: Version, *, mutating: bool) -> ReviewResponse:
    """The response in a decoded answer. Raises InvalidResponse."""
    response = at(answer, "response")
    if not isinstance(response, dict):
        raise InvalidResponse("webhook response was absent")
    patch, patch_type = b64decode(_without_breaks(text(response, "patch"))), response.get("patchType")
    if version == "v1":
        _check(answer, response, uid)
        _check_patch(patch, patch_type, mutating=mutating)
    elif patch:
        patch_type = "JSONPatch"
    return ReviewResponse(
        response.get("allowed") is True,
        mapping(response, "status"),
        patch if mutating else b"",
        str(patch_type or ""),
        [str(warning or "") for warning in items(response, "warnings")],
        {name: str(value or "") for name, value in mapping(response, "auditAnnotations").items()},
    )


def _check(answer: JSONValue, response: JSONObject, uid: str) -> None:
    if text(response, "uid") != uid:
        raise InvalidResponse(f"expected response.uid={quoted(uid)}, got {quoted(text(response, 'uid'))}")
    api_version, kind = text(answer, "apiVersion"), text(answer, "kind")
    if (api_version, kind) != ("admission.k8s.io/v1", "AdmissionReview"):
        shown = api_version if "/" in api_version else f"/{api_version}"
        raise InvalidResponse(
            f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}, Kind={kind}"
        )


def _check_patch(patch: bytes, patch_type: JSONValue, *, mutating: bool) -> None:
    if not mutating:
        for name, value in (("patch", patch), ("patchType", patch_type)):
            if value or (name == "patchType" and value is not None):
                raise InvalidResponse(f"validating webhook may not return response.{name}")
    elif patch and patch_type is None:
        raise InvalidResponse("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise InvalidResponse("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise InvalidResponse('webhook returned invalid response.patchType of ""')


def denial(name: str, status: JSONObject) -> StatusError:
    """The Status of a request that a webhook denied, made of the one that it answered."""
    denied = f"admission webhook {quoted(name)} denied the request"
    message, reason, code = text(status, "message"), text(status, "reason"), status.get("code")
    explained = message or reason
    return StatusError(
        max(code, _BAD_REQUEST) if isinstance(code, int) else _BAD_REQUEST,
        reason,
        f"{denied}: {explained}" if explained else f"{denied} without explanation",
        details=_known_details(mapping(status, "details")) if "details" in status else None,
    )


def _known_details(details: JSONObject) -> JSONObject:
    return {name: details[name] for name in _DETAILS if name in details}
