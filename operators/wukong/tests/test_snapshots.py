"""Snapshots of Wukongs, and their restoration."""

from __future__ import annotations

import asyncio

import pytest
from operators.wukong import Wukong, WukongSnapshot, WukongSnapshotSpec
from operators.wukong.cdi import DataVolume
from operators.wukong.kubevirt import VirtualMachine, claim_of
from operators.wukong.kubevirt_snapshots import (
    VirtualMachineRestore,
    VirtualMachineSnapshot,
    VirtualMachineSnapshotV1Alpha1,
)
from operators.wukong.multus import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from operators.wukong.tests.worlds import Kinds, Scripts, World, definition, virtual_world
from operators.wukong.types import CloudInitUser, Network, StartStrategy

from kubewright import Field, Invalid, ObjectMeta
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import PersistentVolumeClaim
from kubewright.client import MergePatch
from kubewright.client.wait import deleted
from kubewright.controlplane.definitions import load_definitions
from kubewright.testing import count_requests, virtual

KINDS: tuple[Kinds, ...] = ("kubevirt", "snapshots", "cdi", "multus")


async def take(world: World, name: str = "monday", of: str = "web") -> WukongSnapshot:
    spec = WukongSnapshotSpec(wukong_name=of)
    return await world.client.create(WukongSnapshot(metadata=ObjectMeta(name=name), spec=spec))


async def ends(world: World, phase: str, name: str = "monday", timeout: float = 60) -> WukongSnapshot:
    found = await world.client.wait_for(WukongSnapshot, name, Field("status.phase").equals(phase), timeout=timeout)
    assert found is not None
    return found


@virtual
async def test_a_snapshot_is_taken_once_and_goes_with_its_object() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await world.running()
        created = await take(world)
        taken = await ends(world, "Succeeded", timeout=9)
        assert (taken.status.snapshot_name, taken.status.error) == ("monday", None)
        assert taken.status.creation_time is not None
        of = await world.client.get(VirtualMachineSnapshot, "monday")
        assert (of.spec.source.api_group, of.spec.source.kind, of.spec.source.name) == (
            "kubevirt.io",
            "VirtualMachine",
            "web-vm",
        )
        await world.settled()
        with count_requests(world.own) as requests:
            await world.client.patch(WukongSnapshot, "monday", MergePatch({"metadata": {"labels": {"x": "y"}}}))
            await world.settled()
        assert requests.attempts == []
        await world.client.delete(created)
        await world.client.wait_for(VirtualMachineSnapshot, "monday", deleted)


@virtual
async def test_a_snapshot_waits_for_its_machine() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await take(world)
        await world.settled()
        waiting = await world.client.get(WukongSnapshot, "monday")
        assert (waiting.status.phase, waiting.status.error) == ("Pending", "there is no Wukong web")
        await world.create()
        await ends(world, "Succeeded")


@virtual
async def test_a_snapshot_without_a_machine_fails_in_the_end() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await take(world)
        failed = await ends(world, "Failed", timeout=301)
        assert failed.status.error == "there is no Wukong web"
        await world.running()
        await world.settled()
        assert (await world.client.get(WukongSnapshot, "monday")).status.phase == "Failed", "that is final"


@virtual
async def test_a_snapshot_that_kubevirt_cannot_take_has_failed() -> None:
    scripts = Scripts()
    scripts.snapshots.failing = {"monday"}
    async with virtual_world(kinds=KINDS, scripts=scripts) as world:
        await world.running()
        await take(world)
        failed = await ends(world, "Failed", timeout=9)
        assert failed.status.error == "the volumes cannot be frozen"


@virtual
async def test_a_snapshot_that_kubevirt_refuses_has_failed() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await world.running()
        world.faults.fail(
            lambda target: (target.verb, target.resource) == ("create", "virtualmachinesnapshots"),
            code=403,
            message="snapshot feature gate not enabled",
        )
        await take(world)
        failed = await ends(world, "Failed", timeout=9)
        assert failed.status.error == "create VirtualMachineSnapshot default/monday: snapshot feature gate not enabled"


@virtual
async def test_a_snapshot_of_somebody_else_is_not_taken_for_ours() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await world.running()
        source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"}
        theirs = {"metadata": {"name": "monday", "namespace": "default"}, "spec": {"source": source}}
        await world.client.create(from_json(VirtualMachineSnapshot, theirs))
        await take(world)
        failed = await ends(world, "Failed", timeout=9)
        assert failed.status.error == "VirtualMachineSnapshot monday exists and is not of this one"


