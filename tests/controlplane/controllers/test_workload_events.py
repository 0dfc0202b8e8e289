"""The events of a workload on an embedded control plane with nodes, as kubectl shows them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from kubewright.api.apps.v1 import Deployment, DeploymentSpec
from kubewright.api.core.v1 import Container, Event, Pod, PodSpec, PodTemplateSpec
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.client import Client
from kubewright.client.wait import available, condition
from kubewright.controlplane import ControlPlane

LABELS = {"app": "web"}


def template(**selector: str) -> PodTemplateSpec:
    spec = PodSpec(containers=[Container(name="main", image="web:1")], node_selector=selector)
    return PodTemplateSpec(metadata=ObjectMeta(labels=LABELS), spec=spec)


async def _events(client: Client, kind: str, holds: Callable[[list[Event]], bool]) -> list[Event]:
    async with asyncio.timeout(60):
        while True:
            fields = {"involvedObject.kind": kind}
            found = await client.list(Event, namespace="default", fields=fields)
            if holds(found):
                return found
            await asyncio.sleep(0)


def _reasons(*desired: str) -> Callable[[list[Event]], bool]:
    return lambda events: {event.reason for event in events} >= set(desired)


async def test_the_life_of_a_deployment_is_reported_in_events(embedded_control_plane: ControlPlane) -> None:
    async with embedded_control_plane.client() as client:
        web = await client.create(
            Deployment(
                metadata=ObjectMeta(name="web", namespace="default"),
                spec=DeploymentSpec(replicas=1, selector=LabelSelector(match_labels=LABELS), template=template()),
            )
        )
        await client.wait_for(web, available, timeout=60)
        await _events(client, "Pod", _reasons("Scheduled", "Started"))
        (pod,) = await client.list(Pod, namespace="default", labels=LABELS)
        described = (await embedded_control_plane.kubectl("describe", "pod", pod.metadata.name)).stdout

        name = f"default/{pod.metadata.name}"
        emitted = [
            re.split(r"  +", line.strip(), maxsplit=4) for line in described.partition("  ----")[2].splitlines()[1:]
        ]
        pulled = 'Successfully pulled image "web:1" in 0s (0s including waiting). Image size: 0 bytes.'
        assert [(kind, reason, source, message) for kind, reason, _, source, message in emitted] == [
            ("Normal", "Scheduled", "default-scheduler", f"Successfully assigned {name} to node-1"),
            ("Normal", "Pulling", "kubelet", 'spec.containers{main}: Pulling image "web:1"'),
            ("Normal", "Pulled", "kubelet", f"spec.containers{{main}}: {pulled}"),
            ("Normal", "Created", "kubelet", "spec.containers{main}: Container created"),
            ("Normal", "Started", "kubelet", "spec.containers{main}: Container started"),
        ]

        await client.scale(Deployment, "web", namespace="default", replicas=0)
        (killing,) = [event for event in await _events(client, "Pod", _reasons("Killing")) if event.reason == "Killing"]
        assert (killing.source.component, killing.source.host) == ("kubelet", "node-1")
        assert killing.involved_object.field_path == "spec.containers{main}"
        deleted = await _events(client, "ReplicaSet", _reasons("SuccessfulCreate", "SuccessfulDelete"))
        assert [event.message for event in deleted if event.reason == "SuccessfulDelete"] == [
            f"Deleted pod: {pod.metadata.name}"
        ]


async def test_a_pod_that_fits_nowhere_is_reported(embedded_control_plane: ControlPlane) -> None:
    async with embedded_control_plane.client() as client:
        picky = Pod(metadata=ObjectMeta(name="picky", namespace="default"), spec=template(zone="none").spec)
        await client.wait_for(await client.create(picky), condition("PodScheduled", "False"), timeout=60)

        (event,) = await _events(client, "Pod", _reasons("FailedScheduling"))

        assert event.series is None
        assert (event.type, event.action, event.reporting_component) == ("Warning", "Scheduling", "default-scheduler")
        assert event.message == "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
