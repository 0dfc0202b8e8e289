from __future__ import annotations

from operators.builtins import PodSet, PodSetSpec, setup
from operators.conftest import AsOperator

from kubewright import Client, Field, Manager, ObjectMeta
from kubewright.api.apps.v1 import ReplicaSet, ReplicaSetSpec
from kubewright.api.core.v1 import Container, Pod, PodSchedulingGate, PodSpec, PodTemplateSpec
from kubewright.api.meta import LabelSelector
from kubewright.client.wait import deleted
from kubewright.testing import Install, Running, count_requests, settled

TEMPLATE = PodTemplateSpec(
    metadata=ObjectMeta(labels={"app": "web"}),
    # Kept from being scheduled, so that nothing happens to the pods but what is done here.
    spec=PodSpec(
        containers=[Container(name="app", image="app:1")],
        scheduling_gates=[PodSchedulingGate(name="test.kubewright.dev/stays")],
    ),
)


async def names(client: Client) -> set[str]:
    return {pod.metadata.name for pod in await client.list(Pod) if pod.metadata.deletion_timestamp is None}


async def test_item_19_missing_pods_are_created_and_only_those(
    admin: Client, namespace: str, install: Install, running: Running, as_operator: AsOperator
) -> None:
    """Five wanted, three there; the events of the two that are created lead to nothing; a deleted one comes back."""
    await install(PodSet)
    client = admin.in_namespace(namespace)
    owner = await client.create(PodSet(metadata=ObjectMeta(name="set"), spec=PodSetSpec(replicas=5, template=TEMPLATE)))
    pod = Pod(
        metadata=ObjectMeta(generate_name="set-", labels={"app": "web"}, owner_references=[owner.as_owner()]),
        spec=TEMPLATE.spec,
    )
    present = {(await client.create(pod)).metadata.name for _ in range(3)}
    manager = Manager(await as_operator(setup), namespaces=[namespace], webhook_address="0")
    setup(manager)
    async with running(manager):
        await settled(manager, quiet=0.3)
        found = await client.list(Pod)
        assert len(found) == 5
        assert {each.metadata.name for each in found} > present
        assert [each.metadata.owner_references for each in found] == [[owner.as_owner()]] * 5

        with count_requests(manager.live) as requests:
            await client.delete(Pod, min(present), grace_period=0)
            await settled(manager, quiet=0.3)
        assert len(await names(client)) == 5
        assert min(present) not in await names(client)
        assert requests.by_path["POST /api/v1/namespaces/{namespace}/pods"] == 1


async def test_surplus_pods_are_deleted_and_counted(
    admin: Client, namespace: str, install: Install, running: Running, as_operator: AsOperator
) -> None:
    await install(PodSet)
    client = admin.in_namespace(namespace)
    manager = Manager(await as_operator(setup), namespaces=[namespace], webhook_address="0")
    setup(manager)
    async with running(manager):
        owner = await client.create(
            PodSet(metadata=ObjectMeta(name="set"), spec=PodSetSpec(replicas=4, template=TEMPLATE))
        )
        await client.wait_for(owner, Field("status.replicas").equals(4), timeout=30)
        await client.scale(owner, replicas=1)
        await client.wait_for(owner, Field("status.replicas").equals(1), timeout=30)
        await settled(manager, quiet=0.3)
        assert len(await names(client)) == 1
        await client.delete(owner)
        await client.wait_for(owner, deleted, timeout=30)


async def test_replica_sets_are_labelled_once(
    admin: Client, namespace: str, install: Install, running: Running, as_operator: AsOperator
) -> None:
    await install(PodSet)
    client = admin.in_namespace(namespace)
    manager = Manager(await as_operator(setup), namespaces=[namespace], webhook_address="0")
    setup(manager)
    async with running(manager):
        spec = ReplicaSetSpec(replicas=0, selector=LabelSelector(match_labels={"app": "web"}), template=TEMPLATE)
        metadata = ObjectMeta(name="set", labels={"team": "blue"})
        created = await client.create(ReplicaSet(metadata=metadata, spec=spec))
        labelled = await client.wait_for(created, Field("metadata.labels.hello").equals("world"), timeout=30)
        assert labelled is not None
        assert labelled.metadata.labels == {"team": "blue", "hello": "world"}
        await settled(manager, quiet=0.3)
        with count_requests(manager.live) as requests:
            labelled.metadata.labels["team"] = "red"
            await client.patch(labelled)
            await settled(manager, quiet=0.3)
        assert requests.writes == 0
