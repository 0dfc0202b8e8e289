from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from kubewright.client import errors
from kubewright.client.errors import (
    AlreadyExists,
    APIError,
    Conflict,
    DecodeError,
    Expired,
    KubernetesError,
    NotFound,
    Status,
    StatusDetails,
    TransportError,
    error_class,
)

TEMPORARY = {
    "TransportError",
    "ConnectionFailed",
    "ConnectionLost",
    "RequestTimeout",
    "TooManyRequests",
    "InternalError",
    "ServiceUnavailable",
    "ServerTimeout",
}
CLASSES = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]


def made(cls: type[Exception]) -> KubernetesError:
    error = cls(Status(message="no")) if issubclass(cls, APIError) else cls("no")
    assert isinstance(error, KubernetesError)
    return error


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_says_whether_trying_again_may_help(cls: type[Exception]) -> None:
    assert made(cls).is_temporary == (cls.__name__ in TEMPORARY)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_is_a_kubernetes_error(cls: type[Exception]) -> None:
    assert issubclass(cls, KubernetesError)
    assert not (issubclass(cls, APIError) and issubclass(cls, TransportError))


@pytest.mark.parametrize(
    ("reason", "code", "name"),
    [
        ("BadRequest", 400, "BadRequest"),
        ("Unauthorized", 401, "Unauthorized"),
        ("Forbidden", 403, "Forbidden"),
        ("NotFound", 404, "NotFound"),
        ("MethodNotAllowed", 405, "MethodNotAllowed"),
        ("NotAcceptable", 406, "NotAcceptable"),
        ("AlreadyExists", 409, "AlreadyExists"),
        ("Conflict", 409, "Conflict"),
        ("Gone", 410, "Expired"),
        ("Expired", 410, "Expired"),
        ("RequestEntityTooLarge", 413, "RequestTooLarge"),
        ("UnsupportedMediaType", 415, "UnsupportedMediaType"),
        ("Invalid", 422, "Invalid"),
        ("TooManyRequests", 429, "TooManyRequests"),
        ("InternalError", 500, "InternalError"),
        ("ServerTimeout", 500, "ServerTimeout"),
        ("ServiceUnavailable", 503, "ServiceUnavailable"),
        ("Timeout", 504, "ServerTimeout"),
    ],
)
def test_the_reason_decides_the_class(reason: str, code: int, name: str) -> None:
    assert error_class(Status(reason=reason, code=code)).__name__ == name
    assert error_class(Status(reason=reason)).__name__ == name


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (400, "BadRequest"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (405, "MethodNotAllowed"),
        (406, "NotAcceptable"),
        (409, "Conflict"),
        (410, "Expired"),
        (413, "RequestTooLarge"),
        (415, "UnsupportedMediaType"),
        (422, "Invalid"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (502, "ServiceUnavailable"),
        (503, "ServiceUnavailable"),
        (504, "ServerTimeout"),
        (418, "APIError"),
    ],
)
@pytest.mark.parametrize("reason", ["", "SomethingNew"])
def test_without_a_known_reason_the_code_decides(reason: str, code: int, name: str) -> None:
    assert error_class(Status(reason=reason, code=code)).__name__ == name


def test_already_exists_is_not_a_conflict() -> None:
    """Both are 409; a retry loop for conflicts must not spin on a name that is taken."""
    assert not issubclass(AlreadyExists, Conflict)


def test_the_message_names_the_request() -> None:
    status = Status(message="the object has been modified", reason="Conflict", code=409)

    assert str(Conflict(status, "update Pod default/web-1")) == "update Pod default/web-1: the object has been modified"
    assert str(Conflict(status)) == "the object has been modified"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status(reason="Expired", code=410), "watch Pod: Expired"),
        (Status(code=410), "watch Pod: the server answered 410 and gave no reason"),
    ],
)
def test_a_status_without_a_message_still_makes_a_sentence(status: Status, text: str) -> None:
    assert str(Expired(status, "watch Pod")) == text


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_an_error_survives_pickling_and_copying_whole(again: Callable[[NotFound], NotFound]) -> None:
    original = NotFound(
        Status(message="gone", code=404, details=StatusDetails(name="web-1")), "get Pod default/web-1", retry_after=2.0
    )
    original.args = (f"{original} (with an explanation)",)
    error = again(original)

    assert type(error) is NotFound
    assert str(error) == str(original)
    assert (error.status, error.request, error.retry_after) == (original.status, original.request, 2.0)


def test_an_error_of_the_connection_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(errors.ConnectionLost("gone")))

    assert type(error) is errors.ConnectionLost
    assert str(error) == "gone"


def test_a_status_without_details_has_no_causes() -> None:
    assert Status().causes == ()
    assert Status(details=StatusDetails()).causes == ()


def test_decoding_errors_belong_to_the_family_and_are_final() -> None:
    assert not DecodeError("no").is_temporary