@virtual
async def test_an_older_kubevirt_takes_snapshots_too() -> None:
    async with virtual_world(kinds=["kubevirt", "cdi", "multus"]) as world:
        await world.running()
        await take(world)
        await world.settled()
        waiting = await world.client.get(WukongSnapshot, "monday")
        assert waiting.status.error == "this KubeVirt has no snapshots (snapshot.kubevirt.io)"
        for each in only_v1alpha1():
            await world.client.create(each)
        await world.client.wait_for(VirtualMachineSnapshotV1Alpha1, "monday", lambda snapshot: True, timeout=9)
        assert (await ends(world, "Creating")).status.snapshot_name == "monday"


def only_v1alpha1() -> list[CustomResourceDefinition]:
    definitions = [loaded.value for loaded in load_definitions([definition("snapshots")])]
    for each in definitions:
        (version,) = [version for version in each.spec.versions if version.name == "v1alpha1"]
        version.storage = True
        each.spec.versions = [version]
    return definitions


async def test_what_a_snapshot_is_of_cannot_be_changed() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await take(world)
        with pytest.raises(Invalid, match="immutable"):
            await world.client.patch(WukongSnapshot, "monday", MergePatch({"spec": {"wukongName": "other"}}))


async def restored(world: World, phase: str, timeout: float = 60) -> str:
    found = await world.becomes(
        lambda wukong: wukong.status.restore is not None and wukong.status.restore.phase == phase, timeout=timeout
    )
    assert found.status.restore is not None
    return found.status.restore.message


async def restore_root(world: World, **fields: object) -> Wukong:
    """A Wukong that is stopped, and whose root disk has been restored."""
    await world.create("web", start_strategy=StartStrategy(auto_start=False), **fields)
    await world.reaches("Stopped")
    await take(world)
    await ends(world, "Succeeded")
    await world.change({"restoreFromSnapshot": "monday"})
    await restored(world, "Succeeded")
    await world.settled()
    return await world.get()


@virtual
async def test_a_machine_is_restored_once_it_is_stopped_and_keeps_its_new_volumes() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await world.running(disks=[world.disk("root", image="ubuntu:24.04"), world.disk("data")])
        await take(world)
        await ends(world, "Succeeded")
        await world.change({"restoreFromSnapshot": "monday"})
        assert "the machine must be stopped" in await restored(world, "Waiting")
        await world.change({"startStrategy": {"autoStart": False}})
        await restored(world, "Succeeded", timeout=9)
        await world.change({"startStrategy": None, "restoreFromSnapshot": None})
        await world.reaches("Running")
        await world.settled()
        claims = {
            volume.name: volume.persistent_volume_claim and volume.persistent_volume_claim.claim_name
            for volume in (await world.machine()).spec.template.spec.volumes
        }
        assert claims == {"root": "restore-web-monday-root", "data": "restore-web-monday-data"}
        found = await world.get()
        assert [(each.pvc_name, each.bound) for each in found.status.volumes] == [
            ("restore-web-monday-root", True),
            ("restore-web-monday-data", True),
        ]
        assert found.status.restore is None
        assert await world.names(VirtualMachineRestore) == set(), "the same snapshot can be restored again"
        assert "Restored" in [reason for reason, _ in await world.events()]


@virtual
async def test_what_the_spec_no_longer_says_does_not_come_back_with_a_restore() -> None:
    """KubeVirt puts the whole spec of the machine back to what it was."""
    async with virtual_world(kinds=KINDS) as world:
        spec = NetworkAttachmentDefinitionSpec(config="{}")
        await world.client.create(NetworkAttachmentDefinition(metadata=ObjectMeta(name="campus"), spec=spec))
        networks = [Network(name="lan", type="bridge"), Network(name="wan", type="bridge", nad_name="campus")]
        await world.running(networks=networks, cloud_init_user=CloudInitUser(name="me"))
        await take(world)
        await ends(world, "Succeeded")
        await world.change({"networks": [], "cloudInitUser": None, "startStrategy": {"autoStart": False}})
        await world.reaches("Stopped")
        await world.change({"restoreFromSnapshot": "monday"})
        await restored(world, "Succeeded")
        await world.settled()
        machine = (await world.machine()).spec.template.spec
        assert [each.name for each in machine.networks] == ["default"]
        assert [each.name for each in machine.domain.devices.interfaces] == ["default"]
        assert [(each.name, claim_of(each)) for each in machine.volumes] == [("root", RESTORED)]


