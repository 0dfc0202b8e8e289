"""StatefulSets and disruption budgets, by kube-controller-manager and by ours: these tests play the kubelet."""

from __future__ import annotations

import pytest
from tests.conformance.workload_steps import events, eventually, make_ready, pods, until

from kubewright.api.apps.v1 import ControllerRevision, ReplicaSet, StatefulSet
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import PersistentVolumeClaim, Pod, ServiceAccount
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.policy.v1 import PodDisruptionBudget
from kubewright.client import Client
from kubewright.client.errors import TooManyRequests
from kubewright.client.wait import exists


@pytest.fixture
async def client(client: Client) -> Client:
    """Admits pods."""
    await client.wait_for(ServiceAccount, "default", exists, timeout=60)
    return client


def template(image: str = "db:1") -> JSONObject:
    container: JSONObject = {"name": "main", "image": image, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    return {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}}


async def stateful(client: Client, name: str = "db", **spec: JSONValue) -> StatefulSet:
    claim: JSONObject = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    given: JSONObject = {
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": template(),
        "volumeClaimTemplates": [claim],
        **spec,
    }
    return await client.create(from_json(StatefulSet, {"metadata": {"name": name}, "spec": given}))


def is_fresh(pod: Pod) -> bool:
    return pod.status.phase == "Pending" and pod.metadata.deletion_timestamp is None


async def test_pods_come_go_and_are_replaced_one_by_one(client: Client) -> None:
    made = await stateful(client, replicas=2)
    (first,) = await pods(client, 1)
    (revision,) = await client.list(ControllerRevision)
    hashed = revision.metadata.labels["controller.kubernetes.io/hash"]
    assert revision.metadata.name == f"db-{hashed}"
    assert revision.metadata.labels["app"] == "db"
    assert (revision.revision, revision.metadata.owner_references) == (1, [made.as_owner()])
    assert first.metadata.name == "db-0"
    assert first.metadata.labels == {
        "app": "db",
        "apps.kubernetes.io/pod-index": "0",
        "statefulset.kubernetes.io/pod-name": "db-0",
        "controller-revision-hash": revision.metadata.name,
    }
    assert (first.spec.hostname, first.spec.subdomain) == ("db-0", "db")
    volume = first.spec.volumes[0].persistent_volume_claim
    assert volume is not None
    assert volume.claim_name == "data-db-0"
    claim = await client.get(PersistentVolumeClaim, "data-db-0")
    assert (claim.metadata.labels, claim.metadata.owner_references) == ({"app": "db"}, [])
    waiting = await until(client, made, lambda found: found.status.replicas == 1)
    assert (waiting.status.ready_replicas, waiting.status.available_replicas) == (None, 0)

    await make_ready(client, first)
    _, second = await pods(client, 2)
    await make_ready(client, second)
    full = await until(client, made, lambda found: found.status.available_replicas == 2)
    status = full.status
    assert (status.replicas, status.ready_replicas, status.current_replicas, status.updated_replicas) == (2, 2, 2, 2)
    assert status.current_revision == status.update_revision == revision.metadata.name
    assert status.collision_count == 0
    assert await events(client, made, 4) == [
        ("Normal", "SuccessfulCreate", message, "statefulset-controller")
        for message in (
            "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
            "Create Claim data-db-1 Pod db-1 in StatefulSet db success",
            "Create Pod db-0 in StatefulSet db successful",
            "Create Pod db-1 in StatefulSet db successful",
        )
    ]

    # The last one is replaced first, and only then the one before it.
    full.spec.template.spec.containers[0].image = "db:2"
    await client.patch(full)
    new = await eventually(lambda: client.find(Pod, "db-1"), lambda pod: pod is not None and is_fresh(pod))
    assert new is not None
    assert new.spec.containers[0].image == "db:2"
    assert (await client.get(Pod, "db-0")).metadata.uid == first.metadata.uid
    rolling = await until(client, made, lambda found: found.status.updated_replicas == 1)
    assert rolling.status.current_revision == revision.metadata.name != rolling.status.update_revision
    assert rolling.status.current_replicas == 1
    await make_ready(client, new)
    other = await eventually(lambda: client.find(Pod, "db-0"), lambda pod: pod is not None and is_fresh(pod))
    assert other is not None
    await make_ready(client, other)
    done = await until(client, made, lambda found: found.status.current_revision == found.status.update_revision)
    assert (done.status.current_replicas, done.status.updated_replicas) == (2, 2)
    numbers = sorted(one.revision for one in await client.list(ControllerRevision))
    assert numbers == [1, 2]
    assert ("Normal", "SuccessfulDelete", "Delete Pod db-1 in StatefulSet db successful", "statefulset-controller") in (
        await events(client, made, 6)
    )

    # A former template has its revision again, under a new number.
    done.spec.template.spec.containers[0].image = "db:1"
    done.spec.update_strategy.type = "OnDelete"
    done.spec.update_strategy.rolling_update = None
    await client.patch(done)
    back = await until(client, made, lambda found: found.status.update_revision == revision.metadata.name)
    assert back.status.updated_replicas is None
    assert sorted(one.revision for one in await client.list(ControllerRevision)) == [2, 3]
    await client.scale(StatefulSet, "db", replicas=1)
    (left,) = await pods(client, 1)
    assert left.metadata.uid == other.metadata.uid
    assert sorted(one.metadata.name for one in await client.list(PersistentVolumeClaim)) == ["data-db-0", "data-db-1"]


