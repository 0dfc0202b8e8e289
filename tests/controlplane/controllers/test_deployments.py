from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import pytest

from kubewright.api.apps.v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from kubewright.api.codec import to_json
from kubewright.api.core.v1 import Container, Namespace, Node, Pod, PodSpec, PodTemplateSpec, ServiceAccount
from kubewright.api.markers import JSONValue
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.client import Client, Config, MergePatch
from kubewright.client.wait import Expectation, Field, available, condition, deleted, exists, ready
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.deployments import Deployments
from kubewright.controlplane.controllers.nodes import SimulatedNodes
from kubewright.controlplane.controllers.pod_behaviour import PREFIX, Behaviour
from kubewright.controlplane.controllers.pod_script import PodScript
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.pods import is_ready
from kubewright.controlplane.controllers.replica_sets import ReplicaSets
from kubewright.controlplane.controllers.revisions import REVISION
from kubewright.controlplane.controllers.runtime import BuiltInController
from kubewright.controlplane.controllers.scheduler import Scheduler
from kubewright.controlplane.controllers.template_hash import template_hash

Start = Callable[[BuiltInController], None]


class AdvancingClock(Clock, Protocol):
    def advance(self, seconds: float) -> None: ...


@pytest.fixture(autouse=True)
async def no_nodes_left(client: Client) -> AsyncIterator[None]:
    yield
    async for node in client.list(Node):
        await client.delete(node, missing_ok=True)


def run_pods(client: Client, start: Start, *controllers: BuiltInController) -> None:
    """All that it takes for pods to run, and the controllers of a test."""
    basic: list[BuiltInController] = [SimulatedNodes(client, count=2), Scheduler(client), PodSimulator(client)]
    for controller in [*basic, *controllers]:
        start(controller)


def deployment(namespace: str, image: str = "web:1", replicas: int = 3) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web", namespace=namespace),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": "web"}),
            strategy=DeploymentStrategy(
                type="RollingUpdate", rolling_update=RollingUpdateDeployment(max_surge=1, max_unavailable=1)
            ),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels={"app": "web"}),
                spec=PodSpec(containers=[Container(name="main", image=image)]),
            ),
        ),
    )


def rolled_out(revision: str, replicas: int = 3) -> Expectation:
    """The revision is out, with exactly so many pods."""
    return (
        Field(f'metadata.annotations["{REVISION}"]').equals(revision)
        & Field("status.conditions").satisfies(
            lambda found: (
                isinstance(found, list)
                and any(isinstance(one, dict) and one.get("reason") == "NewReplicaSetAvailable" for one in found)
            ),
            "say NewReplicaSetAvailable",
        )
        & Field("status.updatedReplicas").equals(replicas)
        & Field("status.replicas").equals(replicas)
        & Field("status.availableReplicas").equals(replicas)
        & Field("status.terminatingReplicas").equals(0)
        & available
    )


IS_OBSERVED = Expectation(
    "is observed",
    lambda view: Field("status.observedGeneration").read(view) == Field("metadata.generation").read(view),
)


def image_is(image: str) -> MergePatch:
    return MergePatch({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})


def as_template(**annotations: str) -> MergePatch:
    named: dict[str, JSONValue] = {PREFIX + name.replace("_", "-"): value for name, value in annotations.items()}
    return MergePatch({"spec": {"template": {"metadata": {"annotations": named}}}})


