"""What is said of pods that are not ready, and of Deployments that will never be."""

from __future__ import annotations

import asyncio

import pytest

from kubewright import Client, ControlPlane
from kubewright.api.apps.v1 import Deployment, DeploymentSpec
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Container, Pod, PodSpec, PodTemplateSpec
from kubewright.api.markers import JSONValue
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.cli.cluster.diagnosis import pods_of
from kubewright.cli.cluster.readiness import NotReady, wait_until_ready
from kubewright.cli.cluster.status_line import StatusLine
from kubewright.cli.cluster.waiting import Deadline
from kubewright.client import MergePatch

LABELS = {"app": "ferry"}
TEMPLATE = PodTemplateSpec(
    metadata=ObjectMeta(labels=LABELS), spec=PodSpec(containers=[Container(name="manager", image="ferry:1")])
)
DEPLOYMENT = Deployment(
    metadata=ObjectMeta(name="ferry", namespace="default"),
    spec=DeploymentSpec(replicas=1, selector=LabelSelector(match_labels=LABELS), template=TEMPLATE),
)


def container(state: JSONValue, last: JSONValue = None) -> JSONValue:
    status: dict[str, JSONValue] = {
        "name": "manager",
        "image": "ferry:1",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }
    return {"phase": "Pending", "containerStatuses": [{**status, **({"lastState": last} if last else {})}]}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            container({"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "ferry:1"'}}),
            ['ImagePullBackOff: Back-off pulling image "ferry:1"'],
        ),
        (
            container(
                {"waiting": {"reason": "CrashLoopBackOff"}},
                {"terminated": {"exitCode": 1, "message": "starting\nferry: there is no river\n"}},
            ),
            ["CrashLoopBackOff", "manager ended with exit code 1: ferry: there is no river"],
        ),
        (container({"waiting": {"reason": "ContainerCreating"}}), []),
        (container({"running": {}}), ["manager runs, and is not ready"]),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]},
            ["not scheduled: 0/3 nodes are available"],
        ),
        # Whoever can have a pod log something must not write on the terminal of whoever deploys it.
        (
            container({"waiting": {"reason": "Error", "message": "a\x1b[2K\rb\nc"}}),
            ["Error: a [2K b c"],
        ),
    ],
)
async def test_a_pod_that_is_not_ready_says_why(status: JSONValue, said: list[str]) -> None:
    async with ControlPlane.embedded(controllers=["serviceaccounts"]) as plane, plane.client() as client:
        pod = await client.create(
            from_json(
                Pod, {"metadata": {"name": "ferry-1", "namespace": "default", "labels": LABELS}, "spec": TEMPLATE.spec}
            )
        )
        await client.status.patch(pod, MergePatch({"status": status}))
        found = [line async for line in pods_of(client, DEPLOYMENT)]
    assert found == [f"pod ferry-1: {line}" for line in said]


async def test_a_rollout_that_has_failed_is_not_waited_for() -> None:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        created = await client.create(DEPLOYMENT)
        failed = {
            "type": "Progressing",
            "status": "False",
            "reason": "ProgressDeadlineExceeded",
            "message": 'ReplicaSet "ferry-1" has timed out progressing.',
        }
        status = {"observedGeneration": created.metadata.generation, "conditions": [failed]}
        await client.status.patch(created, MergePatch({"status": status}))
        async with asyncio.timeout(60):
            with StatusLine() as line, pytest.raises(NotReady) as raised:
                await wait_until_ready(client, [created], None, deadline=Deadline(3600), line=line)
    assert str(raised.value) == 'Deployment default/ferry: ReplicaSet "ferry-1" has timed out progressing.'


async def rolled_out(client: Client, status: JSONValue) -> str:
    created = await client.create(DEPLOYMENT)
    await client.status.patch(created, MergePatch({"status": status}))
    with StatusLine() as line:
        try:
            await wait_until_ready(client, [created], None, deadline=Deadline(0), line=line)
        except NotReady as error:
            return str(error).splitlines()[1].removeprefix("  Deployment default/ferry: ")
    return ""


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({}, "its roll-out has not begun"),
        ({"observedGeneration": 1}, "0 of 1 replicas are of the present version"),
        (
            {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1},
            "1 of 2 replicas are of an older version",
        ),
        ({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}, "0 of 1 replicas are ready"),
        (
            {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1},
            "",
        ),
    ],
)
async def test_a_rollout_is_complete_as_kubectl_has_it(status: JSONValue, reason: str) -> None:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        assert await rolled_out(client, status) == reason
