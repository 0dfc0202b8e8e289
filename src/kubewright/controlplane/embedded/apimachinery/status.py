"""The errors of the API server: `metav1.Status`, and the errors of single fields within it.

Raised anywhere below the request handlers as `StatusError`, rendered once at the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.gotext import printed_number, quoted

FieldErrorType: TypeAlias = Literal[
    "FieldValueNotFound",
    "FieldValueRequired",
    "FieldValueDuplicate",
    "FieldValueInvalid",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
    "InternalError",
]

_WORDS: dict[FieldErrorType, str] = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTypeInvalid": "Invalid value",
    "InternalError": "Internal error",
}
_WITHOUT_VALUE = {
    "FieldValueRequired",
    "FieldValueForbidden",
    "FieldValueTooLong",
    "InternalError",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that is wrong, worded as Go's `field.Error`; `value` is shown unless the type hides it."""

    type: FieldErrorType
    field: str
    value: JSONValue = None
    detail: str = ""
    tolerated: bool = False
    """Wrong before, and left alone by an update: a warning only."""

    @property
    def body(self) -> str:
        """Everything after the field."""
        words = _WORDS[self.type]
        if self.type not in _WITHOUT_VALUE:
            words += f": {shown(self.value)}"
        return f"{words}: {self.detail}" if self.detail else words

    def __str__(self) -> str:
        return f"{self.field}: {self.body}" if self.field else self.body


def shown(value: JSONValue) -> str:
    """A value as Go prints it in field errors: strings quoted, null as "null", structures as JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int | float):
        return printed_number(value)
    return msgspec.json.encode(value).decode()


def required(field: str, detail: str = "") -> FieldError:
    """A field that must be there."""
    return FieldError("FieldValueRequired", field, None, detail)


def invalid_value(field: str, value: JSONValue, detail: str) -> FieldError:
    """A field whose value is wrong."""
    return FieldError("FieldValueInvalid", field, value, detail)


def wrong_type(field: str, value: JSONValue, detail: str) -> FieldError:
    """A field whose value is of the wrong type."""
    return FieldError("FieldValueTypeInvalid", field, value, detail)


def not_supported(field: str, value: JSONValue, supported: Sequence[str]) -> FieldError:
    """A field whose value is none of those that are known."""
    known = ", ".join(f'"{name}"' for name in supported)
    return FieldError("FieldValueNotSupported", field, value, f"supported values: {known}")


def duplicate(field: str, value: JSONValue) -> FieldError:
    """A value that is there already."""
    return FieldError("FieldValueDuplicate", field, value)


def forbidden_field(field: str, detail: str) -> FieldError:
    """A field that may not be set, or not now."""
    return FieldError("FieldValueForbidden", field, None, detail)


class StatusError(Exception):
    """An error that is returned to the client as a `Status` with this code."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: JSONObject | None = None,
        metadata: JSONObject | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}

    def body(self) -> JSONObject:
        """The Status, its fields in the order of the real server."""
        status: JSONObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def qualified(plural: str, group: str) -> str:
    """`pods`, or `deployments.apps`: how messages name a resource or kind."""
    return f"{plural}.{group}" if group else plural


def _about(name: str, group: str, kind: str) -> JSONObject:
    details: JSONObject = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details


def not_found(plural: str, group: str, name: str) -> StatusError:
    """404 for an object."""
    message = f'{qualified(plural, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, details=_about(name, group, plural))


def no_such_resource() -> StatusError:
    """404 for a path that nothing serves."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(plural: str, group: str, name: str) -> StatusError:
    """409 for a name that is taken."""
    message = f'{qualified(plural, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_about(name, group, plural))


def conflict(plural: str, group: str, name: str, why: str) -> StatusError:
    """409 for a write that lost."""
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_about(name, group, plural))


_MAX_MESSAGE_SIZE = 2 << 20
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def forbidden(plural: str, group: str, name: str, why: str) -> StatusError:
    """403 about a resource or an object of it."""
    what = qualified(plural, group)
    message = f'{what} "{name}" is forbidden: {why}' if name else f"{what} is forbidden: {why}"
    return StatusError(403, "Forbidden", message, details=_about(name, group, plural))


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """422 with one cause per field; several are listed in brackets, each distinct message once."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    summary = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _about(name, group, kind)
    causes: list[JSONValue] = []
    for error in errors:
        cause: JSONObject = {"reason": error.type, "message": error.body}
        if error.field:
            cause["field"] = error.field
        causes.append(cause)
    details["causes"] = causes
    return StatusError(
        422, "Invalid", f"{qualified(kind, group)} {quoted(name)} is invalid: {summary}", details=details
    )


class NotConverted(StatusError):
    """An object that could not be converted to another version of its kind."""


def bad_request(message: str) -> StatusError:
    """400."""
    return StatusError(400, "BadRequest", message)


def expired(message: str, continue_: str = "") -> StatusError:
    """410, with the token of an inconsistent continuation when there is one."""
    return StatusError(410, "Expired", message, metadata={"continue": continue_} if continue_ else None)


def method_not_allowed(plural: str, group: str, verb: str) -> StatusError:
    """405."""
    message = f"{verb} is not supported on resources of kind {qualified(plural, group)!r}".replace("'", '"')
    return StatusError(405, "MethodNotAllowed", message, details=_about("", group, plural))


def no_such_method() -> StatusError:
    """405 for a path that does not take this method."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def too_large_to_store(size: int) -> StatusError:
    """500, with the message of etcd or, for what cannot even be sent there, of its client."""
    message = "etcdserver: request is too large"
    if size > _MAX_MESSAGE_SIZE:
        summary = f"trying to send message larger than max ({size} vs. {_MAX_MESSAGE_SIZE})"
        message = f"rpc error: code = ResourceExhausted desc = {summary}"
    return StatusError(500, "", message)


def unsupported_media_type(message: str) -> StatusError:
    """415."""
    return StatusError(415, "UnsupportedMediaType", message)
