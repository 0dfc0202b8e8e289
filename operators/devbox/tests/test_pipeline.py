"""The steps of the pipeline by a call of each, and the reconciler by a call of `reconcile`, on both control planes.

Nothing runs the pods, so their status is what the test says it is.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from operators.conftest import AsOperator
from operators.devbox import Devbox, DevboxReconciler, DevBoxRelease, DevboxV1Alpha1, JobCommitter, Options, setup
from operators.devbox.context import DevboxContext
from operators.devbox.names import AUTHORIZED_KEYS, FINALIZER, JWT_SECRET, PRIVATE_KEY, PUBLIC_KEY
from operators.devbox.network import headless, network, network_pipeline, node_port, ssh_gate, tailnet
from operators.devbox.phase import phase
from operators.devbox.pod import pod
from operators.devbox.reconciler import devbox_pipeline
from operators.devbox.secret import secret
from operators.devbox.ssh_keys import key_pair_of
from operators.devbox.tests.world import devbox
from operators.devbox.types import NetworkType, State

from kubewright import Client, Conflict, ControlPlane, Invalid, Manager, ObjectMeta, Request, Result
from kubewright.api.core.v1 import PersistentVolumeClaim, Pod, Secret, Service, ServicePort, ServiceSpec
from kubewright.client import MergePatch
from kubewright.patterns import Pipeline, StepOutcome, get_condition, set_condition
from kubewright.patterns.steps import AnyStep
from kubewright.testing import Install, RecordedEvents, count_requests

SERVICES: list[NetworkType] = ["NodePort", "SSHGate", "Tailnet", "NodePort"]


class Order:
    """The names of the steps in the order in which they run."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def started(self, step: AnyStep, context: object) -> None:
        self.names.append(step.name)

    def ended(self, step: AnyStep, context: object, outcome: StepOutcome, seconds: float) -> None:
        """Not recorded."""


class World:
    """One namespace of a server, and a reconciler whose manager does not run: it reads from the server."""

    def __init__(self, client: Client, manager: Manager) -> None:
        self.client = client
        self.manager = manager
        self.events = RecordedEvents()
        self.options = Options()
        self.committer = JobCommitter(manager.client, self.options)
        self.reconciler = DevboxReconciler(manager.client, self.events, self.committer, self.options)

    async def create(self, network: NetworkType = "NodePort") -> Devbox:
        """A Devbox that has its finalizer and is initialised, and nothing else."""
        made = devbox(namespace=self.client.namespace, network=network)
        made.metadata.finalizers = [FINALIZER]
        await self.client.create(made)
        assert await self.reconcile() == Result(requeue=True)
        return await self.read()

    async def reconcile(self) -> Result | None:
        return await self.reconciler.reconcile(Request(self.client.namespace, "it"))

    async def read(self) -> Devbox:
        return await self.client.get(Devbox, "it")

    async def context(self) -> DevboxContext:
        return DevboxContext(await self.read(), self.manager.client, self.events, self.committer, self.options)

    async def set_state(self, state: State) -> None:
        await self.client.patch(Devbox, "it", MergePatch({"spec": {"state": state}}))

    async def become(self, phase: Literal["Pending", "Running", "Failed"]) -> None:
        found = await self.client.get(Pod, "it")
        found.status.phase = phase
        await self.client.status.update(found)

    async def services(self) -> set[str]:
        return {each.metadata.name for each in await self.client.list(Service)}


@pytest.fixture
async def embedded_control_plane() -> AsyncIterator[ControlPlane]:
    """Without the controllers that nothing here depends on."""
    async with ControlPlane.embedded(controllers=["namespaces", "serviceaccounts"]) as plane:
        yield plane


@pytest.fixture
async def world(admin: Client, namespace: str, install: Install, as_operator: AsOperator) -> World:
    await install(Devbox, DevboxV1Alpha1, DevBoxRelease)
    return World(admin.in_namespace(namespace), Manager(await as_operator(setup), namespaces=[namespace]))


