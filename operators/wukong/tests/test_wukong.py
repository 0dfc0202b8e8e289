"""The acceptance items, on both control planes, with exactly the role of the operator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256

import pytest
from operators.conftest import AsOperator
from operators.wukong import Options, Wukong, WukongReconciler, setup
from operators.wukong.bridges import users_of
from operators.wukong.cdi import DataVolume
from operators.wukong.context import NodeNetworks, NoNodeNetworks
from operators.wukong.failures import BridgeFailed
from operators.wukong.kubevirt import VirtualMachine, VirtualMachineInstance
from operators.wukong.multus import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from operators.wukong.nmstate import NodeNetworkConfigurationPolicy
from operators.wukong.tests.worlds import World, verdict
from operators.wukong.types import CloudInitUser, Network, StartStrategy

from kubewright import Client, Forbidden, Manager, ObjectMeta, Quantity, Result, condition
from kubewright.api.apiextensions.v1 import CustomResourceDefinition, JSONSchemaProps
from kubewright.api.core.v1 import PersistentVolumeClaim, Secret
from kubewright.client import MergePatch
from kubewright.client.errors import Status
from kubewright.client.wait import deleted
from kubewright.manifest.crd import definition_of
from kubewright.patterns import is_true
from kubewright.testing import RecordedEvents, Running, count_requests, settled
from kubewright.testing.definitions import redefine

LAN = Network(name="lan", type="bridge", vlan_id=7)
IMAGE = "ubuntu:24.04"
CHILDREN = (VirtualMachine, DataVolume, PersistentVolumeClaim, NetworkAttachmentDefinition, Secret)

pytestmark = pytest.mark.usefixtures("world")


class Direct:
    """A reconciler that is called by the test, and reads from the server."""

    def __init__(self, world: World, nodes: NodeNetworks | None = None, *, nodes_first: bool = True) -> None:
        self.events = RecordedEvents()
        client = world.manager.client
        self.reconciler = WukongReconciler(client, self.events, nodes or NoNodeNetworks(), nodes_first=nodes_first)

    async def reconcile(self, wukong: Wukong) -> Result | None:
        return await self.reconciler.reconcile(wukong.key)

    async def begin(self, wukong: Wukong) -> None:
        """Until its finalizer is on and its phase is set."""
        assert await self.reconcile(wukong) == Result(requeue=True)
        assert await self.reconcile(wukong) == Result(requeue=True)


@asynccontextmanager
async def without_rules(admin: Client) -> AsyncIterator[None]:
    """As before there was any rule: what is stored may say anything."""
    lenient = definition_of(Wukong)
    strip(lenient)
    await redefine(admin, lenient)
    try:
        yield
    finally:  # or else the tests of the rules, on the same server, would fail after this one
        await redefine(admin, definition_of(Wukong))


def strip(definition: CustomResourceDefinition) -> None:
    for version in definition.spec.versions:
        assert version.schema is not None
        properties = version.schema.open_apiv3_schema
        assert properties is not None
        properties.x_kubernetes_validations = []
        spec = properties.properties["spec"]
        for name in ("cpu", "memory", "disks", "networks"):
            rules = spec.properties[name]
            rules.x_kubernetes_validations = []
            rules.minimum = rules.maximum = rules.pattern = rules.min_items = None
            if isinstance(rules.items, JSONSchemaProps):
                rules.items.x_kubernetes_validations = []


async def children(world: World) -> set[str]:
    return {f"{kind.__name__} {name}" for kind in CHILDREN for name in await world.names(kind)}


async def test_item_92_an_invalid_spec_is_an_error_and_has_no_children(
    world: World, admin: Client, running: Running
) -> None:
    async with without_rules(admin), running(world.manager):
        created = await world.create(cpu=0, disks=[world.disk("a", boot=True), world.disk("b", boot=True)])
        refused = await world.reaches("Error")
        found = verdict(refused, "Ready")
        assert found is not None
        assert found[:2] == ("False", "InvalidSpec")
        assert "spec.cpu: Invalid value: 0" in found[2]
        assert "at most one disk can be the boot disk" in found[2]
        assert await children(world) == set()
        assert await Direct(world).reconcile(created) == Result(requeue_after=60)
        await world.client.delete(created)
        await world.client.wait_for(created, deleted)


async def test_item_92_networks_come_before_disks_and_disks_before_the_machine(world: World, running: Running) -> None:
    with count_requests(world.own) as requests:
        async with running(world.manager):
            disks = [world.disk("root", image=IMAGE), world.disk("data")]
            await world.running(networks=[LAN], disks=disks, cloud_init_user=CloudInitUser(name="me"))
    made = [each for each in requests.attempts if requests.is_write(each) and "events" not in each.template]
    kinds = [each.template.removesuffix("/{name}").rpartition("/")[2] for each in made]
    first = [kind for kind in dict.fromkeys(kinds) if kind != "selfsubjectaccessreviews"]
    assert first == [
        "wukongs",
        "status",
        "network-attachment-definitions",
        "datavolumes",
        "persistentvolumeclaims",
        "secrets",
        "virtualmachines",
    ]


async def test_item_93_pending_then_creating_then_running(world: World, running: Running) -> None:
    phases: list[str] = []

    async def follow() -> None:
        async with world.client.watch(Wukong, initial_events=True) as watched:
            async for event in watched:
                if event.type in ("ADDED", "MODIFIED") and event.object.status.phase not in phases[-1:]:
                    phases.append(event.object.status.phase)
                if phases[-1:] == ["Running"]:
                    return

    async with running(world.manager):
        following = asyncio.create_task(follow())
        await world.create()
        await asyncio.wait_for(following, 60)
    assert phases == ["Pending", "Creating", "Running"]


async def test_item_93_the_finalizer_and_the_phase_are_requeued_at_once(world: World) -> None:
    direct, created = Direct(world), await world.create()
    assert await direct.reconcile(created) == Result(requeue=True)
    found = await world.get()
    assert found.metadata.finalizers == ["wukong.novasphere.dev/finalizer"]
    assert found.status.observed_generation == 0
    assert await direct.reconcile(created) == Result(requeue=True)
    found = await world.get()
    assert (found.status.phase, found.status.observed_generation) == ("Pending", 1)
    assert await children(world) == set()
    assert await direct.reconcile(created) == Result(requeue_after=10)
    assert (await world.get()).status.phase == "Creating"


async def test_item_94_an_attachment_for_each_network_and_a_given_one_as_it_is(world: World, running: Running) -> None:
    spec = NetworkAttachmentDefinitionSpec(config='{"type": "theirs"}')
    given = await world.client.create(NetworkAttachmentDefinition(metadata=ObjectMeta(name="campus"), spec=spec))
    async with running(world.manager):
        networks = [LAN, Network(name="wan", type="bridge", nad_name="campus")]
        created = await world.running(networks=networks)
        assert await world.names(NetworkAttachmentDefinition) == {"campus", "web-lan-nad"}
        made = await world.client.get(NetworkAttachmentDefinition, "web-lan-nad")
        assert json.loads(made.spec.config) == {
            "cniVersion": "0.3.1",
            "name": "web-lan-nad",
            "type": "bridge",
            "bridge": "br-lan",
            "vlan": 7,
        }
        assert [each.nad_name for each in created.status.networks] == [None, "web-lan-nad", "campus"]
        await world.client.delete(created)
        await world.client.wait_for(created, deleted)
    assert await world.names(NetworkAttachmentDefinition) == {"campus"}
    assert (await world.client.get(given)).metadata.resource_version == given.metadata.resource_version


class Nodes(NoNodeNetworks):
    """Sees which attachments there are when nodes are configured."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seen: list[tuple[str, set[str]]] = []

    async def configure(self, wukong: Wukong) -> None:
        self.seen.append((wukong.metadata.name, await self.world.names(NetworkAttachmentDefinition)))


