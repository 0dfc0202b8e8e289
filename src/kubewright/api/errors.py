"""The root of kubewright's errors, and what can go wrong between JSON and Python types."""

from __future__ import annotations

from typing import ClassVar

from kubewright.api.kinds import ObjectKey


class KubernetesError(Exception):
    """Base of every error that kubewright raises about Kubernetes and its objects."""

    temporary: ClassVar[bool] = False

    @property
    def is_temporary(self) -> bool:
        """True when the same request may succeed later without anybody changing it."""
        return self.temporary


class DecodeError(KubernetesError):
    """An object does not fit its Python type; the message names the object, the field and what was expected.

    `kind` and `key` identify the object, as far as they could be read.
    """

    def __init__(self, message: str, *, kind: str = "", key: ObjectKey | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.key = key


class MalformedJSON(DecodeError):
    """What should be decoded is not JSON at all, or not all of it."""