async def test_a_parallel_set_with_a_partition_and_claims_that_go(client: Client) -> None:
    made = await stateful(
        client,
        replicas=3,
        ordinals={"start": 5},
        podManagementPolicy="Parallel",
        updateStrategy={"rollingUpdate": {"partition": 2}},
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"},
    )
    found = await pods(client, 3)
    assert [pod.metadata.name for pod in found] == ["db-5", "db-6", "db-7"]
    for pod in found:
        await make_ready(client, pod)
    full = await until(client, made, lambda found: found.status.available_replicas == 3)

    async def owners() -> list[list[str]]:
        claims = await client.list(PersistentVolumeClaim)
        return [[one.kind for one in claim.metadata.owner_references] for claim in claims]

    await eventually(owners, lambda found: found == [["StatefulSet"]] * 3)
    full.spec.template.spec.containers[0].image = "db:2"
    await client.patch(full)
    await eventually(
        lambda: client.list(Pod), lambda found: [pod.metadata.name for pod in found if is_fresh(pod)] == ["db-7"]
    )
    await make_ready(client, await client.get(Pod, "db-7"))
    rolled = await until(client, made, lambda found: found.status.ready_replicas == 3)
    assert (rolled.status.updated_replicas, rolled.status.current_replicas) == (1, 2)
    await client.scale(StatefulSet, "db", replicas=2)
    await pods(client, 2)
    await eventually(
        lambda: client.list(PersistentVolumeClaim),
        lambda claims: (
            {one.metadata.name for one in claims if one.metadata.deletion_timestamp is None}
            == {"data-db-5", "data-db-6"}
        ),
    )


async def test_a_budget_lets_as_many_pods_go_as_it_allows(client: Client) -> None:
    spec: JSONObject = {"replicas": 3, "selector": {"matchLabels": {"app": "db"}}, "template": template()}
    containers = spec["template"]
    assert isinstance(containers, dict)
    containers["spec"] = {"containers": [{"name": "main", "image": "web"}]}
    budget = await client.create(
        from_json(
            PodDisruptionBudget,
            {
                "metadata": {"name": "budget"},
                "spec": {"maxUnavailable": "30%", "selector": {"matchLabels": {"app": "db"}}},
            },
        )
    )
    empty = await until(client, budget, lambda found: bool(found.status.conditions))
    (condition,) = empty.status.conditions
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "DisruptionAllowed",
        "False",
        "InsufficientPods",
        "",
    )
    assert ("Normal", "NoPods", "No matching pods found", "controllermanager") in await events(client, budget, 1)
    await client.create(from_json(ReplicaSet, {"metadata": {"name": "web"}, "spec": spec}))
    found = await pods(client, 3)
    for pod in found[:2]:
        await make_ready(client, pod)
    tight = await until(client, budget, lambda found: found.status.current_healthy == 2)
    numbers = tight.status
    assert (numbers.expected_pods, numbers.desired_healthy, numbers.disruptions_allowed) == (3, 2, 0)
    with pytest.raises(TooManyRequests) as refused:
        await client.evict(found[0])
    assert [cause.message for cause in refused.value.status.causes] == [
        "The disruption budget budget needs 2 healthy pods and has 2 currently"
    ]
    await make_ready(client, found[2])
    loose = await until(client, budget, lambda found: found.status.disruptions_allowed == 1)
    assert loose.status.observed_generation == loose.metadata.generation
    assert (loose.status.conditions[0].status, loose.status.conditions[0].reason) == ("True", "SufficientPods")
    await client.evict(found[0])
    after = await until(client, budget, lambda found: found.status.current_healthy == 2)
    assert (after.status.disruptions_allowed, after.status.conditions[0].reason) == (0, "InsufficientPods")