@pytest.mark.parametrize("nodes_first", [True, False], ids=["before", "after"])
async def test_item_95_nodes_are_configured_before_or_after_the_attachments(world: World, nodes_first: bool) -> None:
    nodes = Nodes(world)
    direct, created = Direct(world, nodes, nodes_first=nodes_first), await world.create(networks=[LAN])
    await direct.begin(created)
    assert nodes.seen == []
    await direct.reconcile(created)
    assert nodes.seen == [("web", set() if nodes_first else {"web-lan-nad"})]


async def test_item_95_a_bridge_is_shared_by_wukongs_and_removed_with_the_last_of_them(
    world: World, namespace: str, as_operator: AsOperator, running: Running
) -> None:
    """In one namespace, with the role that this takes."""
    set_up = partial(setup, options=Options(nmstate="before"))
    manager = Manager(await as_operator(set_up), namespaces=[namespace], webhook_address="0")
    set_up(manager)
    bridge = f"br-{sha256(namespace.encode()).hexdigest()[:8]}"
    networks = [Network(name="lan", type="bridge", bridge_name=bridge, physical_interface=bridge.replace("br", "eth"))]
    async with running(manager):
        halted = StartStrategy(auto_start=False)
        for name in ("a", "b"):
            await world.create(name, networks=networks, start_strategy=halted)
            await world.reaches("Stopped", name)
        (policy,) = await made_policies(world, bridge)
        assert sorted(map(str, users_of(policy))) == [f"{namespace}/a", f"{namespace}/b"]
        for name, left in (("a", 1), ("b", 0)):
            wukong = await world.get(name)
            await world.client.delete(wukong)
            await world.client.wait_for(wukong, deleted)
            assert len(await made_policies(world, bridge)) == left
            assert (bridge in world.scripts.nmstate.interfaces["node-1"]) == bool(left)


