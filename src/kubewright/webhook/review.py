"""AdmissionReview v1: what the API server sends to a webhook, and what it is answered with."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Literal, Self, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from kubewright.api.authentication.v1 import UserInfo
from kubewright.api.codec import NOT_JSON, decode, decode_json, encode
from kubewright.api.errors import KubernetesError
from kubewright.api.markers import JSONObject
from kubewright.api.resources import Object
from kubewright.client.errors import Status
from kubewright.webhook.json_patch import json_patch


class ReviewForm(Struct, frozen=True):
    """A form of review: its names, and the field of a configuration that says which versions of it are understood."""

    api_version: str
    kind: str
    versions_field: str


ADMISSION = ReviewForm("admission.k8s.io/v1", "AdmissionReview", "admissionReviewVersions")

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

ObjectT = TypeVar("ObjectT", bound=Object)

_ABSENT = (b"", b"null")


class BadReview(KubernetesError):
    """The body of a request is not a review that can be answered; the message says why."""


class RequestKind(Struct, frozen=True):
    """The kind of the object in a request."""

    group: str = ""
    version: str = ""
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.group}/{self.version} {self.kind}".lstrip("/")


class RequestResource(Struct, frozen=True):
    """The resource that a request is for."""

    group: str = ""
    version: str = ""
    resource: str = ""


class ReviewRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """One request that the API server asks about. Objects are JSON, as they were sent."""

    uid: str = ""
    kind: RequestKind = RequestKind()
    resource: RequestResource = RequestResource()
    sub_resource: str = ""
    request_kind: RequestKind | None = None
    """The kind in the version that the client used, where that is another one than `kind`."""
    request_resource: RequestResource | None = None
    request_sub_resource: str = ""
    name: str = ""
    """Empty for an object that gets its name from the server."""
    namespace: str = ""
    operation: Operation = "CREATE"
    user_info: UserInfo = field(default_factory=UserInfo)
    object: Raw = Raw()
    """The object as it will be; empty for DELETE."""
    old_object: Raw = Raw()
    """The object as it is; empty for CREATE and CONNECT."""
    dry_run: bool | None = None
    options: Raw = Raw()

    def object_as(self, kind: type[ObjectT]) -> ObjectT | None:
        """The object as it will be, decoded; None for DELETE. Raises `DecodeError` when it does not fit the type."""
        return _decoded(kind, self.object)

    def old_object_as(self, kind: type[ObjectT]) -> ObjectT | None:
        """The object as it is, decoded; None where there is none yet."""
        return _decoded(kind, self.old_object)

    @property
    def described(self) -> str:
        """The object for messages: `Pod shop/web-0`, with its subresource; `Pod shop/web-*` before it has a name."""
        name = self.name or _name_in(self.object)
        key = f"{self.namespace}/{name}" if self.namespace else name
        kind = f"{self.kind.kind}/{self.sub_resource}" if self.sub_resource else self.kind.kind
        return f"{kind} {key}"


class AdmissionResponse(Struct, frozen=True, kw_only=True):
    """The answer to a request: by default it is admitted as it is."""

    allowed: bool = True
    status: Status | None = None
    """Of a request that is denied: message, reason, code and causes."""
    patch: Sequence[JSONObject] = ()
    """The operations of a JSON patch (RFC 6902) that change the object, of a webhook that mutates."""
    warnings: Sequence[str] = ()
    """Shown to the user, whether or not the request is denied. The server cuts long ones."""
    audit_annotations: Mapping[str, str] = {}

    @classmethod
    def denied(cls, message: str, *, code: int = 403, reason: str = "Forbidden", warnings: Sequence[str] = ()) -> Self:
        """The request is not admitted."""
        return cls(allowed=False, status=Status(message=message, reason=reason, code=code), warnings=warnings)

    @classmethod
    def patched(cls, request: ReviewRequest, changed: JSONObject, *, warnings: Sequence[str] = ()) -> Self:
        """The request is admitted with `changed` as its object: the answer is the difference to what was sent."""
        return cls(patch=json_patch(decode_json(request.object), changed), warnings=warnings)


class _Review(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: ReviewRequest | None = None


class _Head(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


_reviews = msgspec.json.Decoder(_Review)
_heads = msgspec.json.Decoder(_Head)


def read_review(body: bytes) -> ReviewRequest:
    """The request in an AdmissionReview. Raises `BadReview`."""
    try:
        review = _reviews.decode(body)
    except NOT_JSON as error:
        raise unreadable(body, error, ADMISSION) from None
    check_names(review.api_version, review.kind, ADMISSION)
    if review.request is None or not review.request.uid:
        raise incomplete(review.request, ADMISSION)
    return review.request


def unreadable(body: bytes, error: Exception, form: ReviewForm) -> BadReview:
    """The error for a body that is no review of that form."""
    if not body:
        return BadReview(f"the body is empty: expected {form.kind}")
    if isinstance(error, RecursionError):
        return BadReview(f"the {form.kind} is nested too deeply to be decoded")
    if not isinstance(error, msgspec.ValidationError):
        return BadReview(f"the body is not JSON: {error}")
    try:
        head = _heads.decode(body)
    except msgspec.ValidationError as problem:
        return BadReview(f"the body is not an object of kind {form.kind}: {problem}")
    except NOT_JSON as problem:  # behind the field that does not fit
        return unreadable(body, problem, form)
    check_names(head.api_version, head.kind, form)
    return BadReview(f"the {form.kind} does not fit {form.api_version}: {error}")


def incomplete(request: Struct | None, form: ReviewForm) -> BadReview:
    """The error for a review without a request, or a request without a uid."""
    if request is None:
        return BadReview(f"the {form.kind} has no request")
    return BadReview(f"the request of the {form.kind} has no uid, which the answer has to repeat")


def check_names(api_version: str, kind: str, form: ReviewForm) -> None:
    """Raise `BadReview` for another form of review."""
    if api_version != form.api_version or kind != form.kind:
        raise BadReview(
            f'the body is of apiVersion "{api_version}" and kind "{kind}": expected "{form.api_version}" and '
            f'"{form.kind}"; the configuration has to have {form.versions_field}: ["v1"]'
        )


def written(uid: str, answer: AdmissionResponse) -> bytes:
    """The AdmissionReview that answers the request with that uid."""
    response: dict[str, object] = {"uid": uid, "allowed": answer.allowed}
    if answer.status is not None:
        response["status"] = _without_empty(msgspec.to_builtins(answer.status))
    if answer.allowed and answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(encode(answer.patch)).decode("ascii")
    if answer.warnings:
        response["warnings"] = answer.warnings
    if answer.audit_annotations:
        response["auditAnnotations"] = answer.audit_annotations
    return encode({"apiVersion": ADMISSION.api_version, "kind": ADMISSION.kind, "response": response})


def _without_empty(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_empty(each) for name, each in value.items() if each}
    return value


class _Names(Struct, rename="camel"):
    name: str = ""
    generate_name: str = ""


class _Named(Struct):
    metadata: _Names


def _name_in(raw: Raw) -> str:
    """The name of an object that was created without one, as far as it is known. The server does not repeat it."""
    try:
        names = msgspec.json.decode(raw, type=_Named).metadata
    except NOT_JSON:
        return ""
    return names.name or f"{names.generate_name}*"


def _decoded(kind: type[ObjectT], raw: Raw) -> ObjectT | None:
    content = bytes(raw)
    return None if content in _ABSENT else decode(kind, content)
