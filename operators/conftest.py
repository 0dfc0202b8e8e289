"""What the tests of all operators use: the operator's own user, and pods that seem to run, by the same simulation on
both control planes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

import pytest

from kubewright import Client, ControlPlane, Manager
from kubewright.api.core.v1 import Node
from kubewright.controlplane.controllers.nodes import SIMULATED, SimulatedNodes
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.scheduler import Scheduler
from kubewright.manager.roles import declared_permissions
from kubewright.testing import restricted_client

AsOperator = Callable[[Callable[[Manager], None]], Awaitable[Client]]


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
async def as_operator(control_plane: ControlPlane, namespace: str) -> AsyncIterator[AsOperator]:
    """The client of a user who may do exactly what the role of an operator permits, in the namespace of the test."""
    async with AsyncExitStack() as clients:

        async def restricted(setup: Callable[[Manager], None]) -> Client:
            needed = await declared_permissions(setup, manager=partial(Manager, namespaces=[namespace]))
            return await clients.enter_async_context(restricted_client(control_plane, needed))

        yield restricted
