"""The reconciler alone: the state before, one call of `reconcile`, the state after.

Nothing runs the pods, so their status is what the test says it is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import pytest
from operators.conftest import AsOperator
from operators.podmanager import PodManager, PodManagerReconciler, PodManagerSpec, PodManagerV1Beta1, setup

from kubewright import (
    AlreadyExists,
    Client,
    Dynamic,
    Invalid,
    Manager,
    ObjectMeta,
    Request,
    Result,
)
from kubewright.api.codec import from_json, to_json
from kubewright.api.core.v1 import Container, Pod, PodCondition, PodSpec
from kubewright.api.markers import JSONValue
from kubewright.client import MergePatch
from kubewright.manager.metrics import Metrics
from kubewright.patterns import remove_finalizer
from kubewright.testing import Install, RecordedEvents

FINALIZER = PodManagerReconciler.finalizer
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class World:
    """One namespace of a server, a reconciler whose manager does not run, and the events it records."""

    def __init__(self, client: Client, manager: Manager, namespace: str) -> None:
        self.client = client
        self.manager = manager
        self.namespace = namespace
        self.events = RecordedEvents()
        reconciles = Metrics().counter("reconciles", "Of this test", labels=("result",))
        self.reconciler = PodManagerReconciler(manager.client, self.events, reconciles)

    async def reconcile(self, name: str = "it") -> Result | None:
        return await self.reconciler.reconcile(Request(self.namespace, name))

    async def create(self, replicas: int = 3) -> PodManager:
        """A manager that has its finalizer and its pods, none of which is ready."""
        spec = PodManagerSpec(image="app:1", replicas=replicas)
        await self.client.create(PodManager(metadata=ObjectMeta(name="it", finalizers=[FINALIZER]), spec=spec))
        await self.reconcile()
        return await self.read()

    async def read(self) -> PodManager:
        return await self.client.get(PodManager, "it")

    async def scale(self, replicas: int) -> None:
        await self.client.patch(PodManager, "it", MergePatch({"spec": {"replicas": replicas}}))

    async def become(self, name: str, phase: Literal["Pending", "Running", "Failed"], ready: str = "False") -> None:
        """Give a pod that status."""
        pod = await self.client.get(Pod, name)
        pod.status.phase = phase
        pod.status.conditions = [PodCondition(type="Ready", status=ready)]
        await self.client.status.update(pod)

    async def all_become_ready(self) -> None:
        for name in await self.pods():
            await self.become(name, "Running", "True")

    async def set_image(self, image: str) -> None:
        await self.client.patch(PodManager, "it", MergePatch({"spec": {"image": image}}))

    async def images(self) -> dict[str, str | None]:
        return {pod.metadata.name: pod.spec.containers[0].image for pod in await self.client.list(Pod)}

    async def pods(self) -> set[str]:
        return {pod.metadata.name for pod in await self.client.list(Pod) if pod.metadata.deletion_timestamp is None}


@pytest.fixture
async def world(admin: Client, namespace: str, install: Install, as_operator: AsOperator) -> World:
    await install(PodManager, PodManagerV1Beta1)
    return World(admin.in_namespace(namespace), Manager(await as_operator(setup)), namespace)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"image": "app:1", "replicas": 0}, "spec.replicas"),
        ({"replicas": 1}, "spec.image"),
        ({"image": ""}, "spec.image"),
    ],
)
async def test_item_24_the_schema_refuses_no_replicas_and_no_image(world: World, spec: JSONValue, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        await world.client.create(untyped(spec))


async def test_item_24_three_replicas_by_default(world: World) -> None:
    created = await world.client.create(untyped({"image": "app:1"}))
    assert created.get("spec") == {"image": "app:1", "replicas": 3}


def untyped(spec: JSONValue) -> Dynamic:
    kind = Dynamic.of("apps.mycompany.com/v1", "PodManager")
    return from_json(kind, {"metadata": {"name": "it"}, "spec": spec})


async def test_item_25_status_is_separated_from_spec(world: World) -> None:
    created = await world.create()
    created.spec.image = "app:2"
    created.status.ready_replicas = 77
    updated = await world.client.update(created)
    assert (updated.spec.image, updated.status.ready_replicas) == ("app:2", 0)

    updated.spec.image = "app:3"
    updated.status.ready_replicas = 77
    updated = await world.client.status.update(updated)
    assert (updated.spec.image, updated.status.ready_replicas) == ("app:2", 77)


async def test_item_26_a_missing_object_is_no_error(world: World) -> None:
    assert await world.reconcile() is None
    assert world.events.calls == []


async def test_item_27_the_finalizer_comes_first(world: World) -> None:
    spec = PodManagerSpec(image="app:1")
    created = await world.client.create(PodManager(metadata=ObjectMeta(name="it"), spec=spec))

    assert await world.reconcile() == Result(requeue=True)

    changed = await world.read()
    assert (created.metadata.finalizers, changed.metadata.finalizers) == ([], [FINALIZER])
    for each in (created, changed):
        each.metadata.finalizers, each.metadata.managed_fields, each.metadata.resource_version = [], [], ""
    assert to_json(changed) == to_json(created)
    assert await world.pods() == set()


async def test_item_28_pods_deleted_by_others_do_not_keep_the_object(world: World) -> None:
    await world.create()
    admin = world.client

    class Overtaken(PodManagerReconciler):
        async def delete(self, manager: PodManager, pod: Pod) -> None:
            await admin.delete(pod, grace_period=0)
            await super().delete(manager, pod)

    world.reconciler = Overtaken(world.manager.client, world.events, world.reconciler.reconciles)
    await world.client.delete(PodManager, "it")

    assert await world.reconcile() == Result(requeue_after=1.0)
    assert await world.reconcile() is None
    assert await world.client.find(PodManager, "it") is None
    assert await world.client.list(Pod) == []


async def test_item_28_a_finalizer_of_somebody_else_is_kept(world: World) -> None:
    created = await world.create()
    created.metadata.finalizers.append("test.kubewright.dev/theirs")
    await world.client.update(created)
    await world.client.delete(PodManager, "it")

    await world.reconcile()
    await world.reconcile()

    assert (await world.read()).metadata.finalizers == ["test.kubewright.dev/theirs"]
    assert await world.reconcile() is None
    await world.client.patch(PodManager, "it", MergePatch({"metadata": {"finalizers": None}}))


async def test_item_28_a_finalizer_that_is_removed_meanwhile_does_not_come_back(world: World) -> None:
    created = await world.create()
    created.metadata.finalizers.append("test.kubewright.dev/theirs")
    await world.client.update(created)
    await world.client.delete(PodManager, "it")
    await world.reconcile()
    stale = await world.read()
    await world.client.patch(PodManager, "it", MergePatch({"metadata": {"finalizers": [FINALIZER]}}))

    await remove_finalizer(world.manager.client, stale, FINALIZER)

    assert await world.client.find(PodManager, "it") is None


async def test_item_29_labels_and_no_adoption_from_a_predecessor(world: World) -> None:
    labels = {"app": "my-app", "podmanager": "it", "podmanager-uid": "a-predecessor"}
    await world.client.create(
        Pod(
            metadata=ObjectMeta(name="it-7", labels=labels),
            spec=PodSpec(containers=[Container(name="app", image="app:0")]),
        )
    )
    created = await world.create(replicas=1)

    assert created.status.current_replicas == 1
    pod = await world.client.get(Pod, "it-0")
    assert pod.metadata.labels == {"app": "my-app", "podmanager": "it", "podmanager-uid": created.metadata.uid}
    assert [(container.name, container.image) for container in pod.spec.containers] == [("app", "app:1")]
    assert await world.pods() == {"it-0", "it-7"}


async def test_item_30_gaps_are_filled(world: World) -> None:
    await world.create()
    kept = {pod.metadata.uid for pod in await world.client.list(Pod) if pod.metadata.name != "it-0"}
    await world.client.delete(Pod, "it-0", grace_period=0)
    world.events.calls.clear()

    await world.reconcile()

    assert await world.pods() == {"it-0", "it-1", "it-2"}
    assert kept < {pod.metadata.uid for pod in await world.client.list(Pod)}
    assert [(event.reason, event.note) for event in world.events.calls] == [("Created", "Created pod it-0")]


async def test_item_30_a_pod_that_has_ended_is_replaced(world: World) -> None:
    await world.create(replicas=1)
    await world.become("it-0", "Failed")

    await world.reconcile()
    assert await world.client.list(Pod) == []
    await world.reconcile()

    assert (await world.client.get(Pod, "it-0")).status.phase == "Pending"


@pytest.mark.parametrize(
    ("ready", "kept"),
    [
        (["it-0", "it-1", "it-2", "it-3", "it-4"], {"it-0", "it-1"}),
        (["it-1", "it-3", "it-4"], {"it-1", "it-3"}),
        (["it-4"], {"it-0", "it-4"}),
    ],
)
async def test_item_31_ready_pods_of_the_lowest_index_stay(world: World, ready: list[str], kept: set[str]) -> None:
    await world.create(replicas=5)
    for name in ready:
        await world.become(name, "Running", "True")
    await world.scale(2)

    await world.reconcile()

    assert await world.pods() == kept


async def test_item_33_pods_are_controlled_by_their_manager(world: World) -> None:
    created = await world.create(replicas=1)
    (owner,) = (await world.client.get(Pod, "it-0")).metadata.owner_references
    assert (owner.kind, owner.name, owner.uid) == ("PodManager", "it", created.metadata.uid)
    assert (owner.controller, owner.block_owner_deletion) == (True, True)


async def test_item_35_a_name_that_is_taken_is_an_event_and_retried(world: World) -> None:
    spec = PodSpec(containers=[Container(name="app", image="app:1")])
    await world.client.create(Pod(metadata=ObjectMeta(name="it-0"), spec=spec))

    with pytest.raises(AlreadyExists):
        await world.create(replicas=1)

    (event,) = world.events.warnings
    assert event.reason == "Failed"
    assert event.note.startswith("Failed to create pod it-0: ")
    await world.client.delete(Pod, "it-0", grace_period=0)
    await world.reconcile()
    assert (await world.read()).status.current_replicas == 1


async def test_item_36_and_37_a_refused_creation_shows_in_counts_and_condition(world: World) -> None:
    await world.create(replicas=2)
    await world.all_become_ready()
    await world.reconcile()
    assert [each.status for each in (await world.read()).status.conditions] == ["True"]
    await world.client.delete(Pod, "it-0", grace_period=0)
    spec = PodSpec(containers=[Container(name="app", image="app:1")])
    await world.client.create(Pod(metadata=ObjectMeta(name="it-0"), spec=spec))

    with pytest.raises(AlreadyExists):
        await world.reconcile()

    status = (await world.read()).status
    assert (status.current_replicas, status.ready_replicas) == (1, 1)
    ((verdict, reason, message),) = [(each.status, each.reason, each.message) for each in status.conditions]
    assert (verdict, reason) == ("False", "Failed")
    assert message.startswith("1 of 2 pods are ready: ")
    assert "already exists" in message


async def test_a_new_image_is_rolled_out_with_at_most_one_pod_less(world: World) -> None:
    await world.create(replicas=3)
    await world.all_become_ready()
    await world.reconcile()
    await world.set_image("app:2")

    steps = []
    for _ in range(3):
        await world.reconcile()
        steps.append(await world.images())
        await world.reconcile()
        await world.reconcile()
        steps.append(await world.images())
        assert (await world.read()).status.ready_replicas == 2
        assert [each.status for each in (await world.read()).status.conditions] == ["False"]
        await world.all_become_ready()

    assert steps == [
        {"it-0": "app:1", "it-1": "app:1"},
        {"it-0": "app:1", "it-1": "app:1", "it-2": "app:2"},
        {"it-0": "app:1", "it-2": "app:2"},
        {"it-0": "app:1", "it-1": "app:2", "it-2": "app:2"},
        {"it-1": "app:2", "it-2": "app:2"},
        {"it-0": "app:2", "it-1": "app:2", "it-2": "app:2"},
    ]
    await world.reconcile()
    assert await world.images() == steps[-1]
    assert [each.status for each in (await world.read()).status.conditions] == ["True"]


async def test_pods_of_an_old_image_that_are_not_ready_are_replaced_at_once(world: World) -> None:
    await world.create(replicas=3)
    await world.become("it-1", "Running", "True")
    await world.set_image("app:2")

    await world.reconcile()
    await world.reconcile()

    assert await world.images() == {"it-0": "app:2", "it-1": "app:1", "it-2": "app:2"}


async def test_item_29_a_name_that_is_too_long_for_a_label_is_refused(world: World) -> None:
    metadata = ObjectMeta(name="n" * 64)
    with pytest.raises(Invalid, match="the name must have at most 63 characters, as it is a label of each pod"):
        await world.client.create(PodManager(metadata=metadata, spec=PodManagerSpec(image="app:1", replicas=1)))


async def test_item_29_a_name_of_the_greatest_length_has_pods(world: World) -> None:
    name = "n" * 63
    metadata = ObjectMeta(name=name, finalizers=[FINALIZER])
    await world.client.create(PodManager(metadata=metadata, spec=PodManagerSpec(image="app:1", replicas=1)))

    await world.reconcile(name)

    assert await world.pods() == {f"{name}-0"}


async def test_item_36_counts_are_of_what_is_left_after_the_reconcile(world: World) -> None:
    created = await world.create(replicas=4)
    assert (created.status.current_replicas, created.status.ready_replicas) == (4, 0)
    for name, ready in {"it-0": "True", "it-1": "False", "it-2": "True"}.items():
        await world.become(name, "Running", ready)
    await world.become("it-3", "Pending", "True")
    terminating = await world.client.get(Pod, "it-2")
    terminating.metadata.finalizers.append("test.kubewright.dev/stays")
    await world.client.delete(await world.client.update(terminating), grace_period=0)

    await world.reconcile()

    status = (await world.read()).status
    assert (status.current_replicas, status.ready_replicas) == (3, 1)
    assert status.observed_generation == created.metadata.generation
    await world.client.patch(Pod, "it-2", MergePatch({"metadata": {"finalizers": None}}))


async def test_item_37_one_ready_condition_whose_time_is_that_of_its_last_flip(world: World) -> None:
    await world.create(replicas=2)
    created = await world.read()
    assert [(each.type, each.status) for each in created.status.conditions] == [("Ready", "False")]
    created.status.conditions[0].last_transition_time = LONG_AGO
    await world.client.status.update(created)

    await world.become("it-0", "Running", "True")
    for _ in range(20):
        await world.reconcile()
    (condition,) = (await world.read()).status.conditions
    assert (condition.status, condition.last_transition_time) == ("False", LONG_AGO)
    assert condition.message == "1 of 2 pods are ready"

    await world.become("it-1", "Running", "True")
    await world.reconcile()
    (condition,) = (await world.read()).status.conditions
    assert (condition.status, condition.reason) == ("True", "AllPodsReady")
    assert condition.last_transition_time > LONG_AGO


async def test_item_38_the_next_reconcile_is_in_thirty_seconds(world: World) -> None:
    await world.create()
    assert await world.reconcile() == Result(requeue_after=30.0)
