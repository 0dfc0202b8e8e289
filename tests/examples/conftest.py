"""The examples' kinds installed, and pods that seem to run: on both control planes by the same simulation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest

from kubewright import AlreadyExists, Client, ControlPlane, Manager
from kubewright.api.core.v1 import Node
from kubewright.api.resource import Object
from kubewright.client.wait import established
from kubewright.controlplane.controllers.nodes import SIMULATED, SimulatedNodes
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.scheduler import Scheduler
from kubewright.manifest.crd import definition_of


@pytest.fixture
async def embedded_control_plane() -> AsyncIterator[ControlPlane]:
    """Without nodes, as the real one is: pods run nowhere unless a test asks for `nodes`."""
    async with ControlPlane.embedded(nodes=0) as plane:
        yield plane


@pytest.fixture
async def nodes(control_plane: ControlPlane) -> AsyncIterator[None]:
    """While the test runs, pods are scheduled and become ready."""
    async with control_plane.client() as client:
        controllers = (SimulatedNodes(client).run, Scheduler(client).run, PodSimulator(client).run)
        tasks = [asyncio.create_task(run()) for run in controllers]
        yield
        await client.delete_all(Node, labels={SIMULATED: True})
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.fixture
def install(admin: Client) -> Callable[[type[Object]], Awaitable[None]]:
    """Install the definition of a kind. It stays: the real control plane serves a whole test run."""

    async def installed(kind: type[Object]) -> None:
        definition = definition_of(kind)
        with suppress(AlreadyExists):
            await admin.create(definition)
        await admin.wait_for(type(definition), established, name=definition.metadata.name, timeout=30)

    return installed


@pytest.fixture
def running() -> Callable[[Manager], AbstractAsyncContextManager[None]]:
    """`async with running(manager)`: it runs inside, and has ended without a failure after it."""

    @asynccontextmanager
    async def run(manager: Manager) -> AsyncIterator[None]:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(manager.run())
            try:
                yield
            finally:
                manager.stop()

    return run
