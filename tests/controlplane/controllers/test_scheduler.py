from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from kubewright.api.core.v1 import (
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSchedulingGate,
    PodSpec,
    ResourceRequirements,
    ServiceAccount,
)
from kubewright.api.meta import ObjectMeta
from kubewright.api.quantity import Quantity
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, condition, exists
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.runtime import BuiltInController
from kubewright.controlplane.controllers.scheduler import Scheduler
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane

Start = Callable[[BuiltInController], None]
IS_PLACED = condition("PodScheduled")
IS_REFUSED = condition("PodScheduled", "False")


@pytest.fixture
async def nodes(client: Client) -> AsyncIterator[list[str]]:
    """Two nodes with room for four pods and one core each."""
    names = ["a", "b"]
    for name in names:
        room = {"cpu": Quantity(1), "pods": Quantity(4)}
        node = await client.create(Node(metadata=ObjectMeta(name=name, labels={"zone": name}), spec=NodeSpec()))
        node.status = NodeStatus(allocatable=room, capacity=room)
        await client.status.update(node)
        await client.patch(Node, name, MergePatch({"spec": {"taints": None}}))
    yield names
    for name in names:
        await client.delete(Node, name, missing_ok=True)


def pod(namespace: str, name: str = "", cpu: str = "0") -> Pod:
    needs = ResourceRequirements(requests={"cpu": Quantity(cpu)})
    return Pod(
        metadata=ObjectMeta(name=name, generate_name="" if name else "pod-", namespace=namespace),
        spec=PodSpec(containers=[Container(name="main", image="web:1", resources=needs)]),
    )


async def test_pods_are_spread_over_the_nodes(
    client: Client, pod_namespace: str, nodes: list[str], start: Start
) -> None:
    start(Scheduler(client))

    pods = [await client.create(pod(pod_namespace)) for _ in range(6)]

    placed = [await client.wait_for(one, IS_PLACED) for one in pods]
    assert Counter(one.spec.node_name for one in placed if one is not None) == {"a": 3, "b": 3}


async def test_a_pod_is_bound_to_a_node_that_its_selector_matches(
    client: Client, pod_namespace: str, nodes: list[str], start: Start
) -> None:
    start(Scheduler(client))
    picky = pod(pod_namespace)
    picky.spec.node_selector = {"zone": "b"}

    placed = await client.wait_for(await client.create(picky), IS_PLACED)

    assert placed is not None
    assert placed.spec.node_name == "b"


async def test_a_pod_that_fits_nowhere_gets_the_reason_and_placed_when_there_is_room(
    client: Client, pod_namespace: str, nodes: list[str], start: Start
) -> None:
    start(Scheduler(client))
    await client.patch(Node, "b", MergePatch({"spec": {"unschedulable": True}}))
    big = await client.create(pod(pod_namespace, cpu="800m"))
    await client.wait_for(big, IS_PLACED)

    small = await client.create(pod(pod_namespace, cpu="300m"))
    refused = await client.wait_for(small, IS_REFUSED)

    assert refused is not None
    scheduled = next(one for one in refused.status.conditions if one.type == "PodScheduled")
    assert scheduled.reason == "Unschedulable"
    assert scheduled.message == "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."

    await client.delete(big, grace_period=0)
    placed = await client.wait_for(small, IS_PLACED)
    assert placed is not None
    assert placed.spec.node_name == "a"


async def test_uncordoning_a_node_lets_the_waiting_pods_in(
    client: Client, pod_namespace: str, nodes: list[str], start: Start
) -> None:
    for name in nodes:
        await client.patch(Node, name, MergePatch({"spec": {"unschedulable": True}}))
    start(Scheduler(client))
    waiting = await client.create(pod(pod_namespace))
    await client.wait_for(waiting, IS_REFUSED)

    await client.patch(Node, "b", MergePatch({"spec": {"unschedulable": None, "taints": None}}))

    placed = await client.wait_for(waiting, IS_PLACED)
    assert placed is not None
    assert placed.spec.node_name == "b"


async def test_pods_of_other_schedulers_and_gated_ones_are_left_alone(
    client: Client, pod_namespace: str, nodes: list[str], start: Start, writes: list[str]
) -> None:
    foreign, gated = pod(pod_namespace, "foreign"), pod(pod_namespace, "gated")
    foreign.spec.scheduler_name = "other"
    gated.spec.scheduling_gates = [PodSchedulingGate(name="example.com/hold")]
    await client.create(foreign)
    gated = await client.create(gated)
    writes.clear()
    start(Scheduler(client))

    await client.wait_for(await client.create(pod(pod_namespace, "ours")), IS_PLACED)

    path = f"/api/v1/namespaces/{pod_namespace}/pods"
    assert writes == [f"POST {path}", f"POST {path}/ours/binding"]
    await client.patch(gated, MergePatch({"spec": {"schedulingGates": []}}))
    await client.wait_for(gated, IS_PLACED)
    assert not (await client.get(Pod, foreign.key)).spec.node_name


async def test_a_pod_that_names_its_node_is_not_bound_again(
    client: Client, pod_namespace: str, nodes: list[str], start: Start, writes: list[str]
) -> None:
    bound = pod(pod_namespace, "bound")
    bound.spec.node_name = "a"
    await client.create(bound)
    start(Scheduler(client))

    other = await client.wait_for(await client.create(pod(pod_namespace)), Field("spec.nodeName").equals("b"))

    assert other is not None
    assert not any("bound" in write for write in writes)


async def test_a_pod_that_could_not_be_bound_takes_up_no_room_and_is_tried_again() -> None:
    async with ControlPlane.embedded(nodes=1) as plane, plane.client() as client:
        assert isinstance(plane, EmbeddedControlPlane)
        await client.wait_for(Node, "node-1", condition("Ready"))
        await client.wait_for(ServiceAccount, "default", exists, namespace="default")
        plane.faults.fail(lambda target: target.subresource == "binding", code=500, times=3)
        # More than half of the node: were an attempt that failed counted, there would be no room left.
        big = await client.create(pod("default", cpu="20"))
        placed = await client.wait_for(big, IS_PLACED)

    assert placed is not None
    assert placed.spec.node_name == "node-1"