async def test_item_60_secret_network_pod_phase_in_this_order_and_the_phase_is_of_the_pod_of_this_pass(
    world: World,
) -> None:
    await world.create()
    order = Order()
    recorded = Pipeline[DevboxContext](*devbox_pipeline.steps, fail_fast=True, ready=None, hooks=[order])
    context = await world.context()
    await recorded.run(context)
    assert order.names == ["secret", "network", "pod", "phase"]
    assert context.pod is not None
    assert (context.object.status.phase, context.pod.metadata.name) == ("Pending", "it")

    await world.become("Running")
    context = await world.context()
    await recorded.run(context)
    assert context.object.status.phase == "Running"

    await world.set_state("Paused")
    context = await world.context()
    await recorded.run(context)
    # A pod that is on no node is gone as soon as it is deleted, in this very pass.
    assert (context.pod, context.object.status.phase) == (None, "Paused")


async def test_item_44_a_step_that_fails_ends_the_pipeline_and_what_there_is_is_reported(world: World) -> None:
    await world.create()
    foreign = Secret(metadata=devbox(namespace=world.client.namespace).metadata)
    await world.client.create(foreign)
    with pytest.raises(Exception, match="the Secret it exists and is not of this Devbox"):
        await world.reconcile()
    found = await world.read()
    assert {each.type: each.status for each in found.status.conditions} == {
        "SecretSynced": "False",
        "Ready": "False",
        "StateTransitionPending": "False",
        "CommitInProgress": "False",
    }
    assert found.status.phase == "Pending"
    assert (await world.services(), await world.client.list(Pod)) == (set(), [])
    assert [event.reason for event in world.events.warnings] == ["NameTaken"]
    assert (await world.client.get(Secret, "it")).data == {}

    await world.client.delete(foreign)
    await world.reconcile()
    assert await world.client.find(Pod, "it") is not None


async def test_item_45_each_step_is_called_alone_and_used_in_other_pipelines(world: World) -> None:
    await world.create()
    context = await world.context()
    await phase(context)
    assert context.object.status.phase == "Pending"
    assert await world.services() == set()
    await secret(context)
    assert [each.metadata.name for each in await world.client.list(Secret)] == ["it"]
    await Pipeline[DevboxContext](network, ready=None).run(context)
    assert await world.services() == {context.object.status.network.unique_id, "it-svc"}
    await Pipeline[DevboxContext](phase, pod, fail_fast=True).run(context)
    assert await world.client.find(Pod, "it") is not None
    assert await world.client.find(PersistentVolumeClaim, f"it-{context.object.status.content_id}") is not None


async def test_item_61_the_headless_service_is_always_there_and_node_ports_only_for_that_type(world: World) -> None:
    await world.create()
    for type_ in SERVICES:
        await world.client.patch(Devbox, "it", MergePatch({"spec": {"network": {"type": type_}}}))
        context = await world.context()
        order = Order()
        await Pipeline[DevboxContext](*network_pipeline.steps, fail_fast=True, ready=None, hooks=[order]).run(context)
        own = {"Tailnet": ["tailnet"], "SSHGate": ["ssh_gate"]}.get(type_, [])
        assert order.names == ["headless", *own, "node_port"]
        unique_id = context.object.status.network.unique_id
        assert await world.services() == {unique_id, *(["it-svc"] if type_ == "NodePort" else [])}
        assert (context.object.status.network.node_port > 0) == (type_ == "NodePort")
    service = await world.client.get(Service, unique_id)
    assert (service.spec.cluster_ip, service.spec.ports) == ("None", [])
    assert service.spec.selector == service.metadata.labels
    with count_requests(world.manager.client) as requests:
        await tailnet(context)
        await ssh_gate(context)
    assert requests.attempts == []


async def test_item_62_a_service_that_is_gone_already_is_no_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.create()
    context = await world.context()
    await headless(context)
    await node_port(context)
    context.object.spec.network.type = "SSHGate"
    delete = context.client.delete

    async def overtaken(target: Service, *, uid: str, missing_ok: bool = False) -> None:
        await world.client.delete(target)
        await delete(target, uid=uid, missing_ok=missing_ok)

    monkeypatch.setattr(context.client, "delete", overtaken)
    await node_port(context)
    assert await world.services() == {context.object.status.network.unique_id}
    assert context.object.status.network.node_port == 0
    await node_port(context)


