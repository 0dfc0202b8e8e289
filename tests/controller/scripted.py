"""Scripted reconcilers, and their controllers running: for tests in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import TypeVar

from kubewright.client.errors import Conflict, Status, StatusDetails
from kubewright.controller.controllers import Controller
from kubewright.controller.reconcile import Result

Key = TypeVar("Key", bound=Hashable)

LONG = 3600.0


async def cancelled_task() -> None:
    """Wait for a task that gets cancelled, as code does that shares its work between callers."""
    task = asyncio.create_task(asyncio.Event().wait())
    task.cancel()
    await task


def now() -> float:
    return round(asyncio.get_running_loop().time(), 6)


class Reconciler:
    """Calls a function, and records when."""

    def __init__(self, act: Callable[[str], Awaitable[Result | None]]) -> None:
        self.act = act
        self.begun: list[tuple[float, str]] = []

    async def reconcile(self, key: str) -> Result | None:
        self.begun.append((now(), key))
        return await self.act(key)

    @property
    def times(self) -> list[float]:
        return [when for when, _ in self.begun]

    @property
    def keys(self) -> list[str]:
        return [key for _, key in self.begun]


async def succeed(key: str) -> None:
    """A reconcile with nothing to do."""


def in_turn(*outcomes: Result | BaseException | None) -> Callable[[str], Awaitable[Result | None]]:
    """The first reconcile ends with the first outcome, and so on; further ones with success."""
    left = list(outcomes)

    async def act(key: str) -> Result | None:
        outcome = left.pop(0) if left else None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return act


def always(error: Exception) -> Callable[[str], Awaitable[Result | None]]:
    async def act(key: str) -> Result | None:
        raise error

    return act


@asynccontextmanager
async def running(controller: Controller[Key]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(controller.run_sources()), asyncio.create_task(controller.run_workers())]
    try:
        yield
        for task in tasks:
            assert not task.done(), task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def conflict() -> Conflict:
    message = (
        'Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; please apply your'
    )
    details = StatusDetails(name="a", group="example.com", kind="widgets")
    status = Status(code=409, reason="Conflict", message=f"{message} changes to the latest version", details=details)
    return Conflict(status, "update Widget default/a")


class Every:
    """A rate limiter whose delay is always the same, and which counts nothing."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def delay(self, key: Hashable) -> float:
        return self.seconds

    def forget(self, key: Hashable) -> None:
        pass

    def failures(self, key: Hashable) -> int:
        return 0
