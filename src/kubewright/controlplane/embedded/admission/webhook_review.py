"""AdmissionReview: what a webhook is asked, and whether what it answers is an answer."""

from __future__ import annotations

import binascii
from base64 import b64decode
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
    for name, kind, go_type in (("uid", str, "types.UID"), ("allowed", bool, "bool")):
        value = at(answer, "response", name)
        if value is not None and not isinstance(value, kind):
            field = f"AdmissionResponse.response.{name} of type {go_type}"
            raise InvalidResponse(f"json: cannot unmarshal {json_kind(value)} into Go struct field {field}")
    try:
        b64decode(text(answer, "response", "patch"), validate=True)
    except binascii.Error:
        raise InvalidResponse("illegal base64 data at input byte 0") from None


def verified(answer: JSONValue, uid: str, version: Version, *, mutating: bool) -> ReviewResponse:
    """The response in a decoded answer. Raises InvalidResponse."""
    response = at(answer, "response")
    if not isinstance(response, dict):
        raise InvalidResponse("webhook response was absent")
    patch, patch_type = b64decode(text(response, "patch")), response.get("patchType")
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
        [str(warning) for warning in items(response, "warnings")],
        {name: str(value) for name, value in mapping(response, "auditAnnotations").items()},
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
        details=mapping(status, "details") if "details" in status else None,
    )