async def test_a_rolling_update_respects_max_unavailable_and_max_surge(
    client: Client, pod_namespace: str, start: Start
) -> None:
    run_pods(client, start, ReplicaSets(client), Deployments(client))
    subject = await client.create(deployment(pod_namespace, replicas=4))
    subject = await client.wait_for(subject, rolled_out("1", 4)) or subject
    pods = {pod.metadata.name: pod for pod in await client.list(Pod, namespace=pod_namespace)}
    (old,) = await client.list(ReplicaSet, namespace=pod_namespace)
    sizes = {old.metadata.name: old.spec.replicas or 0}
    revision = (await client.get(Deployment, subject.key)).metadata.resource_version

    await client.patch(subject, image_is("web:2"))

    async with client.watch(Pod, namespace=pod_namespace, resource_version=revision) as events:
        async for event in events:
            if event.type == "DELETED" or event.object.metadata.deletion_timestamp is not None:
                pods.pop(event.header.name, None)
            elif event.type != "BOOKMARK":
                pods[event.header.name] = event.object
            serving = [pod for pod in pods.values() if is_ready(pod)]
            assert len(serving) >= 3
            if len(serving) == 4 and all(pod.spec.containers[0].image == "web:2" for pod in pods.values()):
                break
    # Counted as kube-controller-manager does, by desired pods: a set may get its pods before another lost its own.
    async with client.watch(ReplicaSet, namespace=pod_namespace, resource_version=revision) as steps:
        async for step in steps:
            if step.type != "BOOKMARK":
                sizes[step.header.name] = step.object.spec.replicas or 0
            assert sum(sizes.values()) <= 5
            if sizes[old.metadata.name] == 0 and sum(sizes.values()) == 4:
                break
    await client.wait_for(subject, rolled_out("2", 4))


async def test_kubectl_rollout_works(
    client: Client, pod_namespace: str, start: Start, api_server: ControlPlane
) -> None:
    run_pods(client, start, ReplicaSets(client), Deployments(client))

    async def kubectl(*arguments: str) -> str:
        return (await api_server.kubectl("-n", pod_namespace, *arguments)).stdout

    await kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
    assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    await kubectl("set", "image", "deployment/web", "web=web:2")
    assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert [line.split()[0] for line in (await kubectl("rollout", "history", "deployment/web")).split("\n")[2:4]] == [
        "1",
        "2",
    ]

    await kubectl("rollout", "undo", "deployment/web")
    await kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    undone = await client.get(Deployment, "web", namespace=pod_namespace)
    assert undone.spec.template.spec.containers[0].image == "web:1"
    assert undone.metadata.annotations[REVISION] == "3"
    assert len(await client.list(ReplicaSet, namespace=pod_namespace)) == 2

    await kubectl("rollout", "restart", "deployment/web")
    assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert len(await client.list(ReplicaSet, namespace=pod_namespace)) == 3
    assert "Image:\tweb:2" in (await kubectl("rollout", "history", "deployment/web", "--revision=2")).replace(" ", "")


async def test_a_settled_deployment_costs_no_writes(
    client: Client, pod_namespace: str, start: Start, writes: list[str]
) -> None:
    run_pods(client, start, ReplicaSets(client), Deployments(client))
    settled = await client.create(deployment(pod_namespace))
    await client.wait_for(settled, rolled_out("1"))
    writes.clear()

    await client.patch(settled, MergePatch({"metadata": {"labels": {"looked": "at"}}}))
    # When a later one is done, this one was reconciled.
    later = deployment(pod_namespace)
    later.metadata.name, later.spec.selector.match_labels = "later", {"app": "later"}
    later.spec.template.metadata.labels = {"app": "later"}
    await client.wait_for(await client.create(later), rolled_out("1"))

    touched = [write for write in writes if "/web" in write]
    assert touched == [f"PATCH /apis/apps/v1/namespaces/{pod_namespace}/deployments/web"]


