"""The disks of a Wukong: what is made for them, when the machine may use them, and how they grow."""

from __future__ import annotations

import asyncio

import pytest
from operators.wukong import Wukong
from operators.wukong.cdi import DataVolume
from operators.wukong.disks import shown, source_of
from operators.wukong.kubevirt import VirtualMachine
from operators.wukong.tests.worlds import Scripts, World, verdict, virtual_world

from kubewright import ObjectMeta, Quantity, condition
from kubewright.api.codec import to_json
from kubewright.api.core.v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    VolumeResourceRequirements,
)
from kubewright.api.storage.v1 import StorageClass
from kubewright.client import MergePatch
from kubewright.client.wait import deleted, exists
from kubewright.testing import virtual

IMAGE = "quay.io/containerdisks/ubuntu:24.04"


@pytest.mark.parametrize(
    ("image", "source"),
    [
        ("https://images.test/a.qcow2", {"http": {"url": "https://images.test/a.qcow2"}}),
        ("http://images.test/a.img", {"http": {"url": "http://images.test/a.img"}}),
        (IMAGE, {"registry": {"url": f"docker://{IMAGE}", "pullMethod": "pod"}}),
        (f"docker://{IMAGE}", {"registry": {"url": f"docker://{IMAGE}", "pullMethod": "pod"}}),
        ("oci-archive://a.tar", {"registry": {"url": "oci-archive://a.tar", "pullMethod": "pod"}}),
    ],
)
def test_an_image_keeps_the_scheme_that_cdi_wants(image: str, source: object) -> None:
    assert to_json(source_of(image)) == source


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ("https://me:s3cr3t@images.test/a.img", "https://images.test/a.img"),
        ("http://me:s3@cr3t@images.test/a@2x.img", "http://images.test/a@2x.img"),
        ("https://images.test/a@2x.img", "https://images.test/a@2x.img"),
        ("docker://ubuntu@sha256:0a1b", "docker://ubuntu@sha256:0a1b"),
    ],
)
def test_an_image_is_shown_without_a_password_and_otherwise_as_it_is(image: str, text: str) -> None:
    assert shown(image) == text


@virtual
async def test_the_password_in_the_url_of_an_image_is_not_shown() -> None:
    url, scripts = "https://me:s3cr3t@images.test/a.img", Scripts()
    scripts.cdi.failing = {url}
    async with virtual_world(scripts=scripts) as world:
        await world.create(disks=[world.disk("root", image=url)])
        failed = await world.reaches("Error")
        found = verdict(failed, "VolumesBound")
        assert found is not None
        shown_url = "https://images.test/a.img"
        assert found[2] == f"the import of {shown_url} into root failed: Unable to connect to {shown_url}"
        assert "s3cr3t" not in f"{failed.status}{await world.events()}"


@virtual
async def test_why_an_import_does_not_get_on_is_in_the_condition() -> None:
    async with virtual_world(kinds=["kubevirt"]) as world:
        await world.install("cdi")  # without its controllers
        await world.create(disks=[world.disk("root", image=IMAGE)])
        volume = await world.client.wait_for(DataVolume, "web-root", exists)
        assert volume is not None
        message = "Unable to connect to http data source: got 404"
        error = {"type": "Running", "status": "False", "reason": "Error", "message": message}
        status = {"phase": "ImportInProgress", "conditions": [error]}
        await world.client.status.patch(volume, MergePatch({"status": status}))
        expected = ("False", "VolumesPending", f"root is being imported (ImportInProgress): {message}")
        await world.becomes(lambda wukong: verdict(wukong, "VolumesBound") == expected, timeout=9)


@virtual
async def test_an_import_that_cdi_refuses_is_an_error_of_its_disk_only() -> None:
    async with virtual_world() as world:
        refusal = "Invalid source URL: https://me:s3cr3t@images.test/a.img"
        world.faults.fail(
            lambda target: (target.verb, target.resource) == ("create", "datavolumes"),
            code=422,
            message=refusal,
            times=9,
        )
        image = "https://me:s3cr3t@images.test/a.img"
        await world.create(disks=[world.disk("root", image=image), world.disk("data")])
        failed = await world.reaches("Error")
        assert verdict(failed, "VolumesBound") == (
            "False",
            "ImportFailed",
            "the import of https://images.test/a.img into root is refused: create DataVolume default/web-root: Invalid "
            "source URL: https://images.test/a.img",
        )
        assert await world.names(PersistentVolumeClaim) == {"web-data"}, "the other disk is made"
        assert "s3cr3t" not in f"{failed.status}{await world.events()}"


