from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from kubewright.api.core.v1 import Node, NodeCondition
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.wait import deleted, ready
from kubewright.controlplane.controllers.nodes import SIMULATED, SimulatedNodes
from kubewright.controlplane.controllers.runtime import BuiltInController

Start = Callable[[BuiltInController], None]


@pytest.fixture(autouse=True)
async def no_nodes_left(client: Client) -> AsyncIterator[None]:
    yield
    async for node in client.list(Node):
        await client.delete(node, missing_ok=True)


async def test_nodes_are_ready_roomy_and_open_for_pods(client: Client, start: Start) -> None:
    nodes = SimulatedNodes(client, count=2, capacity={"cpu": "4", "pods": "10"})
    start(nodes)
    await asyncio.wait_for(nodes.registered.wait(), 10)

    first, second = await client.list(Node)
    assert (first.metadata.name, second.metadata.name) == ("node-1", "node-2")
    assert first.metadata.labels[SIMULATED] == "true"
    assert first.metadata.labels["kubernetes.io/hostname"] == "node-1"
    assert first.spec.taints == []
    assert {name: str(amount) for name, amount in first.status.allocatable.items()} == {"cpu": "4", "pods": "10"}
    assert {condition.type: condition.status for condition in first.status.conditions} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    addresses = [address.address for node in (first, second) for address in node.status.addresses]
    assert addresses == ["198.18.0.1", "node-1", "198.18.0.2", "node-2"]
    assert [node.spec.pod_cidrs for node in (first, second)] == [["10.244.0.0/24"], ["10.244.1.0/24"]]


async def test_existing_nodes_are_left_as_they_are(client: Client, writes: list[str]) -> None:
    for expected in (True, False):
        nodes = SimulatedNodes(client, count=1)
        writes.clear()
        task = asyncio.create_task(nodes.run())
        await asyncio.wait_for(nodes.registered.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert ("PUT /api/v1/nodes/node-1/status" in writes) is expected


async def test_a_node_that_never_reported_becomes_ready(client: Client, start: Start) -> None:
    """kube-controller-manager sets Ready=Unknown on a node that is slow to report, and that is a status, too."""
    node = await client.create(Node(metadata=ObjectMeta(name="node-1")))
    node.status.conditions = [NodeCondition(type="Ready", status="Unknown", reason="NodeStatusNeverUpdated")]
    await client.status.update(node)

    start(SimulatedNodes(client, count=1))

    assert await client.wait_for(Node, "node-1", ready, timeout=10)


async def test_a_node_that_is_deleted_stays_away(client: Client, start: Start, writes: list[str]) -> None:
    nodes = SimulatedNodes(client, count=2)
    start(nodes)
    await asyncio.wait_for(nodes.registered.wait(), 10)
    await client.wait_for(Node, "node-1", ready)

    await client.delete(Node, "node-1")
    await client.wait_for(Node, "node-1", deleted)
    writes.clear()
    await client.wait_for(Node, "node-2", ready)

    assert not any("/nodes" in write for write in writes)


async def test_no_nodes_are_registered_at_once(client: Client, start: Start) -> None:
    nodes = SimulatedNodes(client, count=0)
    start(nodes)

    await asyncio.wait_for(nodes.registered.wait(), 10)
