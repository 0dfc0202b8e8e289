from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest

from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import Namespace, Secret
from kubewright.api.meta import ObjectMeta
from kubewright.cache import Cache
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.controller_tasks import ControllerTasks


class Recording:
    """Notes that it runs, and that it has ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.running = asyncio.Event()
        self.runs = 0

    async def run(self) -> None:
        self.runs += 1
        self.running.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        self.running.clear()


async def test_controllers_start_with_the_first_object_that_concerns_them() -> None:
    at_once, early, later, never = (Recording(name) for name in ("at once", "early", "later", "never"))
    async with ControlPlane.embedded(controllers=[], nodes=0) as plane, plane.client() as client:
        cache = Cache(client)
        running = asyncio.create_task(cache.run())
        tasks = ControllerTasks(cache)
        tasks.start("at once", lambda: at_once)
        tasks.start_with([Namespace], lambda entry: True, "early", lambda: early)
        tasks.start_with([Secret], lambda entry: True, "never", lambda: never)
        tasks.start_with([Namespace], lambda entry: entry.key.name == "another", "unconcerned", lambda: never)
        tasks.start_with([Secret, Lease], lambda entry: True, "later", lambda: later)
        await early.running.wait()
        before = later.runs
        for name in ("a", "b"):
            await client.create(Lease(metadata=ObjectMeta(name=name, namespace="default")))
        await later.running.wait()
        joining = Recording("joining")
        tasks.start_with([Namespace], lambda entry: True, "joining", lambda: joining)
        await joining.running.wait()
        await tasks.stop()
        running.cancel()
        await asyncio.wait((running,))

    assert before == 0
    assert [each.runs for each in (at_once, early, later, joining, never)] == [1, 1, 1, 1, 0]
    assert not any(each.running.is_set() for each in (at_once, early, later, joining))


async def test_a_controller_that_cannot_be_made_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise nothing happens to the objects that it is for, and nothing says why."""

    def make() -> Recording:
        raise ModuleNotFoundError("no module of that name")

    running = Recording("running")
    async with ControlPlane.embedded(controllers=[], nodes=0) as plane, plane.client() as client:
        tasks = ControllerTasks(Cache(client))
        with caplog.at_level(logging.ERROR):
            tasks.start("broken", make)
            tasks.start("running", lambda: running)
            await running.running.wait()
        await tasks.stop()

    assert [record.getMessage() for record in caplog.records] == [
        "the controller broken of the control plane has failed and does not run any more"
    ]
