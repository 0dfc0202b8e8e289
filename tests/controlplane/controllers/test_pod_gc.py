from __future__ import annotations

import asyncio

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Node, Pod, Taint
from kubewright.client.wait import deleted, ready
from kubewright.controlplane import ControlPlane
from kubewright.testing import virtual


def pod(name: str, node: str) -> Pod:
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "web:1"}]}
    return from_json(Pod, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


@virtual
async def test_the_pods_of_a_node_that_is_gone_fail_and_go_after_40_seconds() -> None:
    async with ControlPlane.embedded(nodes=2) as plane, plane.client() as client:
        lost, kept = await client.create(pod("lost", "node-1")), await client.create(pod("kept", "node-2"))
        orphan = await client.create(pod("orphan", "elsewhere"))
        for each in (lost, kept):
            await client.wait_for(each, ready)
        seen: list[Pod] = []

        async with client.watch(Pod, namespace="default") as events:
            await client.delete(Node, "node-1")
            await asyncio.sleep(35)
            assert await client.find(Pod, lost.key) is not None
            for each in (lost, orphan):
                await client.wait_for(each, deleted, timeout=60)
            async for event in events:
                if event.type in ("MODIFIED", "DELETED"):
                    seen.append(event.object)
                if event.type == "DELETED" and event.header.name == "lost":
                    break

        last = [one for one in seen if one.metadata.name == "lost"][-1]
        assert last.status.phase == "Failed"
        assert [(one.reason, one.message) for one in last.status.conditions if one.type == "DisruptionTarget"] == [
            ("DeletionByPodGC", "PodGC: node no longer exists")
        ]
        assert await client.find(Pod, kept.key) is not None


@virtual
async def test_terminating_pods_of_a_node_out_of_service_are_deleted_by_force() -> None:
    async with ControlPlane.embedded(nodes=2) as plane, plane.client() as client:
        subject = await client.create(pod("web", "node-1"))
        await client.wait_for(subject, ready)
        plane.nodes.fail("node-1")
        await client.delete(subject)
        await asyncio.sleep(600)
        assert await client.find(Pod, subject.key) is not None

        node = await client.get(Node, "node-1")
        node.spec.taints = [*node.spec.taints, Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")]
        await client.patch(node)

        await client.wait_for(subject, deleted, timeout=60)
