"""Volumes on an embedded control plane: provisioned, bound, grown and deleted, and the pods that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Event, PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object
from kubewright.api.storage.v1 import StorageClass, VolumeAttributesClass
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, deleted
from kubewright.controlplane import ControlPlane
from kubewright.testing.virtual_time import run_virtual

T = TypeVar("T", bound=Object)
Scenario = Callable[[Client], Awaitable[None]]

DRIVER = "csi.kubewright.dev"


def run(scenario: Scenario, *, nodes: int = 1) -> None:
    async def main() -> None:
        async with ControlPlane.embedded(nodes=nodes) as plane, plane.client() as admin:
            await scenario(admin)

    run_virtual(main)


async def claim(admin: Client, name: str = "data", **spec: JSONValue) -> PersistentVolumeClaim:
    given: JSONObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    meta: JSONValue = {"name": name, "namespace": "default"}
    return await admin.create(from_json(PersistentVolumeClaim, {"metadata": meta, "spec": given}))


async def pod(admin: Client, *claims: str, **spec: JSONValue) -> Pod:
    volumes: list[JSONValue] = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    given: JSONValue = {"containers": [{"name": "main", "image": "busybox"}], "volumes": volumes, **spec}
    return await admin.create(from_json(Pod, {"metadata": {"name": "p", "namespace": "default"}, "spec": given}))


async def volume(admin: Client, name: str, **spec: JSONValue) -> PersistentVolume:
    given: JSONObject = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/data"},
        "storageClassName": "late",
        **spec,
    }
    return await admin.create(from_json(PersistentVolume, {"metadata": {"name": name}, "spec": given}))


async def late_class(admin: Client, provisioner: str = DRIVER) -> None:
    """A class whose claims wait for their first consumer."""
    fields: JSONObject = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    await admin.create(from_json(StorageClass, {"metadata": {"name": "late"}, **fields}))


async def in_phase(admin: Client, obj: T, phase: str) -> T:
    found = await admin.wait_for(obj, Field("status.phase").equals(phase), timeout=60)
    assert found is not None
    return found


async def reasons(admin: Client, about: Object) -> list[str]:
    # Events are written beside what they report.
    await asyncio.sleep(10)
    found = await admin.list(Event, namespace="default", fields={"involvedObject.uid": about.metadata.uid})
    return sorted(each.reason or "" for each in found)


def scheduled(pod: Pod) -> str:
    return next(each.message or "" for each in pod.status.conditions if each.type == "PodScheduled")


def test_a_claim_of_the_default_class_gets_a_volume_that_goes_with_it() -> None:
    async def scenario(admin: Client) -> None:
        bound = await in_phase(admin, await claim(admin), "Bound")
        made = await admin.get(PersistentVolume, f"pvc-{bound.metadata.uid}")
        emitted = await reasons(admin, bound)
        await admin.delete(bound)

        assert (bound.spec.storage_class_name, bound.spec.volume_name) == ("standard", made.metadata.name)
        assert made.metadata.annotations == {"pv.kubernetes.io/provisioned-by": DRIVER}
        assert (made.spec.persistent_volume_reclaim_policy, made.spec.capacity) == (
            "Delete",
            {"storage": Quantity("1Gi")},
        )
        assert emitted == ["ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"]
        assert await admin.wait_for(made, deleted, timeout=60) is None

    run(scenario)


def test_a_retained_volume_stays_when_its_claim_goes() -> None:
    async def scenario(admin: Client) -> None:
        fields: JSONObject = {"provisioner": DRIVER, "reclaimPolicy": "Retain"}
        await admin.create(from_json(StorageClass, {"metadata": {"name": "kept"}, **fields}))
        bound = await in_phase(admin, await claim(admin, storageClassName="kept"), "Bound")
        await admin.delete(bound)
        kept = await admin.get(PersistentVolume, bound.spec.volume_name or "")
        await in_phase(admin, kept, "Released")
        await admin.delete(kept)

        assert await admin.wait_for(kept, deleted, timeout=60) is None

    run(scenario)


def test_a_claim_grows_with_its_volume() -> None:
    async def scenario(admin: Client) -> None:
        bound = await in_phase(admin, await claim(admin), "Bound")
        await admin.patch(bound, MergePatch({"spec": {"resources": {"requests": {"storage": "3Gi"}}}}))
        grown = await admin.wait_for(bound, Field("status.capacity.storage").equals("3Gi"), timeout=60)
        made = await admin.get(PersistentVolume, bound.spec.volume_name or "")

        assert grown is not None
        assert (grown.status.conditions, grown.status.allocated_resource_statuses) == ([], {})
        assert made.spec.capacity == {"storage": Quantity("3Gi")}
        assert set(await reasons(admin, bound)) >= {"ExternalExpanding", "Resizing", "VolumeResizeSuccessful"}

    run(scenario)


def test_a_volume_gets_the_attributes_that_its_claim_asks_for() -> None:
    async def scenario(admin: Client) -> None:
        fields: JSONObject = {"driverName": DRIVER, "parameters": {"iops": "1"}}
        await admin.create(from_json(VolumeAttributesClass, {"metadata": {"name": "fast"}, **fields}))
        bound = await in_phase(admin, await claim(admin), "Bound")
        await admin.patch(bound, MergePatch({"spec": {"volumeAttributesClassName": "fast"}}))
        current = Field("status.currentVolumeAttributesClassName").equals("fast")

        assert await admin.wait_for(bound, current, timeout=60)
        made = await admin.get(PersistentVolume, bound.spec.volume_name or "")
        assert made.spec.volume_attributes_class_name == "fast"

    run(scenario)


def test_a_claim_can_wait_for_the_node_of_its_first_pod() -> None:
    async def scenario(admin: Client) -> None:
        await late_class(admin)
        waiting = await claim(admin, storageClassName="late")
        before = await reasons(admin, waiting)
        user = await in_phase(admin, await pod(admin, "data"), "Running")
        bound = await in_phase(admin, waiting, "Bound")

        assert before == ["WaitForFirstConsumer"]
        assert bound.metadata.annotations["volume.kubernetes.io/selected-node"] == user.spec.node_name
        assert "WaitForPodScheduled" in await reasons(admin, waiting)

    run(scenario)


def test_a_pod_goes_where_the_volume_of_its_claim_is() -> None:
    async def scenario(admin: Client) -> None:
        await late_class(admin, "kubernetes.io/no-provisioner")
        waiting = await claim(admin, storageClassName="late")
        user = await pod(admin, "data")
        refused = Field("status.conditions[0].reason").equals("Unschedulable")
        without = await admin.wait_for(user, refused, timeout=60)
        on_second: JSONValue = {
            "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}]
        }
        affinity: JSONValue = {"required": {"nodeSelectorTerms": [on_second]}}
        there = await volume(admin, "there", nodeAffinity=affinity)
        running = await in_phase(admin, user, "Running")

        assert without is not None
        assert scheduled(without) == (
            "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
        )
        assert running.spec.node_name == "node-2"
        assert (await in_phase(admin, waiting, "Bound")).spec.volume_name == there.metadata.name

    run(scenario, nodes=2)


@pytest.mark.parametrize("node", ["", "node-1"])
def test_a_pod_waits_for_its_claim(node: str) -> None:
    async def scenario(admin: Client) -> None:
        user = await pod(admin, "data", nodeName=node or None)
        await asyncio.sleep(60)
        waiting = await admin.get(Pod, user.key)
        await claim(admin)
        await in_phase(admin, user, "Running")

        assert waiting.status.phase == "Pending"
        if not node:
            assert scheduled(waiting) == '0/1 nodes are available: persistentvolumeclaim "data" not found.'

    run(scenario)


def test_a_claim_is_bound_when_a_volume_or_a_default_class_comes() -> None:
    async def scenario(admin: Client) -> None:
        first = await claim(admin, "first", storageClassName="late")
        second = await claim(admin, "second")
        await asyncio.sleep(60)
        before = await admin.get(PersistentVolumeClaim, second.key)
        await volume(admin, "a")
        meta: JSONValue = {"name": "new", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        await admin.create(from_json(StorageClass, {"metadata": meta, "provisioner": DRIVER}))

        assert before.spec.storage_class_name is None
        assert (await in_phase(admin, first, "Bound")).spec.volume_name == "a"
        assert (await in_phase(admin, second, "Bound")).spec.storage_class_name == "new"

    # Without nodes there is no class from the beginning.
    run(scenario, nodes=0)


def test_a_recycled_volume_is_available_again() -> None:
    async def scenario(admin: Client) -> None:
        again = await volume(admin, "again", persistentVolumeReclaimPolicy="Recycle")
        bound = await in_phase(admin, await claim(admin, storageClassName="late"), "Bound")
        await admin.delete(bound)
        await admin.wait_for(bound, deleted, timeout=60)
        recycled = await in_phase(admin, again, "Available")

        assert recycled.spec.claim_ref is None
        assert "VolumeRecycled" in await reasons(admin, again)

    run(scenario)


def test_the_newest_of_several_default_classes_is_taken() -> None:
    async def scenario(admin: Client) -> None:
        for name in ("b", "c", "a"):
            meta: JSONValue = {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
            await admin.create(from_json(StorageClass, {"metadata": meta, "provisioner": "example.com/none"}))
            await asyncio.sleep(5)
        await admin.delete(StorageClass, "a")

        assert (await claim(admin)).spec.storage_class_name == "c"

    run(scenario, nodes=0)


def test_a_volume_whose_reference_names_no_claim_is_released() -> None:
    """The server accepts such references."""

    async def scenario(admin: Client) -> None:
        await in_phase(admin, await volume(admin, "v", claimRef={"uid": "1"}), "Released")

    run(scenario)


def test_a_claim_may_name_what_cannot_be_a_volume(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(admin: Client) -> None:
        await claim(admin, "odd", volumeName="*/5 * * * *")
        await admin.wait_for(await claim(admin), Field("status.phase").equals("Bound"))

    run(scenario)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
