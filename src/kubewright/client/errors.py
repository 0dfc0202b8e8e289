"""The errors of talking to a Kubernetes API server, as one small hierarchy.

Everything derives from `KubernetesError`. Two branches matter: `APIError` is a failure that the server answered
with (its `Status` has the reason), `TransportError` is the lack of a response. `is_temporary` says whether to retry.
No message ever holds a credential: what is printed is verb, kind, namespace, name and the server's own message.
"""

from __future__ import annotations

import msgspec

from kubewright.api.errors import DecodeError as DecodeError
from kubewright.api.errors import KubernetesError as KubernetesError


class ConfigError(KubernetesError):
    """The configuration cannot be used; the message names the file, the entry and what to do."""


class CredentialError(ConfigError):
    """Credentials could not be obtained (exec plugin not found, failing, hanging; token file unreadable)."""


class TransportError(KubernetesError):
    """No complete response came from the server."""

    temporary = True


class ConnectionFailed(TransportError):
    """No connection: refused, unreachable, name not found, refused by the proxy."""


class TLSError(TransportError):
    """The TLS handshake failed: unknown authority, wrong host name, expired certificate, our certificate refused."""

    temporary = False


class ConnectionLost(TransportError):
    """The connection ended in the middle of a request or its response. Whether the request took effect is unknown."""


class RequestTimeout(TransportError):
    """The deadline passed before the response was complete. Whether the request took effect is unknown."""


class ProtocolError(TransportError):
    """What came back is not what a Kubernetes API server sends (not HTTP, not JSON, cut short, too long)."""

    temporary = False


class StatusCause(msgspec.Struct, frozen=True, rename="camel"):
    """One reason among several, usually one invalid field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The object that the server's response is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The `v1.Status` of a response, as the server sent it."""

    status: str = "Failure"
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None
    metadata: dict[str, object] | None = None

    @property
    def names_object(self) -> bool:
        """True when it is about one object, rather than about a kind or about nothing the server knows."""
        return self.details is not None and self.details.name != ""

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        """The single causes; empty when the server gave none."""
        return (self.details.causes or ()) if self.details else ()


class APIError(KubernetesError):
    """The server answered with a failure: `status` is its `v1.Status`, `code` the HTTP code, `request` its description.

    `request` reads like `update Pod default/web-1`; it and the server's message make up the text of the error.
    """

    def __init__(self, status: Status, request: str = "", *, retry_after: float | None = None) -> None:
        self.status = status
        self.request = request
        self.retry_after = retry_after
        message = status.message or status.reason or f"the server answered {status.code} and gave no reason"
        super().__init__(f"{request}: {message}" if request else message)

    def __reduce__(self) -> tuple[type[APIError], tuple[Status, str], dict[str, object]]:
        return type(self), (self.status, self.request), {**self.__dict__, "args": self.args}

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return self.status.code

    @property
    def reason(self) -> str:
        """The machine-readable reason, such as `AlreadyExists`; empty when the server gave none."""
        return self.status.reason


class BadRequest(APIError):
    """400: the request itself is malformed."""


class Unauthorized(APIError):
    """401: the server does not accept our credentials."""


class Forbidden(APIError):
    """403: the server does not permit the request to us."""


class NotFound(APIError):
    """404: no such object, or no such kind."""

    def is_about(self, name: str) -> bool:
        """True when the object of that name does not exist: a misconfigured proxy answers 404, too, without it."""
        return self.status.details is not None and self.status.details.name == name


class NoSuchKind(NotFound):
    """404: the server does not serve the kind at all, which its discovery confirms."""


class MethodNotAllowed(APIError):
    """405: the kind does not support the verb."""


class NotAcceptable(APIError):
    """406: the server cannot answer in the requested content type."""


class AlreadyExists(APIError):
    """409: an object of that name exists already."""


# Of updates and patches, and of the resourceVersion among the preconditions of a deletion.
_MODIFIED = ("the object has been modified", "ResourceVersion in")


class Conflict(APIError):
    """409: the object changed since it was read, or another field manager owns a field. Read again, then retry."""

    @property
    def is_optimistic_lock(self) -> bool:
        """True when the object was changed since it was read: reading it again and retrying helps.

        False where reading again does not help: another field manager, an object of another uid, a quota
        that the server did not get to charge. The server has one reason for all of them, and only its message differs.
        """
        status = self.status
        if status.reason != "Conflict" or status.causes:
            return False
        # The message is about the quota then, with the same text; another client may well write quotas, too.
        if status.details is not None and status.details.kind == "resourcequotas" and "Quota" not in self.request:
            return False
        return any(phrase in status.message for phrase in _MODIFIED)


class Expired(APIError):
    """410: the resourceVersion or continue token is too old. List again."""


class RequestTooLarge(APIError):
    """413: the body is over the server's limit."""


class UnsupportedMediaType(APIError):
    """415: the server does not accept that kind of body or patch."""


class Invalid(APIError):
    """422: the object breaks validation; `status.causes` names the fields."""


class TooManyRequests(APIError):
    """429: the server is shedding load, or an eviction would break a disruption budget."""

    temporary = True


class InternalError(APIError):
    """500: the server failed."""

    temporary = True


class ServiceUnavailable(APIError):
    """503: the server, or something it depends on, is not ready."""

    temporary = True


class ServerTimeout(APIError):
    """500 or 504: the server gave up waiting; the request may or may not have taken effect."""

    temporary = True


# The server's reason decides; the code decides where there is no reason (proxies, load balancers).
_BY_REASON: dict[str, type[APIError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "NotAcceptable": NotAcceptable,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Gone": Expired,
    "Expired": Expired,
    "RequestEntityTooLarge": RequestTooLarge,
    "UnsupportedMediaType": UnsupportedMediaType,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": InternalError,
    "ServiceUnavailable": ServiceUnavailable,
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
}
_BY_CODE: dict[int, type[APIError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    409: Conflict,
    410: Expired,
    413: RequestTooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    502: ServiceUnavailable,
    503: ServiceUnavailable,
    504: ServerTimeout,
}


def error_class(status: Status) -> type[APIError]:
    """The class for a failure: by reason, then by code, else plain `APIError`."""
    return _BY_REASON.get(status.reason) or _BY_CODE.get(status.code) or APIError