@virtual
async def test_a_restore_that_fails_says_why() -> None:
    scripts = Scripts()
    scripts.snapshots.failing = {"web-monday"}
    async with virtual_world(kinds=KINDS, scripts=scripts) as world:
        await world.create(start_strategy=StartStrategy(auto_start=False))
        await world.reaches("Stopped")
        await take(world)
        await ends(world, "Succeeded")
        await world.change({"restoreFromSnapshot": "monday"})
        assert await restored(world, "Failed", timeout=9) == "the content of the snapshot is gone"
        assert (await world.get()).status.phase == "Stopped"


@virtual
async def test_a_restore_that_kubevirt_refuses_has_failed_and_the_machine_has_not() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await world.create(start_strategy=StartStrategy(auto_start=False))
        await world.reaches("Stopped")
        await take(world)
        await ends(world, "Succeeded")
        world.faults.fail(
            lambda target: (target.verb, target.resource) == ("create", "virtualmachinerestores"), code=422, times=99
        )
        await world.change({"restoreFromSnapshot": "monday"})
        message = await restored(world, "Failed", timeout=9)
        assert message.startswith("create VirtualMachineRestore default/web-monday")
        await world.settled()
        assert (await world.get()).status.phase == "Stopped"
        assert await world.warnings("RestoreFailed") == [f"The snapshot monday was not restored: {message}"]
        world.faults.clear()
        await world.change({"startStrategy": {"autoStart": True}})
        await world.reaches("Running")
        await world.change({"startStrategy": {"autoStart": False}})
        await world.reaches("Stopped")
        await world.settled()
        assert await restored(world, "Failed") == message
        assert await world.names(VirtualMachineRestore) == set(), "what was written since is not lost"


@virtual
async def test_a_restore_waits_for_its_snapshot_and_refuses_that_of_another_machine() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await world.create("other")
        await world.create(start_strategy=StartStrategy(auto_start=False), restore_from_snapshot="monday")
        assert await restored(world, "Waiting") == "there is no such WukongSnapshot"
        await take(world, of="other")
        assert await restored(world, "Failed") == "it is of other"
        assert await world.names(VirtualMachineRestore) == set()


@virtual
async def test_a_machine_that_is_deleted_after_a_restore_comes_back_with_the_restored_volumes() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await restore_root(world)
        machine = await world.machine()
        await world.client.delete(machine)
        await world.client.wait_for(machine, deleted)
        await world.reaches("Stopped")
        await world.settled()
        (volume,) = (await world.client.get(VirtualMachine, "web-vm")).spec.template.spec.volumes
        assert claim_of(volume) == "restore-web-monday-root"


@virtual
async def test_a_guest_that_restarts_is_not_taken_for_a_machine_that_is_stopped() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await world.running()
        await take(world)
        await ends(world, "Succeeded")
        await world.change({"restoreFromSnapshot": "monday"})
        assert "the machine must be stopped" in await restored(world, "Waiting")
        await world.client.delete(await world.instance())
        await world.settled()
        assert await world.names(VirtualMachineRestore) == set()
        assert "the machine must be stopped" in await restored(world, "Waiting")


@virtual
async def test_a_restore_that_is_done_is_not_done_again_when_somebody_deletes_its_object() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await restore_root(world)
        await world.client.delete(VirtualMachineRestore, "web-monday")
        await world.settled()
        assert await world.names(VirtualMachineRestore) == set()
        await restored(world, "Succeeded")
        for loaded in load_definitions([definition("snapshots")]):
            await world.client.delete(loaded.value)
        await asyncio.sleep(60)
        await world.change({"cpu": 2})
        await world.settled()
        await restored(world, "Succeeded")  # also when KubeVirt has no snapshots any more


@virtual
async def test_a_snapshot_is_restored_again_once_its_earlier_restore_is_gone() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await restore_root(world)
        before = await world.client.get(VirtualMachineRestore, "web-monday")
        held = MergePatch({"metadata": {"finalizers": ["test.example.com/held"]}})
        await world.client.patch(VirtualMachineRestore, "web-monday", held)
        await world.change({"restoreFromSnapshot": None})
        await world.becomes(lambda wukong: wukong.status.restore is None)
        await world.change({"restoreFromSnapshot": "monday"})
        assert await restored(world, "Waiting") == "an earlier restore of it is being deleted"
        await world.client.patch(VirtualMachineRestore, "web-monday", MergePatch({"metadata": {"finalizers": None}}))
        await restored(world, "Succeeded")
        assert (await world.client.get(VirtualMachineRestore, "web-monday")).metadata.uid != before.metadata.uid


