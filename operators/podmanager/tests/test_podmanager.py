"""The operator as a whole: its manager runs, pods seem to run, and people change things meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from operators.conftest import AsOperator
from operators.podmanager import PodManager, PodManagerReconciler, PodManagerSpec, PodManagerV1Beta1, setup
from operators.podmanager.reconciler import is_ready

from kubewright import Client, ControlPlane, Manager, ObjectMeta, Request, Result
from kubewright.api.core.v1 import Pod
from kubewright.api.events.v1 import Event
from kubewright.api.rbac.v1 import ClusterRole, PolicyRule, RoleBinding, RoleRef, Subject
from kubewright.client import MergePatch
from kubewright.client.wait import Field, condition, deleted, exists
from kubewright.testing import Install, count_requests, settled
from kubewright.testing.namespaces import unique_name

Running = Callable[[Manager], AbstractAsyncContextManager[None]]

# Well before an object is reconciled again without a reason, which is after 30 s.
SOON = 20

pytestmark = pytest.mark.usefixtures("nodes")


@pytest.fixture
async def client(admin: Client, namespace: str, install: Install) -> Client:
    """A user of the operator."""
    await install(PodManager, PodManagerV1Beta1)
    return admin.in_namespace(namespace)


@pytest.fixture
async def manager(client: Client, namespace: str, as_operator: AsOperator) -> Manager:
    """Set up, but not running."""
    manager = Manager(await as_operator(setup), namespaces=[namespace], webhook_address="0")
    setup(manager)
    return manager


async def create(client: Client, replicas: int) -> PodManager:
    """One whose pods are all ready."""
    spec = PodManagerSpec(image="app:1", replicas=replicas)
    created = await client.create(PodManager(metadata=ObjectMeta(name="it"), spec=spec))
    return await ready(client, created)


async def ready(client: Client, created: PodManager) -> PodManager:
    found = await client.wait_for(created, condition("Ready"), timeout=SOON)
    assert found is not None
    return found


async def pods(client: Client) -> dict[str, str]:
    """The uids of all pods, by name."""
    return {pod.metadata.name: pod.metadata.uid for pod in await client.list(Pod)}


async def events(client: Client, regarding: PodManager, wanted: int) -> list[tuple[str | None, ...]]:
    """The first so many events about an object, sorted; they are written a little after what they are about."""
    found: dict[str, tuple[str | None, ...]] = {}
    async with asyncio.timeout(SOON), client.watch(Event, initial_events=True) as watched:
        async for each in watched:
            if each.type == "ADDED" and each.object.regarding.uid == regarding.metadata.uid:
                event = each.object
                found[event.metadata.name] = (event.type, event.reason, event.note)
            if len(found) == wanted:
                break
    return sorted(found.values(), key=str)


async def test_pods_appear_become_ready_and_are_counted(client: Client, manager: Manager, running: Running) -> None:
    async with running(manager):
        created = await create(client, replicas=3)

    assert (created.status.current_replicas, created.status.ready_replicas) == (3, 3)
    assert [(each.type, each.status) for each in created.status.conditions] == [("Ready", "True")]
    assert (await pods(client)).keys() == {"it-0", "it-1", "it-2"}
    assert (await client.get_scale(created)).status.selector == created.status.selector


async def test_item_28_deletion_takes_the_pods_along(client: Client, manager: Manager, running: Running) -> None:
    async with running(manager):
        created = await create(client, replicas=3)
        await client.delete(Pod, "it-1")
        await client.delete(created)
        assert await client.wait_for(created, deleted, timeout=SOON) is None

    assert await pods(client) == {}


async def test_item_32_a_deleted_pod_is_back_well_before_the_next_requeue(
    client: Client, manager: Manager, running: Running
) -> None:
    async with running(manager):
        created = await create(client, replicas=3)
        before = await pods(client)
        await client.delete(Pod, "it-0", uid=before["it-0"])
        another = Field("metadata.uid").satisfies(lambda uid: uid not in (None, before["it-0"]), "is another")
        await client.wait_for(Pod, "it-0", another, timeout=SOON)
        await ready(client, created)

    after = await pods(client)
    assert after.keys() == {"it-0", "it-1", "it-2"}
    assert {name for name in before if before[name] == after[name]} == {"it-1", "it-2"}


async def test_item_33_without_the_finalizer_the_garbage_collector_removes_the_pods(
    client: Client, manager: Manager, running: Running
) -> None:
    async with running(manager):
        created = await create(client, replicas=2)
    await client.patch(PodManager, "it", MergePatch({"metadata": {"finalizers": None}}))

    await client.delete(created)

    for name in ("it-0", "it-1"):
        assert await client.wait_for(Pod, name, deleted, timeout=60) is None


async def test_item_34_an_event_for_each_pod_created_and_deleted(
    client: Client, manager: Manager, running: Running
) -> None:
    async with running(manager):
        created = await create(client, replicas=2)
        await client.scale(created, replicas=1)
        assert await client.wait_for(Pod, "it-1", deleted, timeout=SOON) is None
        recorded = await events(client, created, 3)

    assert recorded == [
        ("Normal", "Created", "Created pod it-0"),
        ("Normal", "Created", "Created pod it-1"),
        ("Normal", "Deleted", "Deleted pod it-1"),
    ]


async def test_item_35_a_refused_creation_is_an_event_and_retried(
    control_plane: ControlPlane, client: Client, namespace: str, running: Running
) -> None:
    user = control_plane.add_user(unique_name("podmanager"))
    name = user.name
    may_read = PolicyRule(api_groups=[""], resources=["pods"], verbs=["get", "list", "watch"])
    rules = [
        may_read,
        PolicyRule(api_groups=["apps.mycompany.com"], resources=["*"], verbs=["*"]),
        PolicyRule(api_groups=["events.k8s.io"], resources=["events"], verbs=["create", "patch"]),
    ]
    role = await client.create(ClusterRole(metadata=ObjectMeta(name=name), rules=rules))
    await client.create(
        RoleBinding(
            metadata=ObjectMeta(name=name),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name),
            subjects=[Subject(api_group="rbac.authorization.k8s.io", kind="User", name=name)],
        )
    )
    async with control_plane.client(user) as own:
        manager = Manager(own, namespaces=[namespace], webhook_address="0", preflight=False)
        setup(manager)
        async with running(manager):
            spec = PodManagerSpec(image="app:1", replicas=1)
            created = await client.create(PodManager(metadata=ObjectMeta(name="it"), spec=spec))
            ((type_, reason, note),) = await events(client, created, 1)
            may_read.verbs.append("create")
            role.rules = rules
            await client.update(role)
            await client.wait_for(Pod, "it-0", exists, timeout=SOON)
    await client.delete(role)

    assert (type_, reason) == ("Warning", "Failed")
    assert note is not None
    assert note.startswith("Failed to create pod it-0: ")
    assert f'User "{name}" cannot create resource "pods"' in note


async def test_a_new_image_reaches_every_pod_while_all_but_one_stay_ready(
    client: Client, manager: Manager, running: Running
) -> None:
    least = 3
    async with running(manager):
        created = await create(client, replicas=3)
        found = {pod.metadata.name: pod for pod in await client.list(Pod)}
        created.spec.image = "app:2"
        await client.update(created)
        async with asyncio.timeout(SOON), client.watch(Pod, initial_events=True) as watched:
            async for each in watched:
                if each.type == "BOOKMARK":
                    continue
                found[each.object.metadata.name] = each.object
                if each.type == "DELETED":
                    del found[each.object.metadata.name]
                least = min(least, sum(is_ready(pod) for pod in found.values()))
                if len(found) == 3 and all(
                    is_ready(pod) and pod.spec.containers[0].image == "app:2" for pod in found.values()
                ):
                    break
        await client.wait_for(created, condition("Ready") & Field("status.observedGeneration").equals(2), timeout=SOON)

    assert least == 2


async def test_a_settled_object_costs_no_requests(
    client: Client, namespace: str, manager: Manager, running: Running
) -> None:
    async with running(manager):
        created = await create(client, replicas=3)
        await events(client, created, 3)
        await settled(manager)
        reconciles = manager.metrics.counter(
            "podmanager_reconcile_total", "Reconciles of PodManagers by result", labels=("result",)
        )
        reconciler = PodManagerReconciler(manager.client, manager.recorder("podmanager"), reconciles)
        with count_requests(manager.live) as requests:
            for _ in range(20):
                assert await reconciler.reconcile(Request(namespace, "it")) == Result(requeue_after=30.0)
        assert requests.attempts == []

    assert (await client.get(PodManager, "it")).metadata.resource_version == created.metadata.resource_version


async def test_item_39_reconciles_are_counted_by_result(
    client: Client, namespace: str, manager: Manager, running: Running
) -> None:
    async with running(manager):
        await create(client, replicas=1)
        text = manager.metrics.render().decode()
    assert 'podmanager_reconcile_total{result="requeue"} 1' in text
    assert 'podmanager_reconcile_total{result="success"}' in text
