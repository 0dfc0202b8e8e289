"""What tests of commands on clusters have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cli.ferryman import Ferryman

from kubewright import Client, ControlPlane
from kubewright.api.core.v1 import Node
from kubewright.api.resources import resource_info
from kubewright.cli.cluster.labelled import kinds_of
from kubewright.controlplane.controllers.nodes import SIMULATED, SimulatedNodes
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.scheduler import Scheduler
from kubewright.deployment import Operator


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, tmp_path: Path) -> str:
    """The admin's, as a file."""
    return str(control_plane.write_kubeconfig(tmp_path / "kubeconfig"))


@pytest.fixture
async def project(admin: Client, tmp_path: Path) -> AsyncIterator[Ferryman]:
    """A project with an operator of a unique name. What is left of it in the cluster is deleted after the test."""
    made = Ferryman.write(tmp_path / "project")
    yield made
    labels = Operator(name=made.name, image="x").labels
    for kind in kinds_of([]):
        if not resource_info(kind).namespaced:
            for found in await admin.list(kind, labels=labels):
                await admin.delete(found, missing_ok=True)


@pytest.fixture
async def nodes(request: pytest.FixtureRequest, admin: Client) -> AsyncIterator[None]:
    """While the test runs, pods seem to run; the embedded control plane does that by itself."""
    if request.node.callspec.params["control_plane"] == "embedded":
        yield
        return
    controllers = (SimulatedNodes(admin).run, Scheduler(admin).run, PodSimulator(admin).run)
    tasks = [asyncio.create_task(run()) for run in controllers]
    yield
    await admin.delete_all(Node, labels={SIMULATED: True})
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
