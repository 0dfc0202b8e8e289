"""Scheduler, nodes and pod simulator beside each control plane: pods seem to run, and everything built on that works.

On the real one they are ordinary clients, and kube-controller-manager does the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Node, Pod, ServiceAccount
from kubewright.api.markers import JSONValue
from kubewright.client import Client
from kubewright.client.wait import Field, condition, deleted, exists
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.nodes import SIMULATED, SimulatedNodes
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.runtime import BuiltInController
from kubewright.controlplane.controllers.scheduler import Scheduler


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """With one simulated node for the time of the test."""
    async with control_plane.client() as client:
        controllers: list[BuiltInController] = [SimulatedNodes(client), Scheduler(client), PodSimulator(client)]
        tasks = [asyncio.create_task(controller.run()) for controller in controllers]
        yield client
        await client.delete_all(Node, labels={SIMULATED: True})
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def pod(name: str, restart_policy: str = "Always", **simulated: str) -> Pod:
    annotations: JSONValue = {
        f"simulate.kubewright.dev/{name.replace('_', '-')}": value for name, value in simulated.items()
    }
    return from_json(
        Pod,
        {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"restartPolicy": restart_policy, "containers": [{"name": "main", "image": "busybox"}]},
        },
    )


async def test_a_node_is_ready_and_so_is_a_pod_on_it(client: Client, admin: Client) -> None:
    created = await client.create(pod("a"))
    ready = await client.wait_for(created, condition("Ready"), timeout=30)
    node = await admin.wait_for(Node, "node-1", condition("Ready"), timeout=30)

    assert ready is not None
    assert node is not None
    assert (ready.spec.node_name, ready.status.phase) == ("node-1", "Running")
    assert ready.status.pod_ip
    assert [status.ready for status in ready.status.container_statuses] == [True]
    await client.delete(ready)
    assert await client.wait_for(ready, deleted, timeout=30) is None


@pytest.mark.parametrize(("exit_code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
async def test_a_pod_ends_as_its_annotations_say(client: Client, exit_code: str, phase: str) -> None:
    created = await client.create(pod("a", "Never", run="0", exit_code=exit_code))
    ended = await client.wait_for(created, Field("status.phase").equals(phase), timeout=30)

    assert ended is not None
    terminated = ended.status.container_statuses[0].state.terminated
    assert terminated is not None
    assert terminated.exit_code == int(exit_code)


async def test_a_pod_that_crashes_is_started_again(client: Client) -> None:
    created = await client.create(pod("a", run="0", exit_code="1"))
    waiting = Field("status.containerStatuses[0].state.waiting.reason").equals("CrashLoopBackOff")
    crashed = await client.wait_for(created, waiting, timeout=30)

    assert crashed is not None
    assert crashed.status.phase == "Running"


async def test_a_pod_whose_image_cannot_be_had_never_starts(client: Client) -> None:
    created = await client.create(pod("a", failed_pulls="always"))
    waiting = Field("status.containerStatuses[0].state.waiting.reason").equals("ImagePullBackOff")
    stuck = await client.wait_for(created, waiting, timeout=30)

    assert stuck is not None
    assert stuck.status.phase == "Pending"


async def test_a_deployment_becomes_available_and_rolls_out_again(client: Client, namespace: str) -> None:
    await client.wait_for(ServiceAccount, "default", exists, timeout=30)
    labels: JSONValue = {"app": "web"}
    template: JSONValue = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]},
    }
    created = await client.create(
        from_json(
            Deployment,
            {
                "metadata": {"name": "web"},
                "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
            },
        )
    )
    await client.wait_for(created, Field("status.availableReplicas").equals(2), timeout=30)
    await client.wait_for(created, condition("Available"), timeout=30)
    latest = await client.get(Deployment, "web")
    latest.spec.template.spec.containers[0].image = "web:2"
    await client.update(latest)
    await client.wait_for(created, Field("status.observedGeneration").equals(2), timeout=30)
    await client.wait_for(created, Field("status.updatedReplicas").equals(2), timeout=30)
    await client.wait_for(created, Field("status.replicas").equals(2), timeout=30)
    await client.wait_for(created, Field("status.availableReplicas").equals(2), timeout=30)

    assert {pod.spec.containers[0].image for pod in await client.list(Pod) if not pod.metadata.deletion_timestamp} == {
        "web:2"
    }