async def test_a_service_that_a_user_has_put_in_the_place_of_the_one_to_delete_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.create()
    context = await world.context()
    await node_port(context)
    context.object.spec.network.type = "SSHGate"
    delete = context.client.delete
    theirs = Service(metadata=ObjectMeta(name="it-svc"), spec=ServiceSpec(ports=[ServicePort(port=80)]))

    async def overtaken(target: Service, *, uid: str = "", missing_ok: bool = False) -> None:
        await world.client.delete(target)
        await world.client.create(theirs)
        await delete(target, uid=uid or None, missing_ok=missing_ok)

    monkeypatch.setattr(context.client, "delete", overtaken)
    with pytest.raises(Conflict):
        await node_port(context)
    assert await world.services() == {"it-svc"}
    await node_port(context)
    assert await world.services() == {"it-svc"}


async def test_item_63_the_type_of_the_network_is_set_although_another_client_writes_the_status(world: World) -> None:
    await world.create("SSHGate")
    client = world.client

    class Overtaken(DevboxReconciler):
        async def converge(self, devbox: Devbox) -> Result | None:
            result = await super().converge(devbox)
            other = await client.get(Devbox, "it")
            set_condition(other, "Theirs", True, "Done")
            await client.status.patch(other)
            return result

    world.reconciler = Overtaken(world.manager.client, world.events, world.committer, world.options)
    assert (await world.read()).status.network.type == "NodePort"
    with count_requests(world.manager.client) as requests:
        await world.reconcile()
    found = await world.read()
    assert found.status.network.type == "SSHGate"
    assert get_condition(found, "Theirs") is not None
    assert "409" in [each.code for each in requests.attempts]


async def test_item_64_the_secret_is_made_once_and_its_keys_belong_together(world: World) -> None:
    await world.create()
    await world.reconcile()
    first = await world.client.get(Secret, "it")
    pair = key_pair_of(b64decode(first.data[PRIVATE_KEY]).decode())
    assert pair is not None
    assert b64decode(first.data[PUBLIC_KEY]).decode() == pair.public
    assert first.data[AUTHORIZED_KEYS] == first.data[PUBLIC_KEY]
    assert len(b64decode(first.data[JWT_SECRET])) == 32
    await world.reconcile()
    second = await world.client.get(Secret, "it")
    assert second.metadata.resource_version == first.metadata.resource_version


async def test_the_status_is_written_once_and_not_at_all_when_nothing_changed(world: World) -> None:
    await world.create()
    with count_requests(world.manager.client) as requests:
        await world.reconcile()
    status = "PATCH /apis/devbox.sealos.io/v1alpha2/namespaces/{namespace}/devboxes/{name}/status"
    assert requests.by_path[status] == 1
    before = await world.read()
    with count_requests(world.manager.client) as requests:
        assert await world.reconcile() is None
    assert requests.by_path[status] == 0
    assert (await world.read()).metadata.resource_version == before.metadata.resource_version


async def test_a_state_cannot_be_changed_before_the_devbox_is_initialised(world: World) -> None:
    """Everything else can: a Devbox is often edited right after its creation."""
    for name in ("a.b", "1st", "n" * 57):
        with pytest.raises(Invalid, match="the name must have at most 56 characters, begin with a letter"):
            await world.client.create(devbox(name=name, namespace=world.client.namespace))
    created = await world.client.create(devbox(namespace=world.client.namespace))
    created.spec.state = "Paused"
    with pytest.raises(Invalid, match=r"spec.state.*before the operator has initialised"):
        await world.client.patch(created)
    created = await world.read()
    created.spec.image = "dev:2"
    created.spec.config.working_dir = "/work"
    await world.client.patch(created)

    await world.reconcile()
    await world.reconcile()
    await world.set_state("Paused")
    await world.reconcile()
    paused = await world.read()
    assert (paused.status.phase, paused.status.record.base_image) == ("Paused", "dev:2")


async def test_a_state_cannot_be_changed_while_the_content_is_committed(world: World) -> None:
    created = await world.create()
    created.status.record.commit_status = "Committing"
    await world.client.status.patch(created)
    for state in ("Paused", "Stopped"):
        created = await world.read()
        created.spec.state = state
        with pytest.raises(Invalid, match=r"spec.state.*while the content is committed"):
            await world.client.patch(created)
    created = await world.read()
    created.status.record.commit_status = "Failed"
    await world.client.status.patch(created)
    await world.set_state("Stopped")


def test_the_diagrams_of_the_readme_are_those_of_the_code() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    for pipeline in (devbox_pipeline, network_pipeline):
        assert f"```mermaid\n{pipeline.diagram()}```\n" in readme
