"""A node whose kubelet falls silent, with the same simulated kubelet beside kube-controller-manager and beside ours.

Beside the real one a second kube-controller-manager loses patience sooner than after 50 s; ours has virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kubewright.api.codec import from_json
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import Event, Node, Pod
from kubewright.api.markers import JSONObject
from kubewright.client import Client
from kubewright.client.wait import Field, condition, deleted, ready
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.controllers.node_script import NodeScript
from kubewright.controlplane.controllers.nodes import SIMULATED, SimulatedNodes
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.pods import is_ready
from kubewright.controlplane.real.processes import ProcessGroup
from kubewright.patterns.conditions import get_condition
from kubewright.testing import virtual
from kubewright.testing.fixtures import new_namespace

PATIENCE = 120
TERMINATING = Field("metadata.deletionTimestamp").satisfies(lambda at: at is not None, "is set")
UNREACHABLE = {("node.kubernetes.io/unreachable", "NoSchedule"), ("node.kubernetes.io/unreachable", "NoExecute")}


def pod(namespace: str, name: str, **toleration: int) -> Pod:
    tolerated: JSONObject = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    return from_json(
        Pod,
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "nodeName": "node-1",
                "containers": [{"name": "main", "image": "web:1"}],
                "tolerations": [tolerated | toleration],
            },
        },
    )


async def node_fails_and_recovers(client: Client, namespace: str, script: NodeScript) -> None:
    """On a server with two simulated nodes."""
    evicted = await client.create(pod(namespace, "evicted", tolerationSeconds=2))
    staying = await client.create(pod(namespace, "staying"))
    for each in (evicted, staying):
        await client.wait_for(each, ready, timeout=PATIENCE)
    lease = await client.get(Lease, "node-1", namespace="kube-node-lease")
    node = await client.get(Node, "node-1")
    assert [(one.kind, one.uid) for one in lease.metadata.owner_references] == [("Node", node.metadata.uid)]
    assert (lease.spec.holder_identity, lease.spec.lease_duration_seconds) == ("node-1", 40)

    script.fail("node-1")
    await client.wait_for(Node, "node-1", condition("Ready", "Unknown"), timeout=PATIENCE)
    lost = await client.wait_for(Node, "node-1", lambda node: _taints(node) == UNREACHABLE, timeout=PATIENCE)
    assert lost is not None
    assert {(one.type, one.status, one.reason, one.message) for one in lost.status.conditions} == {
        (type_, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        for type_ in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    }
    assert all(one.time_added is not None for one in lost.spec.taints)
    unready = await client.wait_for(staying, ~ready, timeout=PATIENCE)
    assert unready is not None
    assert (unready.status.phase, unready.status.container_statuses[0].ready) == ("Running", True)

    going = await client.wait_for(evicted, TERMINATING, timeout=PATIENCE)
    assert going is not None
    target = get_condition(going, "DisruptionTarget")
    assert target is not None
    assert (target.status, target.reason) == ("True", "DeletionByTaintManager")
    assert target.message == "Taint manager: deleting due to NoExecute taint"
    not_ready = ("Normal", "NodeNotReady", "Node node-1 status is now: NodeNotReady")
    pod_not_ready = ("Warning", "NodeNotReady", "Node is not ready")
    eviction = ("Normal", "TaintManagerEviction", f"Marking for deletion Pod {namespace}/evicted")
    await _reported(client, "Node", "node-1", "default", not_ready)
    await _reported(client, "Pod", "staying", namespace, pod_not_ready)
    await _reported(client, "Pod", "evicted", namespace, pod_not_ready, eviction)
    assert await client.find(Pod, evicted.key) is not None, "only its kubelet knows when its containers have ended"

    script.recover("node-1")
    await client.wait_for(Node, "node-1", ready, timeout=PATIENCE)
    await client.wait_for(Node, "node-1", lambda node: not node.spec.taints, timeout=PATIENCE)
    await client.wait_for(evicted, deleted, timeout=PATIENCE)
    back = await client.wait_for(staying, ready, timeout=PATIENCE)
    assert back is not None
    assert is_ready(back)


@virtual
async def test_a_node_that_fails_loses_its_pods_and_recovers_beside_our_controllers() -> None:
    async with ControlPlane.embedded(nodes=2) as plane, plane.client() as client:
        await node_fails_and_recovers(client, "default", plane.nodes)


async def test_a_node_that_fails_loses_its_pods_and_recovers_beside_the_real_controllers(
    real_control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with real_control_plane.client() as client, _impatient(real_control_plane, tmp_path):
        script = NodeScript()
        nodes = SimulatedNodes(client, count=2, script=script)
        tasks = [asyncio.create_task(one.run()) for one in (nodes, PodSimulator(client, nodes=script))]
        try:
            await asyncio.wait_for(nodes.registered.wait(), PATIENCE)
            await node_fails_and_recovers(client, await new_namespace(client, "node-failure"), script)
        finally:
            await client.delete_all(Node, labels={SIMULATED: True})
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


@asynccontextmanager
async def _impatient(plane: ControlPlane, folder: Path) -> AsyncIterator[None]:
    """A further kube-controller-manager, which takes a node without heartbeats for lost after 15 seconds."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(plane.kubeconfig())
    program = find_binaries(controller_manager=True).kube_controller_manager
    group = await asyncio.to_thread(ProcessGroup)
    try:
        group.start(
            "kube-controller-manager",
            [
                str(program),
                f"--kubeconfig={kubeconfig}",
                "--secure-port=0",
                "--leader-elect=false",
                "--controllers=node-lifecycle-controller",
                "--node-monitor-period=1s",
                "--node-monitor-grace-period=15s",
            ],
        )
        yield
    finally:
        await asyncio.to_thread(group.close)


def _taints(node: Node) -> set[tuple[str, str]]:
    return {(taint.key, taint.effect) for taint in node.spec.taints}


async def _reported(client: Client, kind: str, name: str, namespace: str, *expected: tuple[str, str, str]) -> None:
    """Return when there are events about an object with such types, reasons and messages."""
    fields = {"involvedObject.kind": kind, "involvedObject.name": name}
    async with asyncio.timeout(PATIENCE):
        while True:
            events = await client.list(Event, namespace=namespace, fields=fields)
            if {(one.type, one.reason, one.message) for one in events} >= set(expected):
                return
            await asyncio.sleep(0.05)