async def test_recreating_waits_until_every_old_pod_is_gone(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    simulator = PodSimulator(client, script=PodScript(lambda pod: Behaviour(stop=5)), clock=clock)
    controllers: list[BuiltInController] = [SimulatedNodes(client), Scheduler(client), simulator]
    for controller in [*controllers, ReplicaSets(client), Deployments(client)]:
        start(controller)
    desired = deployment(pod_namespace, replicas=2)
    desired.spec.strategy = DeploymentStrategy(type="Recreate")
    subject = await client.create(desired)
    await client.wait_for(subject, rolled_out("1", 2))

    await client.patch(subject, image_is("web:2"))
    await client.wait_for(subject, Field("status.terminatingReplicas").equals(2))
    assert len(await client.list(ReplicaSet, namespace=pod_namespace)) == 1
    # When a later pod is ready, the simulator has seen that the old ones are to go.
    containers = [Container(name="main", image="later:1")]
    later = Pod(metadata=ObjectMeta(name="later", namespace=pod_namespace), spec=PodSpec(containers=containers))
    await client.wait_for(await client.create(later), ready)
    clock.advance(5)

    await client.wait_for(subject, rolled_out("2", 2))
    remaining = [pod.spec.containers[0].image for pod in await client.list(Pod, namespace=pod_namespace)]
    assert remaining == ["later:1", "web:2", "web:2"]


async def test_a_paused_deployment_scales_but_does_not_roll_out(
    client: Client, pod_namespace: str, start: Start
) -> None:
    run_pods(client, start, ReplicaSets(client), Deployments(client))
    subject = await client.create(deployment(pod_namespace))
    await client.wait_for(subject, rolled_out("1"))

    await client.patch(subject, MergePatch({"spec": {"paused": True}}))
    await client.wait_for(subject, condition("Progressing", "Unknown"))
    await client.patch(subject, image_is("web:2"))
    await client.scale(subject, replicas=5)
    paused = await client.wait_for(subject, Field("status.availableReplicas").equals(5))
    assert paused is not None
    assert paused.status.updated_replicas is None
    assert len(await client.list(ReplicaSet, namespace=pod_namespace)) == 1

    await client.patch(subject, MergePatch({"spec": {"paused": False}}))
    await client.wait_for(subject, rolled_out("2", 5))


async def test_a_rollout_that_gets_nowhere_misses_its_deadline_and_can_be_undone(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    run_pods(client, start, ReplicaSets(client), Deployments(client, clock=clock))
    desired = deployment(pod_namespace)
    desired.spec.progress_deadline_seconds = 60
    subject = await client.create(desired)
    await client.wait_for(subject, rolled_out("1"))

    await client.patch(subject, as_template(failed_pulls="always"))
    # Two of the new pods may be there, and they do not become ready.
    await client.wait_for(
        subject, Field("status.updatedReplicas").equals(2) & Field("status.replicas").equals(4) & condition("Available")
    )
    clock.advance(62)
    failed = await client.wait_for(subject, condition("Progressing", "False"))
    assert failed is not None
    progressing = next(one for one in failed.status.conditions if one.type == "Progressing")
    assert progressing.reason == "ProgressDeadlineExceeded"

    await client.patch(subject, MergePatch({"spec": {"template": {"metadata": {"annotations": None}}}}))
    await client.wait_for(subject, rolled_out("3"))


async def test_old_revisions_beyond_the_limit_are_forgotten(client: Client, pod_namespace: str, start: Start) -> None:
    run_pods(client, start, ReplicaSets(client), Deployments(client))
    desired = deployment(pod_namespace, replicas=1)
    desired.spec.revision_history_limit = 1
    subject = await client.create(desired)
    await client.wait_for(subject, rolled_out("1", 1))
    (first,) = await client.list(ReplicaSet, namespace=pod_namespace)

    for revision in ("2", "3"):
        await client.patch(subject, image_is(f"web:{revision}"))
        await client.wait_for(subject, rolled_out(revision, 1))

    await client.wait_for(first, deleted)
    kept = [one.metadata.annotations[REVISION] for one in await client.list(ReplicaSet, namespace=pod_namespace)]
    assert sorted(kept) == ["2", "3"]


async def test_a_name_that_another_set_has_is_avoided(client: Client, pod_namespace: str, start: Start) -> None:
    desired = deployment(pod_namespace, replicas=1)
    subject = await client.create(desired)
    hashed = template_hash(subject.spec.template, None)
    await client.create(replica_set(pod_namespace, f"web-{hashed}", {"app": "other"}))
    run_pods(client, start, ReplicaSets(client), Deployments(client))

    rolled = await client.wait_for(subject, rolled_out("1", 1))

    assert rolled is not None
    assert rolled.status.collision_count == 1


async def test_an_orphaned_set_with_the_template_is_adopted_instead_of_making_another(
    client: Client, pod_namespace: str, start: Start
) -> None:
    orphan = await client.create(replica_set(pod_namespace, "orphan", {"app": "web"}))
    run_pods(client, start, ReplicaSets(client), Deployments(client))

    subject = await client.create(deployment(pod_namespace))
    await client.wait_for(subject, rolled_out("1"))

    (adopted,) = await client.list(ReplicaSet, namespace=pod_namespace)
    assert adopted.metadata.uid == orphan.metadata.uid
    assert [owner.name for owner in adopted.metadata.owner_references] == ["web"]


def replica_set(namespace: str, name: str, labels: dict[str, str]) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name=name, namespace=namespace, labels=labels),
        spec=ReplicaSetSpec(
            replicas=1,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="main", image="web:1")])
            ),
        ),
    )


