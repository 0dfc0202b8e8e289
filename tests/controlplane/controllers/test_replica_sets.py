from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import pytest

from kubewright.api.apps.v1 import ReplicaSet, ReplicaSetSpec
from kubewright.api.core.v1 import (
    Container,
    Namespace,
    Pod,
    PodCondition,
    PodSpec,
    PodTemplateSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
)
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.api.quantity import Quantity
from kubewright.cache import CacheEntry
from kubewright.cache.informer import Informer
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, condition, deleted
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.replica_sets import ReplicaSets
from kubewright.controlplane.controllers.runtime import BuiltInController

Start = Callable[[BuiltInController], None]


class AdvancingClock(Clock, Protocol):
    def advance(self, seconds: float) -> None: ...


def replica_set(namespace: str, replicas: int, min_ready_seconds: int = 0) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name="web", namespace=namespace),
        spec=ReplicaSetSpec(
            replicas=replicas,
            min_ready_seconds=min_ready_seconds,
            selector=LabelSelector(match_labels={"app": "web"}),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels={"app": "web", "tier": "front"}, annotations={"note": "hello"}),
                spec=PodSpec(containers=[Container(name="main", image="web:1")]),
            ),
        ),
    )


def pod(namespace: str, name: str, **labels: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, labels=labels),
        spec=PodSpec(containers=[Container(name="main", image="web:1")]),
    )


async def make_ready(client: Client, pod: Pod, clock: Clock, status: str = "True") -> None:
    pod.status.phase = "Running"
    pod.status.conditions = [PodCondition(type="Ready", status=status, last_transition_time=clock.now())]
    await client.status.update(pod)


async def pods_of(client: Client, namespace: str) -> list[Pod]:
    return [pod for pod in await client.list(Pod, namespace=namespace) if pod.metadata.deletion_timestamp is None]


REPLICAS, READY = Field("status.replicas"), Field("status.readyReplicas")


async def test_pods_are_made_from_the_template_and_counted(client: Client, pod_namespace: str, start: Start) -> None:
    start(ReplicaSets(client))

    created = await client.create(replica_set(pod_namespace, 3))
    seen = await client.wait_for(created, REPLICAS.equals(3))

    pods = await pods_of(client, pod_namespace)
    assert len(pods) == 3
    for made in pods:
        assert made.metadata.generate_name == "web-"
        assert made.metadata.labels == {"app": "web", "tier": "front"}
        assert made.metadata.annotations == {"note": "hello"}
        assert [(owner.uid, owner.controller) for owner in made.metadata.owner_references] == [
            (created.metadata.uid, True)
        ]
    assert seen is not None
    assert seen.status.fully_labeled_replicas == 3
    assert (seen.status.ready_replicas, seen.status.available_replicas) == (None, None)
    assert (seen.status.terminating_replicas, seen.status.observed_generation) == (0, 1)


def hold_back_the_watch_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """It brings nothing after its first list: all a controller knows of pods is what it did."""
    apply, delete = Informer.apply, Informer.delete

    def hold_apply(self: Informer, entry: CacheEntry) -> None:
        if self.kind_name != "pods":
            apply(self, entry)

    def hold_delete(self: Informer, entry: CacheEntry) -> None:
        if self.kind_name != "pods":
            delete(self, entry)

    monkeypatch.setattr(Informer, "apply", hold_apply)
    monkeypatch.setattr(Informer, "delete", hold_delete)
    monkeypatch.setattr(Informer, "progress", lambda self, revision: None)


