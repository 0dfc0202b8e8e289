"""The result of a patch: an object, or the error that it is none."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind, json_text, type_name
from kubewright.controlplane.embedded.apimachinery.status import StatusError, invalid, invalid_value

_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


def checked(patched: JSONValue) -> JSONObject:
    """The patched document. Raises 422 when nothing that could be an object is left of it."""
    if isinstance(patched, dict):
        return patched
    problem = f"json: cannot unmarshal {json_kind(patched)} into Go value of type {_TYPE_META}"
    detail = f"couldn't get version/kind; json parse error: {problem}"
    raise invalid("", "", "", [invalid_value("patch", json_text(patched).decode(), detail)])


class DoesNotApply(StatusError):
    """422 without a reason why: the server gives none for a patch that cannot be applied to the object as it is."""

    def __init__(self, *, is_test: bool = False) -> None:
        message = "the server rejected our request due to an error in our request"
        super().__init__(422, "Invalid", message, details={})
        self.is_test = is_test
        """Whether it is a test that failed."""
        self.operation: JSONObject = {}
        """The step of a JSON patch that failed."""


def failure(message: str) -> StatusError:
    """500 without a reason: how the server answers most malformed strategic merge patches."""
    return StatusError(500, "", message)


def wrong_type(expected: JSONValue, found: JSONValue) -> StatusError:
    """500 for a value of another type than that of `expected`."""
    return failure(f"expected a {type_name(expected)}, but received a {type_name(found)}")
