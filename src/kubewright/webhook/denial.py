"""Why a request is denied: one message, or the fields that are wrong, worded as the API server words its own.

raise Denied("workspaces are closed at night")

return [FieldCause.invalid("spec.replicas", 0, "must be greater than 0")]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from msgspec import Struct

from kubewright.api.codec import encode
from kubewright.api.errors import KubernetesError
from kubewright.api.resources import SECRET_KINDS
from kubewright.client.errors import Status, StatusCause, StatusDetails


class Denied(KubernetesError):
    """The request is not admitted. The message is shown to the user; code and reason are those of the answer."""

    def __init__(self, message: str, *, code: int = 403, reason: str = "Forbidden") -> None:
        super().__init__(message)
        if not 400 <= code < 600:
            raise ValueError(f"Denied(code={code}): expected a code of HTTP for a failure, 400 to 599")
        self.code = code
        self.reason = reason

    @property
    def status(self) -> Status:
        """What the API server answers its client with; it puts the name of the webhook in front of the message."""
        return Status(message=str(self), reason=self.reason, code=self.code)


class FieldCause(Struct, frozen=True):
    """What is wrong with one field. `path` has the names of JSON, `reason` is such as `FieldValueInvalid`.

    `spec.ports[0].targetPort`; the key of a map is in brackets, too: `metadata.annotations[example.com/owner]`.
    """

    path: str
    reason: str
    message: str
    without_value: str = ""
    """The message without the value that is wrong, where it has one."""

    @property
    def redacted(self) -> FieldCause:
        """The same without the value, which is not to be shown."""
        return FieldCause(self.path, self.reason, self.without_value or self.message)

    @classmethod
    def invalid(cls, path: str, value: object, detail: str) -> Self:
        """The value is malformed or out of bounds."""
        return cls._of_value(path, "FieldValueInvalid", "Invalid value", value, detail)

    @classmethod
    def required(cls, path: str, detail: str = "") -> Self:
        """The value is absent or empty."""
        return cls(path, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")

    @classmethod
    def forbidden(cls, path: str, detail: str) -> Self:
        """The field may not be set, or not be changed."""
        return cls(path, "FieldValueForbidden", f"Forbidden: {detail}")

    @classmethod
    def not_supported(cls, path: str, value: object, supported: Iterable[str]) -> Self:
        """The value is not one of those that there are."""
        detail = f"supported values: {', '.join(map(_shown, supported))}"
        return cls._of_value(path, "FieldValueNotSupported", "Unsupported value", value, detail)

    @classmethod
    def duplicate(cls, path: str, value: object) -> Self:
        """The value is there already, and has to be unique."""
        return cls._of_value(path, "FieldValueDuplicate", "Duplicate value", value)

    @classmethod
    def not_found(cls, path: str, value: object) -> Self:
        """The value names something that does not exist."""
        return cls._of_value(path, "FieldValueNotFound", "Not found", value)

    @classmethod
    def too_long(cls, path: str, max_bytes: int) -> Self:
        """The text is too long."""
        return cls(path, "FieldValueTooLong", f"Too long: may not be more than {_counted(max_bytes, 'byte')}")

    @classmethod
    def too_many(cls, path: str, count: int, max_items: int) -> Self:
        """The list has too many items."""
        detail = f"must have at most {_counted(max_items, 'item')}"
        return cls(path, "FieldValueTooMany", f"Too many: {count}: {detail}")

    @classmethod
    def _of_value(cls, path: str, reason: str, title: str, value: object, detail: str = "") -> Self:
        end = f": {detail}" if detail else ""
        return cls(path, reason, f"{title}: {_shown(value)}{end}", f"{title}{end}")

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class InvalidObject(Denied):
    """Fields of the object are wrong: 422, with one cause for each. Values of Secrets are not shown."""

    def __init__(self, group: str, kind: str, name: str, errors: Sequence[FieldCause]) -> None:
        if kind in SECRET_KINDS:
            # The client knows them, but the message also goes to audit logs, logs and events.
            errors = [each.redacted for each in errors]
        texts = list(dict.fromkeys(map(str, errors)))
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        qualified = f"{kind}.{group}" if group else kind
        super().__init__(f"{qualified} {_shown(name)} is invalid: {text}", code=422, reason="Invalid")
        causes = tuple(StatusCause(reason=each.reason, message=each.message, field=each.path) for each in errors)
        self._details = StatusDetails(name=name, group=group, kind=kind, causes=causes)

    @property
    def status(self) -> Status:
        """As for any denial, with the causes."""
        return Status(message=str(self), reason=self.reason, code=self.code, details=self._details)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _shown(value: object) -> str:
    return encode(value).decode()
