"""What a manager runs besides controllers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Protocol, TypeAlias, cast


class Runnable(Protocol):
    """Anything with `async def run`. It runs until it ends or is cancelled.

    Unless it has `needs_leader = False`, it runs only in the leader.
    """

    def run(self) -> Coroutine[object, object, None]:
        """Run until done or cancelled."""


Function: TypeAlias = Callable[[], Coroutine[object, object, None]]


def run_of(runnable: object) -> Function:
    """The function to call, of an object with `run` or an async function."""
    if inspect.iscoroutine(runnable):
        runnable.close()  # or Python would complain that it was never awaited
        raise TypeError(
            f"manager.add({runnable.__name__}()): give the function itself, manager.add({runnable.__name__}); "
            "the manager calls it when it starts"
        )
    if inspect.isclass(runnable):
        raise TypeError(f"manager.add({runnable.__name__}): give an instance, {runnable.__name__}(…)")
    run: object = getattr(runnable, "run", runnable)
    if callable(run):
        return cast(Function, run)
    if hasattr(runnable, "reconcile"):
        raise TypeError(
            f"manager.add({runnable!r}): a reconciler needs a controller around it: "
            "controller_for(manager, Kind).complete(reconciler)"
        )
    if hasattr(runnable, "complete"):
        raise TypeError("manager.add(controller_for(…)): end it with .complete(reconciler), which also adds it")
    raise TypeError(f"cannot run {runnable!r}: expected a controller, an object with run, or an async function")