async def made_policies(world: World, bridge: str) -> list[NodeNetworkConfigurationPolicy]:
    found = await world.client.list(NodeNetworkConfigurationPolicy)
    return [policy for policy in found if bridge in policy.metadata.name]


async def test_item_96_an_image_is_a_data_volume_and_anything_else_a_claim(world: World) -> None:
    direct = Direct(world)
    created = await world.create(
        disks=[world.disk("root", size="10Gi", image="https://images.test/a.img"), world.disk("data", size="5Gi")]
    )
    await direct.begin(created)
    await direct.reconcile(created)
    volume = await world.client.get(DataVolume, "web-root")
    assert volume.spec.source is not None
    assert volume.spec.source.http is not None
    assert volume.spec.pvc is not None
    claim = await world.client.get(PersistentVolumeClaim, "web-data")
    assert volume.spec.source.http.url == "https://images.test/a.img"
    for spec, size in ((volume.spec.pvc, "10Gi"), (claim.spec, "5Gi")):
        assert spec.access_modes == ["ReadWriteOnce"]
        assert spec.resources.requests == {"storage": Quantity(size)}
        assert spec.storage_class_name == world.storage("fast")
    for child in (volume, claim):
        assert [(each.uid, each.controller) for each in child.metadata.owner_references] == [
            (created.metadata.uid, True)
        ]
    assert await world.names(DataVolume) == {"web-root"}


async def test_item_97_without_its_volumes_there_is_no_machine(world: World) -> None:
    direct, created = Direct(world), await world.create(disks=[world.disk("a", "manual"), world.disk("b", "late")])
    await direct.begin(created)
    assert await direct.reconcile(created) == Result(requeue_after=10)
    waiting = await world.get()
    assert verdict(waiting, "VolumesBound") == ("False", "VolumesPending", "a is Pending")
    assert [(each.name, each.bound) for each in waiting.status.volumes] == [("a", False), ("b", False)]
    assert await world.names(VirtualMachine) == set()
    await world.bind("web-a")
    await direct.reconcile(created)
    assert await world.names(VirtualMachine) == {"web-vm"}, "b waits for its first consumer"
    assert verdict(await world.get(), "VolumesBound") == (
        "True",
        "VolumesReady",
        "2 volumes are ready, b when first used",
    )


