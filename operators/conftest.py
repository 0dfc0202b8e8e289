"""Pods that seem to run: on both control planes by the same simulation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubewright import ControlPlane
from kubewright.api.core.v1 import Node
from kubewright.controlplane.controllers.nodes import SIMULATED, SimulatedNodes
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.scheduler import Scheduler


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