@virtual
async def test_a_storage_class_that_does_not_exist_is_named() -> None:
    async with virtual_world() as world:
        await world.create(disks=[world.disk("root", "slow", image=IMAGE), world.disk("data", "slow")])
        await world.settled()
        assert verdict(await world.get(), "VolumesBound") == (
            "False",
            "VolumesPending",
            "root is being imported (ImportScheduled): there is no StorageClass slow; data is Pending: there is no "
            "StorageClass slow",
        )


async def lose(world: World, claim_name: str) -> None:
    """Take the volume of a claim away, as a disk that fails."""
    claim = await world.client.get(PersistentVolumeClaim, claim_name)
    volume = claim.spec.volume_name or ""
    await world.client.delete(PersistentVolume, volume)
    await world.client.patch(PersistentVolume, volume, MergePatch({"metadata": {"finalizers": None}}))


@virtual
async def test_a_claim_that_has_lost_its_volume_is_an_error() -> None:
    async with virtual_world() as world:
        await world.running(disks=[world.disk("root"), world.disk("data")])
        await lose(world, "web-data")
        failed = await world.reaches("Error", timeout=9)
        assert verdict(failed, "VolumesBound") == (
            "False",
            "VolumeLost",
            "the claim web-data of data has lost its volume: restore it from a backup or a snapshot",
        )
        assert [(each.name, each.bound) for each in failed.status.volumes] == [("root", True), ("data", False)]


@virtual
async def test_an_import_that_fails_is_an_error_with_its_reason() -> None:
    scripts = Scripts()
    scripts.cdi.failing = {f"docker://{IMAGE}"}
    async with virtual_world(scripts=scripts) as world:
        await world.create(disks=[world.disk("root", image=IMAGE), world.disk("data")])
        await world.settled()
        failed = await world.get()
        assert failed.status.phase == "Error"
        assert verdict(failed, "VolumesBound") == (
            "False",
            "ImportFailed",
            f"the import of {IMAGE} into root failed: Unable to connect to docker://{IMAGE}",
        )
        assert await world.names(PersistentVolumeClaim) == {"web-root", "web-data"}, "the other disk is made"
        assert await world.names(VirtualMachine) == set()
        (reason,) = [reason for reason, note in await world.events() if note and "volumes failed" in note]
        assert reason == "ImportFailed"


@virtual
async def test_without_cdi_a_condition_says_so_and_its_installation_is_noticed() -> None:
    async with virtual_world(kinds=["kubevirt", "multus"]) as world:
        await world.create(disks=[world.disk("root", image=IMAGE), world.disk("data")])
        await world.settled()
        assert verdict(await world.get(), "VolumesBound") == (
            "False",
            "CDIMissing",
            "root has an image, and CDI is not installed",
        )
        await world.install("cdi")
        await world.client.wait_for(DataVolume, "web-root", lambda volume: True, timeout=9)


@virtual
async def test_volumes_that_wait_for_their_first_consumer_are_bound_by_the_machine() -> None:
    async with virtual_world() as world:
        created = await world.running(disks=[world.disk("root", "late", image=IMAGE), world.disk("data", "late")])
        assert verdict(created, "VolumesBound") == ("True", "VolumesReady", "2 volumes are ready")
        assert [each.bound for each in created.status.volumes] == [True, True]


@virtual
async def test_a_claim_that_cdi_has_left_behind_is_used_as_it_is() -> None:
    """With an annotation CDI deletes DataVolumes that it is done with, and hands their claims over."""
    async with virtual_world() as world:
        created = await world.running(disks=[world.disk("root", image=IMAGE)])
        claim = await world.client.get(PersistentVolumeClaim, "web-root")
        claim.metadata.owner_references = [created.as_owner()]
        await world.client.update(claim)
        await world.client.delete(DataVolume, "web-root")
        await world.settled()
        assert await world.names(DataVolume) == set()
        assert verdict(await world.get(), "VolumesBound") == ("True", "VolumesReady", "1 volumes are ready")


