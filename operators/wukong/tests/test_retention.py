"""What becomes of volumes when their Wukong is deleted: they go, are retained, or are orphaned."""

from __future__ import annotations

from typing import Literal

import pytest
from operators.wukong import Wukong, WukongReconciler
from operators.wukong.cdi import DataVolume
from operators.wukong.context import NoNodeNetworks
from operators.wukong.kubevirt import VirtualMachine, VirtualMachineInstance
from operators.wukong.multus import NetworkAttachmentDefinition
from operators.wukong.tests.worlds import ALL, World, virtual_world
from operators.wukong.types import CloudInitUser, Network, StartStrategy

from kubewright import Field
from kubewright.api.core.v1 import PersistentVolumeClaim, Secret
from kubewright.client import MergePatch
from kubewright.client.wait import deleted
from kubewright.testing import RecordedEvents, count_requests, virtual

IMAGE = "ubuntu:24.04"


async def delete_and_wait(world: World, propagation: Literal["Background", "Foreground"] = "Background") -> None:
    found = await world.get()
    await world.client.delete(found, propagation=propagation)
    await world.client.wait_for(found, deleted)
    await world.settled()


@virtual
async def test_retained_volumes_are_there_for_the_next_wukong_of_the_name() -> None:
    async with virtual_world() as world:
        disks = [world.disk("root", image=IMAGE), world.disk("data")]
        created = await world.running(disks=disks, volume_retention="Retain")
        before = {each.metadata.name: each.metadata.uid for each in await world.client.list(PersistentVolumeClaim)}
        await world.client.delete(created)
        await world.client.wait_for(created, deleted)
        await world.settled()
        assert await world.names(VirtualMachine) == set()
        assert (await world.names(DataVolume), await world.names(PersistentVolumeClaim)) == (
            {"web-root"},
            {"web-root", "web-data"},
        )
        await world.running(disks=disks)
        after = {each.metadata.name: each.metadata.uid for each in await world.client.list(PersistentVolumeClaim)}
        assert after == before
        await world.client.delete(await world.get())
        await world.client.wait_for(PersistentVolumeClaim, "web-root", deleted)


@virtual
async def test_retained_volumes_survive_a_deletion_in_the_foreground() -> None:
    """The garbage collector then deletes what has an owner before the finalizer is asked."""
    async with virtual_world() as world:
        await world.running(disks=[world.disk("root", image=IMAGE), world.disk("data")], volume_retention="Retain")
        await delete_and_wait(world, "Foreground")
        assert await world.names(PersistentVolumeClaim) == {"web-root", "web-data"}


@virtual
async def test_retained_volumes_that_were_never_used_are_bound_by_the_next_wukong_whatever_class_it_names() -> None:
    async with virtual_world() as world:
        disks = [world.disk("root", "late", image=IMAGE), world.disk("data", "late")]
        await world.create(disks=disks, volume_retention="Retain", start_strategy=StartStrategy(auto_start=False))
        await world.reaches("Stopped")
        await delete_and_wait(world)
        await world.running(disks=[world.disk("root", image=IMAGE), world.disk("data")])
        claims = await world.client.list(PersistentVolumeClaim)
        assert {each.spec.storage_class_name for each in claims} == {"late"}


async def uids(world: World) -> dict[str, str]:
    """What the user has of the machine."""
    kinds = (VirtualMachine, VirtualMachineInstance, DataVolume, PersistentVolumeClaim)
    found = [each for kind in (*kinds, NetworkAttachmentDefinition, Secret) for each in await world.client.list(kind)]
    return {f"{each.kind} {each.metadata.name}": each.metadata.uid for each in found}


@virtual
async def test_what_is_orphaned_stays_for_the_next_wukong_of_the_name() -> None:
    async with virtual_world() as world:
        disks, networks = [world.disk("root", image=IMAGE), world.disk("data")], [Network(name="lan", type="bridge")]
        user = CloudInitUser(name="me")
        created = await world.running(disks=disks, networks=networks, cloud_init_user=user)
        before = await uids(world)
        assert len(before) == 7
        finalizers = ["wukong.novasphere.dev/finalizer", "test.example.com/held"]
        await world.client.patch(Wukong, "web", MergePatch({"metadata": {"finalizers": finalizers}}))
        await world.client.delete(created, propagation="Orphan")
        held = Field("metadata.finalizers").equals(finalizers[1:])
        orphaned = await world.client.wait_for(created, held)
        assert orphaned is not None
        # An operator that was down sees it now.
        late = WukongReconciler(world.manager.client, RecordedEvents(), NoNodeNetworks(), nodes_first=True)
        await late.cleanup(orphaned)
        await world.client.patch(Wukong, "web", MergePatch({"metadata": {"finalizers": None}}))
        await world.client.wait_for(created, deleted)
        await world.settled()
        assert await uids(world) == before

        again = await world.running(disks=disks, networks=networks, cloud_init_user=user)
        assert await uids(world) == before
        for kind in (VirtualMachine, DataVolume, NetworkAttachmentDefinition, Secret):
            for child in await world.client.list(kind):
                assert [owner.uid for owner in child.metadata.owner_references] == [again.metadata.uid]
        await delete_and_wait(world)
        assert await uids(world) == {}


