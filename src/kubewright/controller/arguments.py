"""Arguments that a program gives, checked when they are given: a mistake is an error that names the fix.

A predicate or map function that fails at its first event loses that event, long after the mistake was made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from kubewright.api.resources import Object, resource_info


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


def check_kind(kind: type[Object], where: str) -> None:
    """Raise TypeError unless `kind` is the class of a kind. `where` is what it was given to."""
    given: object = kind
    if isinstance(given, type) and issubclass(given, Object):
        resource_info(given)
        return
    match given:
        case Object():
            hint = f"give the class {type(given).__name__}, not an object of it"
        case str():
            hint = 'give its class, such as kubewright.api.core.v1.Pod, or Dynamic.of("v1", "Pod") for one without'
        case list() | tuple() | set():
            hint = "give the classes one by one, as in owns(Pod, Service)"
        case type():
            hint = f'derive {given.__name__} from Resource and decorate it with @resource("group/version")'
        case _:
            hint = "expected a class such as kubewright.api.core.v1.Pod"
    raise TypeError(f"{where}: {given!r} is not a kind: {hint}")


def check_number(value: object, what: str) -> None:
    """Raise TypeError unless `value` is a number, such as seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{what}={value!r}: expected a number")


def is_async(function: Callable[..., object]) -> bool:
    """Whether calling it returns a coroutine, also for an object with `async def __call__`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def name_of(function: object) -> str:
    """What a function or coroutine is called, for error messages."""
    return getattr(function, "__qualname__", None) or repr(function)