@virtual
async def test_a_volume_that_was_deleted_is_made_again_and_said_to_be_empty() -> None:
    async with virtual_world() as world:
        await world.running(disks=[world.disk("root")])
        before = await world.client.get(PersistentVolumeClaim, "web-root")
        await world.client.delete(before)
        await world.settled()
        assert (await world.client.get(PersistentVolumeClaim, "web-root")).metadata.uid != before.metadata.uid
        assert "VolumeRecreated" in [reason for reason, _ in await world.events()]


@virtual
async def test_two_disks_of_different_wukongs_whose_claims_would_have_one_name_do_not_share_it() -> None:
    async with virtual_world() as world:
        await world.running("a-b", disks=[world.disk("c")])
        await world.create("a", disks=[world.disk("b-c")])
        await world.settled()
        refused = await world.get("a")
        found = verdict(refused, "VolumesBound")
        assert found is not None
        assert found[1] == "NameTaken"
        await world.client.delete(refused)
        await world.client.wait_for(refused, deleted)
        assert await world.names(PersistentVolumeClaim) == {"a-b-c"}


@virtual
async def test_a_disk_that_grows_asks_its_claim_for_more_and_reports_what_it_gets() -> None:
    async with virtual_world() as world:
        created = await world.running(disks=[world.disk("root", image=IMAGE), world.disk("data")])
        assert [each.size for each in created.status.volumes] == ["1Gi", "1Gi"]
        await world.change_disks(world.disk("root", image=IMAGE, size="2Gi"), world.disk("data", size="3Gi"))
        await world.becomes(lambda wukong: [each.size for each in wukong.status.volumes] == ["2Gi", "3Gi"])
        await world.settled()
        assert verdict(await world.get(), "DiskResizing") is None
        claims = {each.metadata.name: each for each in await world.client.list(PersistentVolumeClaim)}
        assert claims["web-root"].spec.resources.requests["storage"] == Quantity("2Gi"), "a claim of a DataVolume, too"
        notes = [note for reason, note in await world.events() if reason == "Resizing" and note and "grows" in note]
        assert sorted(notes) == ["data grows from 1Gi to 3Gi", "root grows from 1Gi to 2Gi"]


@virtual
async def test_a_growth_that_a_server_could_not_begin_is_begun_later() -> None:
    async with virtual_world() as world:
        await world.running()
        world.faults.fail(lambda target: (target.verb, target.resource) == ("patch", "persistentvolumeclaims"))
        await world.change_disks(world.disk("root", size="2Gi"))
        refused = await world.becomes(lambda wukong: verdict(wukong, "DiskResizing"))
        assert (verdict(refused, "DiskResizing") or ())[:2] == ("False", "ExpansionRefused")
        await world.becomes(lambda wukong: wukong.status.volumes[0].size == "2Gi")


@virtual
async def test_growth_is_reported_while_it_lasts() -> None:
    async with virtual_world() as world:
        await world.create(disks=[world.disk("root", "manual")])
        await world.bind("web-root")
        await world.reaches("Running")
        await world.change_disks(world.disk("root", "manual", size="2Gi"))
        growing = await world.client.wait_for(await world.get(), condition("DiskResizing"))
        assert growing is not None
        assert verdict(growing, "DiskResizing") == ("True", "Resizing", "root grows from 1Gi to 2Gi")
        assert growing.status.phase == "Running"
        status = {
            "capacity": {"storage": "1Gi"},
            "conditions": [{"type": "FileSystemResizePending", "status": "True"}],
        }
        await world.client.status.patch(PersistentVolumeClaim, "web-root", MergePatch({"status": status}))
        pending = "root grows from 1Gi to 2Gi, its file system when it is next mounted"
        await world.becomes(lambda wukong: verdict(wukong, "DiskResizing") == ("True", "Resizing", pending))
        await world.client.status.patch(
            PersistentVolumeClaim,
            "web-root",
            MergePatch({"status": {"capacity": {"storage": "2Gi"}, "conditions": None}}),
        )
        await world.becomes(lambda wukong: verdict(wukong, "DiskResizing") is None)


