"""Arguments that a program gives, checked when they are given: a mistake is an error that names the fix.

A predicate or map function that fails at its first event loses that event, long after the mistake was made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta


def check_function(function: Callable[..., object], what: str, *parameters: str, may_be_async: bool = False) -> None:
    """Raise TypeError unless `function` can be called with these parameters, by position."""
    expected = f"{what} is a function of ({', '.join(parameters)})"
    if not callable(function):
        raise TypeError(f"{expected}, not {function!r}")
    if is_async(function) and not may_be_async:
        raise TypeError(f"{expected} that returns at once; {name_of(function)} is async")
    try:
        signature = inspect.signature(function)
    except ValueError:  # some built-in functions have none
        return
    try:
        signature.bind(*parameters)
    except TypeError as error:
        raise TypeError(f"{expected}; {name_of(function)}{signature} cannot be called so: {error}") from None


def check_number(value: object, what: str) -> None:
    """Raise TypeError unless `value` is a number, such as seconds."""
    if isinstance(value, timedelta):
        raise TypeError(f"{what}={value!r}: expected a number of seconds, {value.total_seconds():g}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{what}={value!r}: expected a number")


def check_seconds(value: float, what: str) -> None:
    """Raise TypeError or ValueError unless `value` is a number of seconds above 0."""
    check_number(value, what)
    if not value > 0:
        raise ValueError(f"{what}={value:g}: expected a number of seconds above 0")


def is_async(function: Callable[..., object]) -> bool:
    """Whether calling it returns a coroutine, also for an object with `async def __call__`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def name_of(function: object) -> str:
    """What a function or coroutine is called, for error messages."""
    return getattr(function, "__qualname__", None) or repr(function)