async def delete_and_wait(world: World) -> None:
    found = await world.get()
    await world.client.delete(found)
    await world.client.wait_for(found, deleted)
    await world.settled()


async def root_claim(world: World) -> str | None:
    (volume,) = (await world.machine()).spec.template.spec.volumes
    return claim_of(volume)


RESTORED = "restore-web-monday-root"


@pytest.mark.parametrize("image", [None, "ubuntu:24.04"])
@virtual
async def test_the_next_wukong_of_the_name_gets_the_restored_content(image: str | None) -> None:
    """KubeVirt makes the machine the owner of restored claims, and that is deleted first."""
    async with virtual_world(kinds=KINDS) as world:
        disks = [world.disk("root", image=image)]
        await restore_root(world, disks=disks, volume_retention="Retain")
        with count_requests(world.own) as requests:
            await world.client.patch(Wukong, "web", MergePatch({"metadata": {"labels": {"x": "y"}}}))
            await world.settled()
        assert requests.attempts == []
        await delete_and_wait(world)
        assert await world.names(PersistentVolumeClaim) == {"web-root", RESTORED}
        after = await world.running(disks=disks)
        assert await root_claim(world) == RESTORED
        assert [(each.pvc_name, each.bound) for each in after.status.volumes] == [(RESTORED, True)]
        await delete_and_wait(world)
        assert await world.names(PersistentVolumeClaim) == {"web-root"}, "which the second one has never had"


@virtual
async def test_volumes_of_before_a_restore_go_with_the_others_when_they_are_no_longer_retained() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await restore_root(world, disks=[world.disk("root", image="ubuntu:24.04")], volume_retention="Retain")
        await world.change({"volumeRetention": "Delete"})
        await delete_and_wait(world)
        assert (await world.names(PersistentVolumeClaim), await world.names(DataVolume)) == (set(), set())


@virtual
async def test_volumes_of_before_a_restore_are_retained_with_the_others() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await restore_root(world)
        await world.change({"volumeRetention": "Retain"})
        await world.settled()
        for claim in await world.client.list(PersistentVolumeClaim):
            assert claim.metadata.owner_references == []
        await delete_and_wait(world)
        assert await world.names(PersistentVolumeClaim) == {"web-root", RESTORED}


@virtual
async def test_a_machine_that_is_put_back_to_its_old_claim_by_hand_leaves_that_to_the_next_wukong() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await restore_root(world, volume_retention="Retain")
        volumes = [{"name": "root", "persistentVolumeClaim": {"claimName": "web-root"}}]
        patch = MergePatch({"spec": {"template": {"spec": {"volumes": volumes}}}})
        await world.client.patch(VirtualMachine, "web-vm", patch)
        await world.becomes(lambda wukong: wukong.status.volumes[0].pvc_name == "web-root")
        await world.settled()
        await delete_and_wait(world)
        await world.running()
        assert await root_claim(world) == "web-root"


@virtual
async def test_a_restored_claim_that_was_deleted_with_its_machine_is_missed() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await restore_root(world)
        await world.client.delete(PersistentVolumeClaim, RESTORED)
        await world.client.delete(await world.machine())
        await world.client.wait_for(VirtualMachine, "web-vm", lambda machine: machine is not None)
        await world.settled()
        assert await root_claim(world) == "web-root"
        assert await world.warnings("VolumeRecreated") == [
            f"the claim {RESTORED} of root was deleted: web-root is used, without what the other one had"
        ]


@virtual
async def test_a_restored_claim_that_the_cache_does_not_know_yet_is_not_missed() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await world.create("web", start_strategy=StartStrategy(auto_start=False))
        await world.reaches("Stopped")
        await take(world)
        await ends(world, "Succeeded")
        world.faults.silence_open_watches(lambda target: target.resource == "persistentvolumeclaims")
        await world.change({"restoreFromSnapshot": "monday"})
        await restored(world, "Succeeded", timeout=600)
        assert (await world.get()).status.volumes[0].pvc_name == RESTORED
        assert await world.warnings("VolumeLost") == []


@virtual
async def test_the_claims_of_a_restore_go_with_their_wukong() -> None:
    async with virtual_world(kinds=KINDS) as world:
        await restore_root(world)
        claim = await world.client.get(PersistentVolumeClaim, RESTORED)
        assert [owner.kind for owner in claim.metadata.owner_references] == ["Wukong"]
        await delete_and_wait(world)
        assert await world.names(PersistentVolumeClaim) == set()