@virtual
async def test_an_orphaned_attachment_that_the_next_wukong_does_not_want_goes_when_no_guest_uses_it() -> None:
    async with virtual_world() as world:
        created = await world.running(networks=[Network(name="lan", type="bridge")])
        await world.client.delete(created, propagation="Orphan")
        await world.client.wait_for(created, deleted)
        await world.running()
        assert await world.names(NetworkAttachmentDefinition) == {"web-lan-nad"}, "the guest runs with it"
        await world.client.delete(await world.instance())
        await world.client.wait_for(NetworkAttachmentDefinition, "web-lan-nad", deleted)


@pytest.mark.parametrize("is_taken_over", [True, False])
@virtual
async def test_what_is_orphaned_is_taken_over_as_a_whole_or_not_at_all(is_taken_over: bool) -> None:
    """The next Wukong is deleted while it waits for its networks, or before it could do anything."""
    async with virtual_world(nmstate="before") as world:
        created = await world.running()
        before = await uids(world)
        await world.client.delete(created, propagation="Orphan")
        await world.client.wait_for(created, deleted)
        if not is_taken_over:
            patches = ("patch", "virtualmachines")
            world.faults.fail(lambda target: (target.verb, target.resource) == patches, code=403, times=None)
        await world.create(networks=[Network(name="lan", type="bridge", physical_interface="eth1")])
        await world.reaches("Running" if is_taken_over else "Error")
        assert await uids(world) == before
        await delete_and_wait(world)
        assert await uids(world) == ({} if is_taken_over else before)


@virtual
async def test_what_is_orphaned_stays_also_when_the_deletion_is_seen_late() -> None:
    async with virtual_world() as world:
        created = await world.running(disks=[world.disk("root", image=IMAGE), world.disk("data")])
        before = await uids(world)
        world.faults.silence_open_watches(lambda target: target.resource == "wukongs")
        await world.client.delete(created, propagation="Orphan")
        await world.client.wait_for(created, deleted, timeout=7200)
        assert await uids(world) == before


@virtual
async def test_volumes_are_retained_when_that_is_said_at_last() -> None:
    async with virtual_world() as world:
        await world.running()
        claim = await world.client.get(PersistentVolumeClaim, "web-root")
        claim.metadata.labels = {}
        await world.client.update(claim)
        await world.change({"volumeRetention": "Retain"})
        await delete_and_wait(world)
        assert await world.names(PersistentVolumeClaim) == {"web-root"}, "also without its labels"


@virtual
async def test_volumes_that_are_no_longer_to_be_retained_go() -> None:
    async with virtual_world() as world:
        await world.running(disks=[world.disk("root", image=IMAGE), world.disk("data")], volume_retention="Retain")
        await world.change({"volumeRetention": "Delete"})
        await world.settled()
        await delete_and_wait(world)
        assert (await world.names(DataVolume), await world.names(PersistentVolumeClaim)) == (set(), set())


@virtual
async def test_a_claim_that_cdi_has_left_behind_is_retained() -> None:
    async with virtual_world() as world:
        disks = [world.disk("root", image=IMAGE)]
        await world.running(disks=disks)
        await world.change({"volumeRetention": "Retain"})
        await world.settled()
        claim = await world.client.get(PersistentVolumeClaim, "web-root")
        volume = await world.client.get(DataVolume, "web-root")
        claim.metadata.owner_references = volume.metadata.owner_references
        assert claim.metadata.owner_references == []
        await world.client.update(claim)
        await world.client.delete(DataVolume, "web-root")
        await world.settled()
        await delete_and_wait(world)
        await world.running(disks=disks)
        assert (await world.client.get(PersistentVolumeClaim, "web-root")).metadata.uid == claim.metadata.uid
        assert await world.names(DataVolume) == set()


@virtual
async def test_a_settled_wukong_with_retained_volumes_costs_nothing() -> None:
    async with virtual_world(kinds=ALL) as world:
        await world.running(disks=[world.disk("root", image=IMAGE), world.disk("data")], volume_retention="Retain")
        with count_requests(world.own) as requests:
            await world.client.patch(Wukong, "web", MergePatch({"metadata": {"labels": {"x": "y"}}}))
            await world.settled()
        assert requests.attempts == []


@virtual
async def test_children_that_have_lost_their_labels_are_deleted_all_the_same() -> None:
    async with virtual_world() as world:
        disks, lan = [world.disk("root", image=IMAGE), world.disk("data")], Network(name="lan", type="bridge")
        await world.running(disks=disks, networks=[lan])
        made = ((VirtualMachine, "web-vm"), (DataVolume, "web-root"), (PersistentVolumeClaim, "web-data"))
        for kind, name in (*made, (NetworkAttachmentDefinition, "web-lan-nad")):
            await world.client.patch(kind, name, MergePatch({"metadata": {"labels": None}}))
        await delete_and_wait(world)
        for kind in (VirtualMachine, DataVolume, PersistentVolumeClaim, NetworkAttachmentDefinition):
            assert await world.names(kind) == set()