async def test_item_98_a_disk_grows_and_one_that_cannot_does_not_keep_the_machine_back(
    world: World, running: Running
) -> None:
    async with running(world.manager):
        await world.running(disks=[world.disk("root"), world.disk("data", "fixed")])
        await world.change_disks(world.disk("root", size="2Gi"), world.disk("data", "fixed", size="2Gi"))
        await world.change({"cpu": 3})
        await world.becomes(lambda wukong: wukong.status.volumes[0].size == "2Gi")
        await world.settled()
    found = await world.get()
    resizing = verdict(found, "DiskResizing")
    assert resizing is not None
    assert resizing[:2] == ("False", "ExpansionRefused")
    class_name = world.storage("fixed")
    assert resizing[2] == f"data cannot grow to 2Gi: the storage class {class_name} does not allow expansion"
    assert (await world.client.get(PersistentVolumeClaim, "web-root")).spec.resources.requests["storage"] == Quantity(
        "2Gi"
    )
    assert [each.size for each in found.status.volumes] == ["2Gi", "1Gi"]
    assert (await world.machine()).spec.template.spec.domain.cpu.cores == 3
    assert found.status.phase == "Running"


async def test_item_99_every_phase_is_reached_and_stored(world: World, running: Running) -> None:
    world.scripts.kubevirt.failing.add("web-vm")
    world.scripts.kubevirt.restart = 0.2
    async with running(world.manager):
        await world.create(networks=[LAN])
        creating = await world.reaches("Creating")
        failed = await world.reaches("Error")
        world.scripts.kubevirt.failing.clear()
        started = await world.reaches("Running")
        await world.change({"startStrategy": {"autoStart": False}})
        stopped = await world.reaches("Stopped")
        await world.settled()
    assert verdict(failed, "Ready") == ("False", "VMFailed", "the machine is Failed: GuestPanicked")
    assert started.status.node_name in world.scripts.kubevirt.nodes
    assert [each.name for each in started.status.networks] == ["default", "lan"]
    assert all(each.ip_address and each.mac_address and each.interface for each in started.status.networks)
    assert verdict(started, "NetworksConfigured") == ("True", "NetworksReady", "1 networks configured")
    assert verdict(started, "VolumesBound") == ("True", "VolumesReady", "1 volumes are ready")
    assert verdict(stopped, "Ready") == ("False", "VMNotReady", "the machine is stopped")
    for found in (creating, failed, started, stopped):
        types = [each.type for each in found.status.conditions]
        assert len(types) == len(set(types))
    assert stopped.status.node_name is None


async def test_item_99_the_machine_is_updated(world: World, running: Running) -> None:
    async with running(world.manager):
        await world.running()
        await world.change({"cpu": 4, "memory": "8Gi"})
        await world.client.wait_for(await world.get(), condition("RestartRequired"))
    spec = (await world.machine()).spec.template.spec
    assert (spec.domain.cpu.cores, spec.domain.memory.guest) == (4, "8Gi")


async def test_item_100_machine_volumes_attachments_finalizer_in_this_order(world: World, running: Running) -> None:
    world.scripts.kubevirt.stop = 0.3
    async with running(world.manager):
        disks = [world.disk("root", image=IMAGE), world.disk("data")]
        created = await world.running(networks=[LAN], disks=disks, cloud_init_user=CloudInitUser(name="me"))
        with count_requests(world.own) as requests:
            await world.client.delete(created)
            await world.client.wait_for(created, deleted)
            await world.settled()  # until the last answer is there
    written = [each for each in requests.attempts if requests.is_write(each) and "events" not in each.template]
    ends = [f"{each.method} {each.template.rpartition('/namespaces/{namespace}/')[2]}" for each in written]
    assert [each for each in ends if not each.endswith("/status")] == [
        "DELETE virtualmachines/{name}",
        "DELETE datavolumes/{name}",
        "DELETE persistentvolumeclaims/{name}",
        "DELETE network-attachment-definitions/{name}",
        "PATCH wukongs/{name}",
    ]
    assert await world.names(PersistentVolumeClaim) == set()
    assert await world.names(VirtualMachineInstance) == set()


