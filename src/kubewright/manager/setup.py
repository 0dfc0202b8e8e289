"""Calling an operator's setup function: `def`, `async def`, or an async context manager.

    async def setup(manager: Manager) -> None:
        session = await manager.enter(aiohttp.ClientSession())
        controller_for(manager, Website).complete(WebsiteReconciler(manager.client, session))

    @asynccontextmanager
    async def setup(manager: Manager) -> AsyncIterator[None]:
        pool = await open_pool()
        controller_for(manager, Website).complete(WebsiteReconciler(manager.client, pool))
        yield None
        await pool.drain()

What was entered is left in reverse order, after all controllers have ended.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from kubewright.manager.manager import Manager, SetupError

SetupResult: TypeAlias = Awaitable[None] | AbstractAsyncContextManager[object] | None
"""What a setup function may return."""


def check_setup(setup: Callable[..., SetupResult], *, has_options: bool) -> None:
    """Raise a TypeError for what cannot be called as `setup(manager)`, or as `setup(manager, options)`."""
    expected = "setup(manager, options)" if has_options else "setup(manager)"
    given: object = setup
    if inspect.iscoroutine(given):
        given.close()  # or Python would complain that it was never awaited
    if isinstance(given, Manager):
        raise TypeError("run(manager): expected the setup function; with a manager of your own: await manager.run()")
    if inspect.iscoroutine(given) or given is None:
        raise TypeError(f"run() was given what setup returned, {given!r}: write run(setup, …), without calling it")
    if not callable(given) or inspect.isclass(given):
        raise TypeError(f"run({given!r}): expected a function that is called as {expected} and adds controllers")
    if inspect.isasyncgenfunction(given) or inspect.isgeneratorfunction(given):
        raise TypeError(
            f"{_called(given)} yields: decorate it with @contextlib.asynccontextmanager, and make it an async def"
        )
    try:
        signature = inspect.signature(given)
    except ValueError:  # of what is not written in Python
        return
    try:
        signature.bind(*([None] * (2 if has_options else 1)))
    except TypeError:
        hint = ""
        if not has_options and len(signature.parameters) == 2:
            hint = "; for options of your own give run(…, options=Options), with a Model named Options"
        elif has_options and len(signature.parameters) == 1:
            hint = "; its second argument is the options that run(…, options=…) has read"
        raise TypeError(f"{_called(given)}{signature} cannot be called as {expected}{hint}") from None


async def set_up(setup: Callable[..., SetupResult], manager: Manager, *options: object) -> None:
    """Call the setup function, and enter what it returns. Raises `SetupError` when there is nothing to run."""
    manager.is_setting_up = True
    result = setup(manager, *options)
    if isinstance(result, AbstractAsyncContextManager):
        await manager.enter(result)
    elif inspect.isawaitable(result):
        await result
    manager.is_setting_up = False
    if not manager.has_work:
        raise SetupError(
            f"there is nothing to run: {_called(setup)} has added no controller; "
            "add one with controller_for(manager, Kind).complete(reconciler)"
        )


def _called(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
