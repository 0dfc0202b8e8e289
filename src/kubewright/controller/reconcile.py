"""The reconciler: it gets a key, and makes the observed state match the desired state.

    class WidgetReconciler:
        async def reconcile(self, request: Request) -> Result: ...

An async function of the request is one, too. It gets the key of the object and not the event: whatever
happened, and however often, the result is the same. A plain `def` runs in a thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol, TypeAlias, TypeVar, cast

import msgspec

from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.controller.arguments import check_function, name_of

Key = TypeVar("Key")
Key_contra = TypeVar("Key_contra", contravariant=True)


Request: TypeAlias = ObjectKey
"""Which object to reconcile: its namespace, empty for cluster-scoped kinds, and its name."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """How a reconcile ended. `Result()`: done, until something changes.

    `requeue` reconciles again with the back-off of failures, `requeue_after` (seconds, or a timedelta) after that time;
    0 or less means no requeue, as in controller-runtime. `priority` is that of the next reconcile; by default it stays
    the same.
    """

    requeue: bool = False
    requeue_after: float | timedelta | None = None
    priority: int | None = None

    @property
    def delay(self) -> float:
        """Seconds until the next reconcile; 0 or less when `requeue_after` asks for none."""
        after = self.requeue_after
        if after is None:
            return 0.0
        return after.total_seconds() if isinstance(after, timedelta) else float(after)


_DONE = Result()


def checked_result(returned: object) -> Result:
    """What a reconciler returned, None being `Result()`. Raises `TypeError` saying what it should have returned."""
    if returned is None:
        return _DONE
    if not isinstance(returned, Result):
        raise TypeError(_mistaken(returned))
    requeue: object = returned.requeue
    after: object = returned.requeue_after
    priority: object = returned.priority
    if requeue is not False and requeue is not True:
        raise TypeError(
            f"reconcile returned requeue={requeue!r}: expected True or False; a time is given as requeue_after="
        )
    if after is not None and not isinstance(after, int | float | timedelta):
        raise TypeError(f"reconcile returned requeue_after={after!r}: expected seconds or a timedelta")
    if priority is not None and not isinstance(priority, int):
        raise TypeError(f"reconcile returned priority={priority!r}: expected an integer")
    return returned


def _mistaken(returned: object) -> str:
    """The message for a value that is no Result, with what was probably meant."""
    match returned:
        case type() if issubclass(returned, Result):
            return "reconcile returned the class Result: write Result(), with parentheses"
        case bool():
            return f"reconcile returned {returned}: expected a Result or None; to requeue, return Result(requeue=True)"
        case int() | float() | timedelta():
            return (
                f"reconcile returned {returned!r}: expected a Result or None; to requeue after that time, return "
                f"Result(requeue_after={returned!r})"
            )
        case Exception():
            return f"reconcile returned {returned!r}: an error is raised, not returned"
        case Object():
            return f"reconcile returned the {returned.kind} {returned.key}: expected a Result or None"
        case _ if inspect.isawaitable(returned):
            if inspect.iscoroutine(returned):
                returned.close()  # or Python warns that it was never awaited, which the error says already
            return f"reconcile returned {name_of(returned)}(…), which was not awaited: write await before the call"
    return f"reconcile returned {returned!r}: expected a Result or None"


class TerminalError(Exception):
    """Retrying is pointless: the error is logged and counted, and the object waits for its next change."""


class Reconciler(Protocol[Key_contra]):
    """Makes the observed state match the desired state, for one key at a time."""

    def reconcile(self, request: Key_contra, /) -> Awaitable[Result | None] | Result | None:
        """Reconcile one object. Raising an exception means: retry with back-off."""


ReconcileFunction: TypeAlias = Callable[[Key], Awaitable[Result | None] | Result | None]
"""A function that is used as a `Reconciler`."""


def reconcile_function(reconciler: Reconciler[Key] | ReconcileFunction[Key]) -> ReconcileFunction[Key]:
    """The function to call for each key. Raises `TypeError` for what is no reconciler, saying how to get one."""
    given: object = reconciler
    if isinstance(given, type):
        raise TypeError(f"{given.__name__} is a class: give an instance of it, {given.__name__}(…), as the reconciler")
    if inspect.iscoroutine(given):
        given.close()
        raise TypeError(f"{name_of(given)}(…) is a call: give the function {name_of(given)} itself as the reconciler")
    function: object = getattr(given, "reconcile", given)
    if not callable(function):
        raise TypeError(
            f"{given!r} is not a reconciler: expected an object with `async def reconcile(self, request)`, or an async "
            "function of the request"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{name_of(function)} is a generator, and would do nothing: a reconciler has no yield in it")
    check_function(function, "a reconciler", "request", may_be_async=True)
    return cast("ReconcileFunction[Key]", function)


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """Which failure in a row this is, and whether it is not retried."""

    number: int
    is_last: bool


class ErrorHook(Protocol[Key_contra]):
    """Called for every failed reconcile, to write it into the object's status for instance. May be async."""

    def __call__(self, request: Key_contra, error: Exception, attempt: Attempt, /) -> Awaitable[None] | None:
        """A reconcile failed."""