@virtual
async def test_a_storage_class_that_is_changed_wakes_those_that_use_it() -> None:
    async with virtual_world() as world:
        await world.running(disks=[world.disk("root", "fixed")])
        await world.change_disks(world.disk("root", "fixed", size="2Gi"))
        refused = ("False", "ExpansionRefused")
        await world.becomes(lambda wukong: (verdict(wukong, "DiskResizing") or ())[:2] == refused)
        await world.settled()
        await world.client.patch(StorageClass, "fixed", MergePatch({"allowVolumeExpansion": True}))
        await world.becomes(lambda wukong: wukong.status.volumes[0].size == "2Gi", timeout=9)


@virtual
async def test_nothing_is_imported_into_a_claim_of_somebody_else() -> None:
    async with virtual_world() as world:
        spec = PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
            storage_class_name=world.storage("fast"),
        )
        await world.client.create(PersistentVolumeClaim(metadata=ObjectMeta(name="web-root"), spec=spec))
        await world.create(disks=[world.disk("root", image=IMAGE)])
        await world.settled()
        found = verdict(await world.get(), "VolumesBound")
        assert found is not None
        assert found[1] == "NameTaken"
        assert await world.names(DataVolume) == set()


async def hold(world: World, kind: type[PersistentVolumeClaim | DataVolume], name: str) -> None:
    """Begin to delete a volume that something still uses."""
    await world.client.patch(kind, name, MergePatch({"metadata": {"finalizers": ["test.example.com/in-use"]}}))
    await world.client.delete(kind, name)


@pytest.mark.parametrize("kind", [PersistentVolumeClaim, DataVolume])
@virtual
async def test_a_volume_that_is_being_deleted_is_not_bound_and_gets_no_machine(
    kind: type[PersistentVolumeClaim | DataVolume],
) -> None:
    async with virtual_world() as world:
        image = IMAGE if kind is DataVolume else None
        await world.running(disks=[world.disk("root", image=image)])
        await hold(world, kind, "web-root")
        expected = ("False", "VolumesTerminating", "root is being deleted")
        found = await world.becomes(lambda wukong: verdict(wukong, "VolumesBound") == expected, timeout=9)
        assert found.status.phase == "Running"
        assert [each.bound for each in found.status.volumes] == [kind is DataVolume]
        assert await world.warnings("VolumesTerminating") == ["volumes failed: root is being deleted"]
        await world.client.delete(await world.machine())
        await world.client.wait_for(VirtualMachine, "web-vm", deleted)
        await world.settled()
        assert await world.names(VirtualMachine) == set()
        await world.client.patch(kind, "web-root", MergePatch({"metadata": {"finalizers": None}}))
        await world.reaches("Running")
        assert len(await world.warnings("VolumeRecreated")) == 1


@virtual
async def test_the_claim_of_an_import_that_the_status_does_not_know_yet_goes_before_the_finalizer() -> None:
    async with virtual_world(kinds=["kubevirt"]) as world:
        await world.install("cdi")  # without its controllers
        created = await world.create(disks=[world.disk("root", image=IMAGE)])
        volume = await world.client.wait_for(DataVolume, "web-root", exists)
        assert volume is not None
        assert volume.spec.pvc is not None
        metadata = ObjectMeta(
            name="web-root", owner_references=[volume.as_owner()], finalizers=["test.example.com/held"]
        )
        await world.client.create(PersistentVolumeClaim(metadata=metadata, spec=volume.spec.pvc))
        await world.settled()
        await world.client.delete(created)
        await world.client.wait_for(volume, deleted)
        await world.settled()
        await world.client.status.patch(Wukong, "web", MergePatch({"status": {"volumes": None}}))
        await asyncio.sleep(30)
        assert (await world.get()).status.volumes == []
        await world.client.patch(PersistentVolumeClaim, "web-root", MergePatch({"metadata": {"finalizers": None}}))
        await world.client.wait_for(created, deleted)
