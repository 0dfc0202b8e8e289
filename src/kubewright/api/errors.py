"""The root of kubewright's errors, the errors between JSON and Python types, and explanations of misuse."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import ClassVar, NoReturn, ParamSpec, TypeVar

from kubewright.api.kinds import ObjectKey

P = ParamSpec("P")
R = TypeVar("R")


class KubernetesError(Exception):
    """Base of every error that kubewright raises about Kubernetes and its objects."""

    temporary: ClassVar[bool] = False

    @property
    def is_temporary(self) -> bool:
        """True when the same request may succeed later, unchanged."""
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
    """The input is not JSON, or is incomplete."""


def explain_misuse(error: BaseException | None) -> None:
    """Add the fix to the message of an error that Python raised for a wrong call; see `kubewright.api.misuse`."""
    if isinstance(error, TypeError | AttributeError):
        from kubewright.api.misuse import explain

        with suppress(Exception):  # objects of the user's may not even tell their class
            explain(error)


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with the fix in the error for a call that does not fit. It costs a frame: not for hot paths."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        try:
            return function(*args, **options)
        except TypeError as error:
            explain_misuse(error)
            raise

    return call


def refusing(sentence: str) -> Callable[..., NoReturn]:
    """A method that raises a TypeError: for a protocol that a class could have, and has not."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError(sentence)

    return refuse
