"""The controllers of a cluster, on every control plane: those of kube-controller-manager, or ours."""

from __future__ import annotations

import pytest

from kubewright.api.apps.v1 import Deployment, DeploymentSpec, ReplicaSet
from kubewright.api.core.v1 import ConfigMap, Container, Namespace, Pod, PodSpec, PodTemplateSpec, ServiceAccount
from kubewright.api.meta import LabelSelector, ObjectMeta, OwnerReference
from kubewright.api.rbac.v1 import AggregationRule, ClusterRole, PolicyRule
from kubewright.client import Client
from kubewright.client.errors import Forbidden
from kubewright.client.paths import Propagation
from kubewright.client.wait import Field, deleted, exists


async def owned(client: Client, name: str, owner: ConfigMap, *, blocking: bool = False) -> ConfigMap:
    reference = OwnerReference(
        api_version="v1",
        kind="ConfigMap",
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        block_owner_deletion=blocking or None,
    )
    return await client.create(ConfigMap(metadata=ObjectMeta(name=name, owner_references=[reference])))


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_dependents_are_deleted_with_their_owner(client: Client, propagation: Propagation) -> None:
    owner = await client.create(ConfigMap(metadata=ObjectMeta(name="owner")))
    child = await owned(client, "child", owner, blocking=True)
    grandchild = await owned(client, "grandchild", child)
    await client.delete(owner, propagation=propagation)
    for gone in (owner, child, grandchild):
        assert await client.wait_for(gone, deleted, timeout=30) is None


async def test_an_orphan_stays_without_its_owner(client: Client) -> None:
    owner = await client.create(ConfigMap(metadata=ObjectMeta(name="owner")))
    child = await owned(client, "child", owner)
    await client.delete(owner, propagation="Orphan")
    await client.wait_for(owner, deleted, timeout=30)
    assert (await client.get(ConfigMap, "child")).metadata.owner_references == []
    assert (await client.get(ConfigMap, "child")).metadata.uid == child.metadata.uid


async def test_everything_in_a_namespace_is_deleted_with_it(admin: Client, namespace: str) -> None:
    inside = admin.in_namespace(namespace)
    kept = await inside.create(ConfigMap(metadata=ObjectMeta(name="kept", finalizers=["example.com/hold"])))
    await inside.create(ConfigMap(metadata=ObjectMeta(name="free")))
    space = await admin.get(Namespace, namespace)
    await admin.delete(space)
    waiting = Field("metadata.deletionTimestamp").satisfies(lambda value: value is not None, "is set")
    await inside.wait_for(kept, waiting, timeout=30)
    assert (await admin.get(Namespace, namespace)).status.phase == "Terminating"
    with pytest.raises(Forbidden, match="because it is being terminated"):
        await inside.create(ConfigMap(metadata=ObjectMeta(name="late")))
    held = await inside.get(ConfigMap, "kept")
    held.metadata.finalizers = []
    await inside.update(held)
    assert await admin.wait_for(space, deleted, timeout=30) is None


async def test_every_namespace_has_an_account_and_the_root_certificate(client: Client) -> None:
    await client.wait_for(ServiceAccount, "default", exists, timeout=30)
    published = await client.wait_for(ConfigMap, "kube-root-ca.crt", exists, timeout=30)
    assert published is not None
    assert published.data["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    await client.delete(published)
    repaired = Field("metadata.uid").satisfies(lambda uid: uid not in (None, published.metadata.uid), "is new")
    assert await client.wait_for(ConfigMap, "kube-root-ca.crt", repaired, timeout=30)


async def test_a_deployment_keeps_its_pods(client: Client) -> None:
    labels = {"app": "web"}
    deployment = Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(
            replicas=2,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="main", image="nginx")])
            ),
        ),
    )
    created = await client.create(deployment)
    await client.wait_for(created, Field("status.replicas").equals(2), timeout=30)
    (replica_set,) = await client.list(ReplicaSet)
    pods = await client.list(Pod, labels=labels)
    assert {pod.metadata.owner_references[0].uid for pod in pods} == {replica_set.metadata.uid}
    await client.delete(pods[0], grace_period=0)
    await client.wait_for(pods[0], deleted, timeout=30)
    await client.wait_for(replica_set, Field("status.replicas").equals(2), timeout=30)
    await client.scale(Deployment, "web", replicas=0)
    await client.wait_for(created, Field("status.observedGeneration").equals(2), timeout=30)
    await client.wait_for(replica_set, Field("spec.replicas").equals(0), timeout=30)
    for pod in await client.list(Pod, labels=labels):
        await client.wait_for(pod, deleted, timeout=30)


async def test_aggregated_roles_have_the_rules_they_select(admin: Client, namespace: str) -> None:
    labels = {"example.com/aggregate": namespace}
    part = ClusterRole(
        metadata=ObjectMeta(name=f"{namespace}-part", labels=labels),
        rules=[PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])],
    )
    whole = ClusterRole(
        metadata=ObjectMeta(name=f"{namespace}-whole"),
        aggregation_rule=AggregationRule(cluster_role_selectors=[LabelSelector(match_labels=labels)]),
    )
    created = await admin.create(whole)
    await admin.create(part)
    await admin.wait_for(created, Field("rules[0].resources[0]").equals("pods"), timeout=30)
    await admin.delete(part)
    await admin.delete(created)