async def test_item_100_a_settled_wukong_costs_no_request_and_no_reconcile(world: World, running: Running) -> None:
    async with running(world.manager):
        created = await world.running(networks=[LAN], cloud_init_user=CloudInitUser(name="me"))
        before = reconciles(world.manager)
        with count_requests(world.own) as requests:
            await settled(world.manager, quiet=1.0)
        assert requests.attempts == []
        assert reconciles(world.manager) == before
        with count_requests(world.own) as requests:
            await world.client.patch(Wukong, "web", MergePatch({"metadata": {"labels": {"seen": "again"}}}))
            await settled(world.manager)
        assert reconciles(world.manager) > before
        assert requests.writes == 0
    assert await Direct(world).reconcile(created) is None


def reconciles(manager: Manager) -> int:
    return sum(sum(controller.statistics.results.values()) for controller in manager.controllers)


class Interrupted(NoNodeNetworks):
    """Does what a test says in the middle of a reconcile."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.error: BaseException | None = None

    async def configure(self, wukong: Wukong) -> None:
        if self.error is not None:
            raise self.error
        self.reached.set()
        await asyncio.Event().wait()

    async def release(self, wukong: Wukong, *, everything: bool = False) -> None:
        if self.error is not None:
            raise self.error


async def test_item_100_a_cancelled_reconcile_leaves_the_phase_as_it_is(world: World) -> None:
    nodes = Interrupted()
    direct, created = Direct(world, nodes), await world.create(start_strategy=StartStrategy(auto_start=False))
    await direct.begin(created)
    before = await world.get()

    task = asyncio.create_task(direct.reconcile(created))
    await nodes.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await world.get()).metadata.resource_version == before.metadata.resource_version

    nodes.error = asyncio.CancelledError()
    assert await direct.reconcile(created) == Result(requeue_after=10)
    assert (await world.get()).metadata.resource_version == before.metadata.resource_version


async def test_item_100_an_error_is_shown_and_retried(world: World) -> None:
    nodes = Interrupted()
    direct, created = Direct(world, nodes), await world.create()
    await direct.begin(created)
    nodes.error = Forbidden(Status(code=403, reason="Forbidden", message="no"), "create NetworkAttachmentDefinition")
    with pytest.raises(Forbidden):
        await direct.reconcile(created)
    failed = await world.get()
    assert failed.status.phase == "Error"
    shown = ("False", "Forbidden", "create NetworkAttachmentDefinition: no")
    assert (verdict(failed, "NetworksConfigured"), verdict(failed, "Ready")) == (shown, shown)
    assert [event.reason for event in direct.events.warnings] == ["Forbidden"]

    recovered = Direct(world)
    await recovered.reconcile(created)
    found = await world.get()
    assert found.status.phase in ("Creating", "Running")  # the simulated machine may be faster than this test
    assert is_true(found, "NetworksConfigured")


async def test_item_100_a_deletion_that_fails_is_shown_and_retried(world: World) -> None:
    nodes = Interrupted()
    direct, created = Direct(world, nodes), await world.create()
    await direct.begin(created)
    nodes.error = BridgeFailed("no")
    await world.client.delete(created)
    assert await direct.reconcile(created) == Result(requeue_after=30)
    failed = await world.get()
    assert (failed.status.phase, verdict(failed, "Ready")) == ("Error", ("False", "BridgeFailed", "no"))
    assert [event.reason for event in direct.events.warnings] == ["BridgeFailed"]
    nodes.error = None
    await direct.reconcile(created)
    await world.client.wait_for(created, deleted)
