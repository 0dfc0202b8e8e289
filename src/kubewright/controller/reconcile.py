"""What a reconciler is: it gets a key, and makes what is into what is wanted.

    class Reconciler:
        async def reconcile(self, request: Request) -> Result: ...

It is told which object, never what happened: whatever happened, and however often, the end is the same. A plain
`def reconcile` runs in a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from kubewright.api.kinds import ObjectKey

Key_contra = TypeVar("Key_contra", contravariant=True)


Request: TypeAlias = ObjectKey
"""Which object to reconcile: its namespace, empty for cluster-scoped kinds, and its name."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """How a pass ended. `Result()`: done, until something changes.

    `requeue` comes again with the back-off of failures, `requeue_after` (seconds, or a timedelta) after that time; 0 or
    less asks for nothing, as in controller-runtime. `priority` is that of the next pass; by default it is that of this
    one.
    """

    requeue: bool = False
    requeue_after: float | timedelta | None = None
    priority: int | None = None

    @property
    def delay(self) -> float:
        """Seconds until the next pass; 0 or less when none is asked for."""
        after = self.requeue_after
        if after is None:
            return 0.0
        return after.total_seconds() if isinstance(after, timedelta) else float(after)


_DONE = Result()


def checked(returned: object) -> Result:
    """What a reconciler returned, None being `Result()`. Raises `TypeError` saying what it should have returned."""
    if returned is None:
        return _DONE
    if not isinstance(returned, Result):
        raise TypeError(f"reconcile returned {returned!r}: expected a Result or None")
    after: object = returned.requeue_after
    priority: object = returned.priority
    if not isinstance(after, int | float | timedelta | None):
        raise TypeError(f"reconcile returned requeue_after={after!r}: expected seconds or a timedelta")
    if not isinstance(priority, int | None):
        raise TypeError(f"reconcile returned priority={priority!r}: expected an integer")
    return returned


class TerminalError(Exception):
    """Trying again is pointless: the error is logged and counted, and the object waits for its next change."""


class Reconciler(Protocol[Key_contra]):
    """Makes what is into what is wanted, for one key at a time."""

    def reconcile(self, request: Key_contra, /) -> Awaitable[Result | None] | Result | None:
        """One pass. Raising an exception means: try again later."""


class Attempt(NamedTuple):
    """Which failure in a row this is, and whether it was the last try."""

    number: int
    is_last: bool


class ErrorHook(Protocol[Key_contra]):
    """Told of every failed pass, to write it into the object's status for instance. May be async."""

    def __call__(self, request: Key_contra, error: Exception, attempt: Attempt, /) -> Awaitable[None] | None:
        """A pass failed."""
