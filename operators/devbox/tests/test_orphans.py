"""Parts that have lost their owner, and a Devbox whose status was lost. In virtual time."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest
from operators.devbox import Devbox, InMemoryCommitter, InMemoryRegistry, Options
from operators.devbox.content import claim
from operators.devbox.names import ARCHIVE, CONTENT, CONTENT_ID, ROLE, metadata_of
from operators.devbox.tests.disks import followed
from operators.devbox.tests.world import COMMITS, LONG, World, devbox, running_world
from operators.devbox.types import State

from kubewright import ObjectMeta
from kubewright.api import Object
from kubewright.api.batch.v1 import Job
from kubewright.api.core.v1 import PersistentVolumeClaim, Pod, Secret, Service, TypedLocalObjectReference
from kubewright.api.markers import JSONObject
from kubewright.api.storage.v1 import StorageClass
from kubewright.client import MergePatch
from kubewright.client.wait import Field, deleted
from kubewright.controlplane.controllers.storage_class import DRIVER
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.patterns import get_condition
from kubewright.testing import run_virtual, virtual

KINDS: list[type[Object]] = [PersistentVolumeClaim, Pod, Secret, Service]


async def parts(world: World) -> dict[str, list[str]]:
    """The uids of the owners of all parts."""
    found = {
        f"{kind.__name__} {each.metadata.name}": [owner.uid for owner in each.metadata.owner_references]
        for kind in KINDS
        for each in await world.admin.list(kind)
    }
    return {name: owners for name, owners in found.items() if name != "Service kubernetes"}


async def delete(world: World, propagation: Literal["Orphan"] | None = None) -> None:
    await world.admin.delete(Devbox, "it", propagation=propagation)
    assert await world.admin.wait_for(Devbox, "it", deleted, timeout=LONG) is None
    await asyncio.sleep(60)


@pytest.mark.parametrize("state", ["Running", "Paused", "Stopped"])
def test_a_devbox_that_is_deleted_with_its_parts_orphaned_and_made_again_has_all_of_them(state: State) -> None:
    async def main() -> None:
        async with running_world() as world:
            with followed(world.plane) as disks:
                await world.run()
                disks.work()
                await world.stop_and_run()
                disks.work()
                if state != "Running":
                    await world.set_state(state)
                    await world.reaches(state)
                before = await world.at_rest()
                pod = await world.pod()
                names = (await parts(world)).keys()

                await delete(world, propagation="Orphan")
                assert await parts(world) == {name: [] for name in names}

                await world.create(devbox(state=state))
                await world.reaches(state)
                again = await world.at_rest()
                assert await parts(world) == {name: [again.metadata.uid] for name in names}
                now_running = await world.pod()
                assert (pod and pod.metadata.uid) == (now_running and now_running.metadata.uid)
                assert again.status.record.base_image == before.status.record.base_image
                if state != "Stopped":
                    assert again.status.content_id == before.status.content_id
                if state != "Running":
                    await world.set_state("Running")
                    await world.reaches("Running")
                assert disks.problems == []

                await delete(world)
                assert await parts(world) == {}

    run_virtual(main)


@virtual
async def test_a_pod_that_was_orphaned_ends_when_its_devbox_is_made_again_in_another_state() -> None:
    async with running_world() as world:
        with followed(world.plane) as disks:
            await world.run()
            disks.work()
            await delete(world, propagation="Orphan")
            await world.create(devbox(state="Stopped"))
            stopped = await world.reaches("Stopped", timeout=120)
            assert await world.pod() is None
            assert disks.missing(stopped.status.record.base_image.removeprefix("archive/")) == []


@pytest.mark.parametrize("lost", ["labels", "ownerReferences"])
def test_a_pod_that_has_ended_and_has_lost_its_labels_or_its_owner_is_replaced(lost: str) -> None:
    async def main() -> None:
        async with running_world() as world:
            await world.run()
            await world.at_rest()
            await world.kill()
            ended = await world.running_pod()
            await world.admin.patch(ended, MergePatch({"metadata": {lost: None}}))
            world.plane.pods.where(name="it").evict()
            await world.start()
            await world.running_pod(other_than=ended.metadata.uid)

    run_virtual(main)


@virtual
async def test_images_of_a_devbox_that_is_deleted_with_its_parts_orphaned_stay() -> None:
    registry = InMemoryRegistry()
    async with running_world(committer=InMemoryCommitter(registry)) as world:
        await world.run()
        await world.set_state("Stopped")
        await world.reaches("Stopped")
        stopped = await world.at_rest()
        await delete(world, propagation="Orphan")
        assert list(registry.images) == [stopped.status.record.base_image]
        await world.create()
        again = await world.reaches("Running")
        assert again.status.record.base_image == stopped.status.record.base_image


@virtual
async def test_archives_that_were_orphaned_stay_although_the_secret_is_gone() -> None:
    async with running_world() as world:
        await world.run()
        await world.set_state("Stopped")
        await world.reaches("Stopped")
        await world.at_rest()
        archives = await world.claims()
        await world.kill()
        await world.admin.delete(Secret, "it")
        await world.admin.delete(Devbox, "it", propagation="Orphan")
        await asyncio.sleep(60)
        await world.start()
        assert await world.admin.wait_for(Devbox, "it", deleted, timeout=60) is None
        await asyncio.sleep(60)
        assert await world.claims() == archives


@virtual
async def test_parts_that_the_garbage_collector_has_orphaned_before_the_operator_saw_it_stay() -> None:
    registry = InMemoryRegistry()
    async with running_world(committer=InMemoryCommitter(registry)) as world:
        await world.run()
        await world.stop_and_run()
        await world.at_rest()
        before, images = await parts(world), list(registry.images)
        await world.kill()
        await world.admin.delete(Devbox, "it", propagation="Orphan")
        await asyncio.sleep(60)
        assert (await world.read()).metadata.finalizers == ["devbox.sealos.io/finalizer"]
        await world.start()
        assert await world.admin.wait_for(Devbox, "it", deleted, timeout=60) is None
        assert (await parts(world), list(registry.images)) == ({name: [] for name in before}, images)


@virtual
async def test_parts_that_are_seen_to_be_orphaned_before_the_deletion_of_their_devbox_stay() -> None:
    """Watches of different kinds are not in order."""
    async with running_world() as world:
        await world.run()
        await world.at_rest()
        before = await parts(world)
        world.plane.faults.silence_open_watches(lambda target: target.resource == "devboxes")
        await delete(world, propagation="Orphan")
        assert await parts(world) == {name: [] for name in before}


@virtual
async def test_a_part_whose_owner_is_removed_gets_it_again() -> None:
    async with running_world() as world:
        await world.run()
        running = await world.stop_and_run()
        before = await parts(world)
        assert [name for name in before if name.endswith("-archive")]
        for kind in KINDS:
            for each in await world.admin.list(kind):
                if each.metadata.owner_references:
                    await world.admin.patch(each, MergePatch({"metadata": {"ownerReferences": None}}))
        await world.at_rest()
        assert before == await parts(world) == {name: [running.metadata.uid] for name in before}
        # Also while the operator does not run.
        await world.kill()
        archives = await world.admin.list(PersistentVolumeClaim, labels={ROLE: ARCHIVE})
        await world.admin.patch(archives[0], MergePatch({"metadata": {"ownerReferences": None}}))
        await world.start()
        await world.at_rest()
        assert await parts(world) == before


@virtual
async def test_a_volume_that_the_operator_has_not_made_is_neither_adopted_nor_released() -> None:
    """Those who copy a claim copy its labels, too."""
    async with running_world() as world:
        running = await world.run()
        content = f"it-{running.status.content_id}"
        found = await world.admin.get(PersistentVolumeClaim, content)
        unlabelled = {name: value for name, value in found.metadata.labels.items() if name != ROLE}
        for name, labels in (("mine", unlabelled), ("copy", found.metadata.labels)):
            metadata = ObjectMeta(name=name, namespace="default", labels=labels)
            await world.admin.create(claim(running, Options(), metadata))
        await world.set_state("Stopped")
        await world.reaches("Stopped")
        # Labels do not make another volume of it.
        relabelled = MergePatch({"metadata": {"labels": {ROLE: CONTENT}}})
        await world.admin.patch(PersistentVolumeClaim, f"{content}-archive", relabelled)
        await world.at_rest()
        assert await world.claims() == sorted(("copy", f"{content}-archive", "mine"))
        assert (await parts(world))["PersistentVolumeClaim mine"] == []
        assert (await parts(world))["PersistentVolumeClaim copy"] == []


@virtual
async def test_a_volume_that_has_lost_its_owner_and_its_labels_is_not_taken_for_gone() -> None:
    """Its content would have been called lost, and the next one begun from the image."""
    async with running_world() as world:
        with followed(world.plane) as disks:
            content = f"it-{(await world.run()).status.content_id}"
            disks.work()
            await world.kill()
            found = await world.admin.get(PersistentVolumeClaim, content)
            bare: JSONObject = {"labels": None, "ownerReferences": None}
            await world.admin.patch(PersistentVolumeClaim, content, MergePatch({"metadata": bare}))
            await world.start()
            await world.set_state("Stopped")
            await world.reaches("Stopping")
            await asyncio.sleep(60)
            synced = get_condition(await world.read(), "PodSynced")
            assert synced is not None
            assert synced.message.startswith(
                f"the PersistentVolumeClaim {content} exists and is not of this Devbox: "
                "label it app.kubernetes.io/name=it,app.kubernetes.io/managed-by=sealos,"
            )
            labels: JSONObject = dict(found.metadata.labels)
            await world.admin.patch(PersistentVolumeClaim, content, MergePatch({"metadata": {"labels": labels}}))
            await world.reaches("Stopped")
            await world.set_state("Running")
            await world.reaches("Running")
            assert disks.problems == []


@pytest.mark.parametrize("when", ["it has a content", "it runs"])
@pytest.mark.parametrize("state", ["Running", "Stopped"])
def test_a_status_of_an_earlier_time_hides_no_later_content(state: State, when: str) -> None:
    """As when a client of v1alpha1 applies an object that it has read before, with the annotation that has its rest."""

    async def main() -> None:
        async with running_world() as world:
            with followed(world.plane) as disks:
                await world.create()
                has_content = Field("status.contentID").satisfies(bool, "is there")
                first = await world.admin.wait_for(Devbox, "it", has_content, timeout=LONG)
                runs = await world.reaches("Running")
                assert first is not None
                assert first.status.record.schedule_time is None
                disks.work()
                await world.stop_and_run()
                disks.work()
                if state == "Stopped":
                    await world.set_state(state)
                    await world.reaches(state)
                found = await world.at_rest()
                content_id, base = found.status.content_id, found.status.record.base_image
                found.status = first.status if when == "it has a content" else runs.status
                await world.admin.status.update(found)
                again = await world.at_rest()
                assert again.status.phase == state
                assert again.status.record.base_image == base  # which releases are made of
                if state == "Running":
                    assert again.status.content_id == content_id
                    await world.admin.delete(Pod, "it")
                    await asyncio.sleep(1)
                else:
                    await world.set_state("Running")
                await world.reaches("Running")
                await world.stop_and_run()
                assert disks.problems == []
                reported = [reason for _, reason, _ in await world.events()]
                assert (reported.count("StatusOutdated"), "ContentLost" in reported) == (1, False)

    run_virtual(main)


@virtual
async def test_a_status_of_a_commit_that_is_over_locks_no_user_out() -> None:
    async with running_world() as world:
        with followed(world.plane) as disks:
            await world.run()
            disks.work()
            world.plane.pods.where(labels=COMMITS).behave(run=30)
            await world.set_state("Stopped")
            committing = Field("status.commitRecords").satisfies(lambda found: "Committing" in str(found), "say so")
            earlier = await world.admin.wait_for(Devbox, "it", committing, timeout=LONG)
            assert earlier is not None
            await world.reaches("Stopped")
            found = await world.at_rest()
            found.status = earlier.status
            await world.admin.status.update(found)
            await world.reaches("Stopped", timeout=60)
            (failure,) = [note for _, reason, note in await world.events() if reason == "CommitFailed"]
            assert str(failure).endswith(f"; the volume it-{earlier.status.content_id} is gone")
            await world.set_state("Running")
            await world.reaches("Running")
            assert disks.problems == []


@virtual
async def test_a_commit_whose_job_has_lost_its_owner_ends() -> None:
    async with running_world() as world:
        await world.run()
        world.plane.pods.where(labels=COMMITS).behave(run=30)
        await world.set_state("Stopped")
        await world.admin.wait_for(Job, "it-commit", Field("status.active").equals(1), timeout=LONG)
        await world.admin.patch(Job, "it-commit", MergePatch({"metadata": {"ownerReferences": None}}))
        await world.reaches("Stopped", timeout=60)
        await world.at_rest()
        assert await world.names(Job) == []


@pytest.mark.parametrize("role", [CONTENT, ARCHIVE])
def test_a_devbox_without_a_status_gets_a_new_content_while_the_cache_does_not_show_its_volume(role: str) -> None:
    """As when it is restored from a backup with its volumes."""

    async def main() -> None:
        async with running_world() as world:
            world.plane.faults.cut_open_watches(reads_claims)
            world.plane.faults.delay(watches_claims, LONG)
            made = devbox()
            name, labels = (
                "it-content" if role == CONTENT else "it-content-archive",
                {ROLE: role, CONTENT_ID: "content"},
            )
            await world.admin.create(claim(made, Options(), metadata_of(made, name, **labels)))
            await world.create(made)
            status = (await world.reaches("Running", timeout=60)).status
            if role == CONTENT:
                assert (status.content_id, await world.claims()) == ("content", [name])
            else:
                assert status.record.base_image == f"archive/{name}"

    run_virtual(main)


@virtual
async def test_a_volume_that_is_restored_from_a_snapshot_when_a_pod_first_uses_it_is_committed() -> None:
    """Until then its claim is not bound, like one that no pod has used yet."""
    async with running_world() as world:
        lazy = StorageClass(
            metadata=ObjectMeta(name="lazy"), provisioner=DRIVER, volume_binding_mode="WaitForFirstConsumer"
        )
        await world.admin.create(lazy)
        made = devbox(state="Stopped")
        metadata = metadata_of(made, "it-content", **{ROLE: CONTENT, CONTENT_ID: "content"})
        restored = claim(made, Options(storage_class="lazy"), metadata)
        restored.spec.data_source = TypedLocalObjectReference(
            api_group="snapshot.storage.k8s.io", kind="VolumeSnapshot", name="backup"
        )
        await world.admin.create(restored)
        await world.create(made)
        stopped = await world.reaches("Stopped")
        assert stopped.status.record.base_image == "archive/it-content-archive"


def watches_claims(target: Target) -> bool:
    return target.verb == "watch" and target.resource == "persistentvolumeclaims"


def reads_claims(target: Target) -> bool:
    return target.verb in ("list", "watch") and target.resource == "persistentvolumeclaims"


@virtual
async def test_a_pod_without_labels_that_cannot_go_is_deleted_once() -> None:
    async with running_world() as world:
        await world.run()
        held = {"labels": None, "finalizers": ["example.com/held"]}
        await world.admin.patch(Pod, "it", MergePatch({"metadata": held}))
        await world.admin.status.patch(Pod, "it", MergePatch({"status": {"phase": "Failed"}}))
        await asyncio.sleep(600)
        assert (await world.read()).status.restarts == 1
