"""Functions that a program gives: whether they can be called as they will be, checked when they are given.

A predicate or map function that fails at its first event loses that event, long after the mistake was made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable


def check_function(function: Callable[..., object], what: str, *parameters: str, may_be_async: bool = False) -> None:
    """Raise TypeError unless `function` can be called with these parameters, by position."""
    wanted = f"{what} is a function of ({', '.join(parameters)})"
    if not callable(function):
        raise TypeError(f"{wanted}, not {function!r}")
    if inspect.iscoroutinefunction(function) and not may_be_async:
        raise TypeError(f"{wanted} that answers at once; {_name(function)} is async")
    try:
        signature = inspect.signature(function)
    except ValueError:  # some built-in functions have none
        return
    try:
        signature.bind(*parameters)
    except TypeError as error:
        raise TypeError(f"{wanted}; {_name(function)}{signature} cannot be called so: {error}") from None


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