async def history(client: Client, namespace: str) -> list[JSONValue]:
    """What a Deployment and its ReplicaSets look like after each of some changes, without times and random names."""
    looks: list[JSONValue] = []
    subject = await client.create(deployment(namespace))

    async def look(expectation: Expectation) -> None:
        seen = await client.wait_for(subject, expectation)
        assert seen is not None
        sets = await client.list(ReplicaSet, namespace=namespace)
        hashes = {one.metadata.labels["pod-template-hash"] for one in sets}
        sets.sort(key=lambda one: int(one.metadata.annotations[REVISION]))
        looks.append(plain(to_json([seen.metadata.annotations, seen.status]), hashes))
        looks.extend(plain(to_json([one.metadata, one.spec, one.status]), hashes) for one in sets)

    await look(rolled_out("1"))
    await client.patch(subject, MergePatch({"metadata": {"annotations": {"kubernetes.io/change-cause": "new image"}}}))
    await client.patch(subject, image_is("web:2"))
    await look(rolled_out("2"))
    await client.scale(subject, replicas=5)
    await look(rolled_out("2", 5))
    await client.patch(subject, image_is("web:1"))
    await look(rolled_out("3", 5))
    await client.patch(subject, MergePatch({"spec": {"paused": True}}))
    await look(condition("Progressing", "Unknown") & IS_OBSERVED)
    await client.patch(subject, MergePatch({"spec": {"progressDeadlineSeconds": 2**31 - 1, "paused": False}}))
    await look(exists & ~condition("Progressing", "Unknown") & IS_OBSERVED)
    return looks


def plain(value: JSONValue, hashes: set[str]) -> JSONValue:
    if isinstance(value, dict):
        # How many steps a rollout takes, and so the generation of a ReplicaSet, depends on who is quicker.
        steps = ("generation", "observedGeneration")
        unlike = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", *steps)
        return {
            name: "TIME" if name.endswith("Time") else plain(item, hashes)
            for name, item in value.items()
            if name not in unlike
        }
    if isinstance(value, list):
        # The order of conditions shows only which of them was touched last.
        return sorted(
            (plain(item, hashes) for item in value), key=lambda item: f"{isinstance(item, dict) and item.get('type')}"
        )
    if isinstance(value, str):
        for hashed in hashes:
            value = value.replace(hashed, "HASH")
    return value


async def test_deployments_and_replica_sets_look_as_kube_controller_manager_leaves_them(
    client: Client, pod_namespace: str, start: Start, real_control_plane: ControlPlane
) -> None:
    run_pods(client, start, ReplicaSets(client), Deployments(client))
    ours = await history(client, pod_namespace)

    async with Client(Config.from_kubeconfig_text(real_control_plane.kubeconfig())) as genuine:
        tasks: list[asyncio.Task[None]] = []
        run_pods(genuine, lambda controller: tasks.append(asyncio.create_task(controller.run())))
        created = await genuine.create(Namespace(metadata=ObjectMeta(generate_name="deployments-")))
        namespace = created.metadata.name
        await genuine.wait_for(ServiceAccount, "default", exists, namespace=namespace)
        try:
            theirs = await history(genuine, namespace)
        finally:
            await genuine.delete(created)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            async for node in genuine.list(Node):
                await genuine.delete(node, missing_ok=True)
    assert ours == theirs
