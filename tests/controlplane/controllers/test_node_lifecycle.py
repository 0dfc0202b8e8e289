"""The health of nodes on an embedded control plane, in virtual time; what the real one decides is in conformance."""

from __future__ import annotations

import asyncio

import pytest

from kubewright.api.codec import from_json
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import Node, NodeCondition, Pod
from kubewright.api.meta import ObjectMeta
from kubewright.api.time import MicroTime, micro_now, now
from kubewright.client import Client
from kubewright.client.wait import condition, deleted, ready
from kubewright.controlplane import ControlPlane, ControlPlaneError
from kubewright.controlplane.controllers.pods import is_ready
from kubewright.patterns.conditions import get_condition
from kubewright.testing import virtual


def pod(name: str = "web", **metadata: str) -> Pod:
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "image": "web:1"}]}
    return from_json(Pod, {"metadata": {"name": name, "namespace": "default"} | metadata, "spec": spec})


def effects(node: Node | None) -> set[str]:
    return {f"{taint.key}:{taint.effect}" for taint in node.spec.taints} if node is not None else set()


@virtual
async def test_a_node_is_lost_after_50_seconds_and_its_pods_are_evicted_after_300_more() -> None:
    async with ControlPlane.embedded(nodes=2) as plane, plane.client() as client:
        subject = await client.create(pod())
        await client.wait_for(subject, ready)

        plane.nodes.fail("node-1")
        failed = now()
        lost = await client.wait_for(Node, "node-1", condition("Ready", "Unknown"), timeout=3600)
        assert lost is not None
        transition = get_condition(lost, "Ready")
        assert transition is not None
        assert transition.last_transition_time is not None
        assert 50 <= (transition.last_transition_time - failed).total_seconds() <= 51

        await client.wait_for(subject, lambda one: one.metadata.deletion_timestamp is not None, timeout=3600)
        assert 350 <= (now() - failed).total_seconds() <= 352
        await asyncio.sleep(3600)
        assert await client.find(Pod, subject.key) is not None, "no kubelet lets it go"
        await client.delete(Node, "node-1")
        await client.wait_for(subject, deleted, timeout=3600)


@virtual
async def test_a_node_that_is_back_in_time_has_only_been_silent() -> None:
    async with ControlPlane.embedded(nodes=2) as plane, plane.client() as client:
        subject = await client.create(pod())
        await client.wait_for(subject, ready)

        plane.nodes.fail("node-1")
        await client.delete(subject)
        await asyncio.sleep(40)
        assert await client.find(Pod, subject.key) is not None, "it is frozen"
        plane.nodes.recover("node-1")
        await client.wait_for(subject, deleted, timeout=60)
        await asyncio.sleep(600)

        node = await client.get(Node, "node-1")
        assert effects(node) == set()
        assert get_condition(node, "Ready") is not None


@virtual
async def test_no_pod_is_evicted_while_no_node_is_ready() -> None:
    """Then the network of the control plane is the more likely cause; so does kube-controller-manager."""
    async with ControlPlane.embedded(nodes=2) as plane, plane.client() as client:
        subject = await client.create(pod())
        await client.wait_for(subject, ready)

        plane.nodes.fail("node-1")
        plane.nodes.fail("node-2")
        await asyncio.sleep(3600)
        assert effects(await client.get(Node, "node-1")) == {"node.kubernetes.io/unreachable:NoSchedule"}
        assert (await client.get(Pod, subject.key)).metadata.deletion_timestamp is None
        assert not is_ready(await client.get(Pod, subject.key))

        plane.nodes.recover("node-2")
        await client.wait_for(subject, lambda one: one.metadata.deletion_timestamp is not None, timeout=3600)


@virtual
async def test_a_node_without_pods_can_fail_and_be_deleted_and_return() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        await client.wait_for(Node, "node-1", ready)
        plane.nodes.fail("node-1")
        await client.wait_for(Node, "node-1", condition("Ready", "Unknown"), timeout=3600)
        await client.delete(Node, "node-1")

        plane.nodes.recover("node-1")
        await client.wait_for(Node, "node-1", ready, timeout=60)


@virtual
async def test_a_node_of_another_kubelet_is_judged_by_its_heartbeats() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        node = await client.create(Node(metadata=ObjectMeta(name="machine")))
        node.status.conditions = [NodeCondition(type="Ready", status="True", last_heartbeat_time=now())]
        await client.status.update(node)
        await asyncio.sleep(45)
        lease = Lease(metadata=ObjectMeta(name="machine", namespace="kube-node-lease"))
        lease.spec.renew_time = MicroTime.from_datetime(micro_now())
        await client.create(lease)
        await asyncio.sleep(45)
        assert await _ready(client, "machine") == "True"

        await asyncio.sleep(10)
        assert await _ready(client, "machine") == "Unknown"


@virtual
async def test_a_node_that_never_reports_is_unknown_after_a_minute() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        await client.create(Node(metadata=ObjectMeta(name="machine")))

        lost = await client.wait_for(Node, "machine", condition("Ready", "Unknown"), timeout=3600)

        assert lost is not None
        assert {(one.reason, one.message) for one in lost.status.conditions} == {
            ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
        }


@virtual
async def test_only_simulated_nodes_can_be_made_to_fail() -> None:
    async with ControlPlane.embedded(nodes=2) as plane:
        with pytest.raises(ControlPlaneError) as refused:
            plane.nodes.fail("node-3")
        assert str(refused.value) == 'there is no simulated node "node-3" (there are: node-1, node-2)'


async def _ready(client: Client, name: str) -> str:
    found = get_condition(await client.get(Node, name), "Ready")
    return found.status if found is not None else ""
