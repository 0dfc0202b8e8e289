"""Taints that follow from what a node is like, and pods that do not tolerate a taint, on both control planes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Node, NodeCondition, Pod, ServiceAccount, Taint
from kubewright.api.markers import JSONValue
from kubewright.api.time import now
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, exists
from kubewright.controlplane import ControlPlane
from kubewright.patterns.conditions import get_condition

PATIENCE = 60
TERMINATING = Field("metadata.deletionTimestamp").satisfies(lambda at: at is not None, "is set")


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with control_plane.client() as client:
        yield client


@pytest.fixture
async def node(admin: Client, namespace: str) -> AsyncIterator[Node]:
    """Ready, and too short a time without a heartbeat to be taken for lost."""
    created = await admin.create(from_json(Node, {"metadata": {"name": f"node-of-{namespace}"}}))
    await is_tainted(admin, created)
    yield await with_conditions(admin, created.metadata.name, Ready="True")
    await admin.delete(created, missing_ok=True)


async def with_conditions(admin: Client, name: str, **conditions: str) -> Node:
    node = await admin.get(Node, name)
    node.status.conditions = [
        NodeCondition(
            type=type_, status=status, reason="Test", message="", last_heartbeat_time=now(), last_transition_time=now()
        )
        for type_, status in conditions.items()
    ]
    return await admin.status.patch(node)


async def is_tainted(admin: Client, node: Node, *expected: str) -> None:
    """`expected` are keys and effects, such as `not-ready:NoSchedule`."""

    def taints(found: Node) -> bool:
        have = {f"{one.key.removeprefix('node.kubernetes.io/')}:{one.effect}" for one in found.spec.taints}
        return have == set(expected)

    await admin.wait_for(node, taints, timeout=PATIENCE)


async def test_conditions_and_cordons_become_taints(admin: Client, node: Node) -> None:
    name = node.metadata.name
    await is_tainted(admin, node)
    await with_conditions(admin, name, Ready="True", MemoryPressure="True", DiskPressure="True", PIDPressure="Unknown")
    await is_tainted(admin, node, "memory-pressure:NoSchedule", "disk-pressure:NoSchedule")

    await admin.patch(Node, name, MergePatch({"spec": {"unschedulable": True}}))
    await with_conditions(admin, name, Ready="True", NetworkUnavailable="True")
    await is_tainted(admin, node, "network-unavailable:NoSchedule", "unschedulable:NoSchedule")

    await admin.patch(Node, name, MergePatch({"spec": {"unschedulable": None}}))
    # When no node is ready, no pod is evicted.
    await with_conditions(admin, name, Ready="False")
    await is_tainted(admin, node, "not-ready:NoSchedule")
    await with_conditions(admin, name, Ready="True")
    await is_tainted(admin, node)


async def test_pods_that_do_not_tolerate_a_taint_are_deleted_in_time(admin: Client, client: Client, node: Node) -> None:
    await client.wait_for(ServiceAccount, "default", exists, timeout=PATIENCE)
    toleration: dict[str, JSONValue] = {"key": "broken", "operator": "Exists", "effect": "NoExecute"}

    async def pod(name: str, *tolerations: JSONValue) -> Pod:
        spec: JSONValue = {
            "nodeName": node.metadata.name,
            "containers": [{"name": "main", "image": "web:1"}],
            "tolerations": list(tolerations),
        }
        return await client.create(from_json(Pod, {"metadata": {"name": name}, "spec": spec}))

    intolerant = await pod("intolerant")
    patient = await pod("patient", toleration | {"tolerationSeconds": 1})
    tolerant = await pod("tolerant", toleration)

    tainted = await admin.get(Node, node.metadata.name)
    tainted.spec.taints = [*tainted.spec.taints, Taint(key="broken", effect="NoExecute")]
    await admin.patch(tainted)
    for subject in (intolerant, patient):
        going = await client.wait_for(subject, TERMINATING, timeout=PATIENCE)
        assert going is not None
        target = get_condition(going, "DisruptionTarget")
        assert target is not None
        assert (target.status, target.reason) == ("True", "DeletionByTaintManager")
    stays = await client.get(Pod, tolerant.key)
    assert (stays.metadata.deletion_timestamp, get_condition(stays, "DisruptionTarget")) == (None, None)

    await client.delete_all(Pod, grace_period=0)