async def test_no_pod_is_made_or_deleted_twice_while_the_watch_is_behind(
    client: Client, pod_namespace: str, start: Start, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_back_the_watch_of_pods(monkeypatch)
    start(ReplicaSets(client))
    created = await client.create(replica_set(pod_namespace, 20))
    await client.wait_for(created, REPLICAS.equals(20))

    await client.scale(created, replicas=5)
    await client.wait_for(created, REPLICAS.equals(5))
    for turn in range(3):
        changed = await client.patch(created, MergePatch({"spec": {"minReadySeconds": turn + 1}}))
        await client.wait_for(created, Field("status.observedGeneration").equals(changed.metadata.generation))

    path = f"/api/v1/namespaces/{pod_namespace}/pods"
    assert sum(write == f"POST {path}" for write in writes) == 20
    assert sum(write.startswith(f"DELETE {path}/") for write in writes) == 15
    assert len(await pods_of(client, pod_namespace)) == 5


async def test_a_settled_set_costs_no_writes(
    client: Client, pod_namespace: str, start: Start, writes: list[str]
) -> None:
    start(ReplicaSets(client))
    settled = await client.create(replica_set(pod_namespace, 2))
    await client.wait_for(settled, REPLICAS.equals(2))
    writes.clear()

    await client.patch(settled, MergePatch({"metadata": {"labels": {"looked": "at"}}}))
    # When a later one is done, this one was reconciled.
    later = replica_set(pod_namespace, 0)
    later.metadata.name = "later"
    await client.wait_for(await client.create(later), Field("status.observedGeneration").equals(1))

    path = f"/apis/apps/v1/namespaces/{pod_namespace}/replicasets"
    assert writes == [f"PATCH {path}/web", f"POST {path}", f"PUT {path}/later/status"]


async def test_a_pod_that_is_deleted_or_ends_is_replaced(client: Client, pod_namespace: str, start: Start) -> None:
    start(ReplicaSets(client))
    created = await client.create(replica_set(pod_namespace, 2))
    await client.wait_for(created, REPLICAS.equals(2))
    gone, failed = await pods_of(client, pod_namespace)

    await client.delete(gone, grace_period=0)
    failed.status.phase = "Failed"
    await client.status.update(failed)

    async with client.watch(Pod, namespace=pod_namespace) as events:
        fresh = set[str]()
        async for event in events:
            if event.type == "ADDED" and event.header.name not in (gone.metadata.name, failed.metadata.name):
                fresh.add(event.header.name)
            if len(fresh) == 2:
                break


async def test_the_pods_least_missed_go_first(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    start(ReplicaSets(client, clock=clock))
    created = await client.create(replica_set(pod_namespace, 4))
    await client.wait_for(created, REPLICAS.equals(4))
    first, second, cheap, pending = await pods_of(client, pod_namespace)
    cheap = await client.patch(
        cheap, MergePatch({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}})
    )
    for member in (first, cheap, second):
        await make_ready(client, member, clock)
        clock.advance(1)
    await client.wait_for(created, READY.equals(3))

    for replicas, victim in ((3, pending), (2, cheap), (1, second)):
        await client.scale(created, replicas=replicas)
        await client.wait_for(victim, deleted)
    assert [left.metadata.name for left in await pods_of(client, pod_namespace)] == [first.metadata.name]


async def test_availability_waits_for_min_ready_seconds(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    start(ReplicaSets(client, clock=clock))
    created = await client.create(replica_set(pod_namespace, 1, min_ready_seconds=30))
    await client.wait_for(created, REPLICAS.equals(1))
    (only,) = await pods_of(client, pod_namespace)
    await make_ready(client, only, clock)

    seen = await client.wait_for(created, READY.equals(1))
    assert seen is not None
    assert seen.status.available_replicas is None

    clock.advance(30)
    await client.wait_for(created, Field("status.availableReplicas").equals(1))


async def test_orphans_that_match_are_adopted_and_pods_that_do_not_are_released(
    client: Client, pod_namespace: str, start: Start
) -> None:
    start(ReplicaSets(client))
    orphan = await client.create(pod(pod_namespace, "orphan", app="web"))
    stranger = await client.create(pod(pod_namespace, "stranger", app="other"))
    created = await client.create(replica_set(pod_namespace, 1))
    seen = await client.wait_for(created, REPLICAS.equals(1))
    assert seen is not None
    assert seen.status.fully_labeled_replicas is None

    adopted = await client.get(Pod, orphan.key)
    assert [owner.uid for owner in adopted.metadata.owner_references] == [created.metadata.uid]
    assert not (await client.get(Pod, stranger.key)).metadata.owner_references

    await client.patch(adopted, MergePatch({"metadata": {"labels": {"app": "debug"}}}))
    await client.wait_for(adopted, Field("metadata.ownerReferences").equals(None))
    await client.wait_for(created, Field("status.fullyLabeledReplicas").equals(1))
    assert len(await pods_of(client, pod_namespace)) == 3


async def test_a_failed_pod_creation_is_reported_and_retried(client: Client, pod_namespace: str, start: Start) -> None:
    quota = ResourceQuota(
        metadata=ObjectMeta(name="none", namespace=pod_namespace), spec=ResourceQuotaSpec(hard={"pods": Quantity(0)})
    )
    quota = await client.create(quota)
    quota.status = ResourceQuotaStatus(hard={"pods": Quantity(0)}, used={"pods": Quantity(0)})
    await client.status.update(quota)
    start(ReplicaSets(client))

    created = await client.create(replica_set(pod_namespace, 2))
    seen = await client.wait_for(created, condition("ReplicaFailure"))
    assert seen is not None
    failure = seen.status.conditions[0]
    assert failure.reason == "FailedCreate"
    assert failure.message is not None
    assert failure.message.endswith(
        "is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0"
    )

    await client.delete(quota)
    await client.wait_for(created, REPLICAS.equals(2) & ~condition("ReplicaFailure"), timeout=30)


async def test_a_namespace_that_ends_is_no_failure(client: Client, pod_namespace: str, start: Start) -> None:
    created = await client.create(replica_set(pod_namespace, 2))
    await client.delete(Namespace, pod_namespace)
    start(ReplicaSets(client))

    seen = await client.wait_for(created, Field("status.observedGeneration").equals(1))

    assert seen is not None
    assert (seen.status.replicas, seen.status.conditions) == (0, [])


async def test_a_dying_set_makes_no_pods(client: Client, pod_namespace: str, start: Start) -> None:
    dying = replica_set(pod_namespace, 0)
    dying.metadata.finalizers = ["example.com/hold"]
    dying = await client.create(dying)
    await client.delete(dying)
    await client.scale(dying, replicas=2)
    start(ReplicaSets(client))

    await client.wait_for(dying, Field("status.observedGeneration").equals(3))

    assert await pods_of(client, pod_namespace) == []
    await client.patch(dying, MergePatch({"metadata": {"finalizers": None}}))


async def test_a_controller_ends_when_cancelled_and_leaves_nothing(client: Client, pod_namespace: str) -> None:
    before = asyncio.all_tasks()
    task = asyncio.create_task(ReplicaSets(client).run())
    created = await client.create(replica_set(pod_namespace, 1))
    await client.wait_for(created, REPLICAS.equals(1))

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert task.cancelled()
    assert asyncio.all_tasks() == before
