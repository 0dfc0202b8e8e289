"""Claims and volumes find each other: static binding, reservations, phases, reclaim policies, classes, events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import pytest

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Event, PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.resources import Object
from kubewright.api.storage.v1 import StorageClass
from kubewright.client import Client, MergePatch
from kubewright.client.errors import NotFound
from kubewright.client.wait import Field, deleted

T = TypeVar("T", bound=Object)

MakeVolume = Callable[..., Awaitable[PersistentVolume]]
MakeClass = Callable[..., Awaitable[StorageClass]]


async def in_phase(client: Client, obj: T, phase: str) -> T:
    """The object once it is in that phase."""
    found = await client.wait_for(obj, Field("status.phase").equals(phase), timeout=60)
    assert found is not None
    return found


@pytest.fixture
async def made(admin: Client) -> AsyncIterator[list[Object]]:
    """What is made for the whole cluster, and goes with the test."""
    made: list[Object] = []
    yield made
    for each in made:
        with suppress(NotFound):
            await admin.delete(each)
            await admin.patch(each, MergePatch({"metadata": {"finalizers": None}}))


@pytest.fixture
def volume(admin: Client, namespace: str, made: list[Object]) -> MakeVolume:
    """`await volume(name, size, **spec)`: a volume in a class of the test's own, once it is available."""

    async def make(
        name: str, size: str = "1Gi", *, labels: JSONObject | None = None, **spec: JSONValue
    ) -> PersistentVolume:
        given: JSONObject = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "hostPath": {"path": "/data"},
            "storageClassName": namespace,
            **spec,
        }
        meta: JSONObject = {"name": f"{namespace}-{name}", "labels": labels}
        created = await admin.create(from_json(PersistentVolume, {"metadata": meta, "spec": given}))
        made.append(created)
        return await in_phase(admin, created, "Available")

    return make


@pytest.fixture
def storage_class(admin: Client, namespace: str, made: list[Object]) -> MakeClass:
    async def make(name: str, **fields: JSONValue) -> StorageClass:
        meta: JSONValue = {"name": f"{namespace}-{name}", "annotations": fields.pop("annotations", None)}
        given: JSONValue = {"metadata": meta, "provisioner": "example.com/none", **fields}
        created = await admin.create(from_json(StorageClass, given))
        made.append(created)
        return created

    return make


async def claim(client: Client, name: str, **spec: JSONValue) -> PersistentVolumeClaim:
    given: JSONObject = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": client.namespace,
        **spec,
    }
    return await client.create(from_json(PersistentVolumeClaim, {"metadata": {"name": name}, "spec": given}))


async def event(client: Client, about: Object, reason: str) -> tuple[str, str, str]:
    """The component, the type and the note of the first event of a reason."""
    namespace = about.metadata.namespace or "default"
    fields = {"involvedObject.uid": about.metadata.uid, "reason": reason}
    async with asyncio.timeout(60):
        while not (found := await client.list(Event, namespace=namespace, fields=fields)):
            await asyncio.sleep(0.02)
    return found[0].source.component or "", found[0].type or "", found[0].message or ""


async def test_a_claim_gets_the_smallest_volume_that_does(
    admin: Client, client: Client, namespace: str, volume: MakeVolume
) -> None:
    await volume("small", "1Gi")
    await volume("large", "8Gi")
    chosen = await volume("medium", "2Gi")
    await volume("shared", "2Gi", accessModes=["ReadWriteOnce", "ReadOnlyMany"])
    await volume("raw", "1500Mi", volumeMode="Block")
    labelled = await volume("labelled", "9Gi", labels={"disk": "fast"})
    bound, selected = [
        await in_phase(client, each, "Bound")
        for each in (
            await claim(client, "data", resources={"requests": {"storage": "1100Mi"}}),
            await claim(client, "fast", selector={"matchLabels": {"disk": "fast"}}),
        )
    ]
    taken = await admin.get(PersistentVolume, chosen.key)

    assert (bound.spec.volume_name, selected.spec.volume_name) == (chosen.metadata.name, labelled.metadata.name)
    assert bound.metadata.annotations == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert {name: str(size) for name, size in bound.status.capacity.items()} == {"storage": "2Gi"}
    assert bound.status.access_modes == ["ReadWriteOnce"]
    assert (taken.status.phase, taken.metadata.annotations) == (
        "Bound",
        {"pv.kubernetes.io/bound-by-controller": "yes"},
    )
    reference = taken.spec.claim_ref
    assert reference is not None
    assert (reference.api_version, reference.kind) == ("v1", "PersistentVolumeClaim")
    assert (reference.namespace, reference.name, reference.uid) == (namespace, "data", bound.metadata.uid)


async def test_claims_and_volumes_are_reserved_for_each_other(
    admin: Client, client: Client, namespace: str, volume: MakeVolume
) -> None:
    named = await volume("named")
    reserved = await volume("reserved", claimRef={"namespace": namespace, "name": "expected"})
    small = await volume("small", "500Mi")
    by_claim = await in_phase(client, await claim(client, "data", volumeName=named.metadata.name), "Bound")
    by_volume = await in_phase(client, await claim(client, "expected"), "Bound")
    too_large = await claim(client, "large", volumeName=small.metadata.name)
    too_late = await claim(client, "late", volumeName=named.metadata.name)
    first, second = [await admin.get(PersistentVolume, each.key) for each in (named, reserved)]

    assert by_claim.metadata.annotations == {"pv.kubernetes.io/bind-completed": "yes"}
    assert first.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert by_volume.spec.volume_name == reserved.metadata.name
    assert "pv.kubernetes.io/bound-by-controller" in by_volume.metadata.annotations
    assert second.metadata.annotations == {}
    assert await event(client, too_large, "VolumeMismatch") == (
        "persistentvolume-controller",
        "Warning",
        f'Cannot bind to requested volume "{small.metadata.name}": requested PV is too small',
    )
    assert await event(client, too_late, "FailedBinding") == (
        "persistentvolume-controller",
        "Warning",
        f'volume "{named.metadata.name}" already bound to a different claim.',
    )


async def test_released_volumes_are_kept_or_deleted_as_their_policy_says(
    admin: Client, client: Client, namespace: str, volume: MakeVolume
) -> None:
    policies = {"Retain": "/data", "Delete": "/data"}
    volumes = {
        policy: await volume(policy.lower(), persistentVolumeReclaimPolicy=policy, hostPath={"path": path})
        for policy, path in policies.items()
    }
    gone = await volume("gone", persistentVolumeReclaimPolicy="Delete", hostPath={"path": f"/tmp/{namespace}"})
    claims = [
        await claim(client, each.metadata.name, volumeName=each.metadata.name) for each in (*volumes.values(), gone)
    ]
    for each in claims:
        await client.delete(await in_phase(client, each, "Bound"))
    kept = await in_phase(admin, volumes["Retain"], "Released")
    failed = await in_phase(admin, volumes["Delete"], "Failed")

    assert kept.spec.claim_ref is not None
    assert failed.status.message == "host_path deleter only supports /tmp/.+ but received provided /data"
    assert await event(admin, failed, "VolumeFailedDelete") == (
        "persistentvolume-controller",
        "Warning",
        failed.status.message,
    )
    assert await admin.wait_for(gone, deleted, timeout=60) is None


async def test_a_claim_without_its_volume_is_lost(client: Client) -> None:
    lost = await claim(client, "data", volumeName="nowhere")
    await client.patch(lost, MergePatch({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}))
    await in_phase(client, lost, "Lost")

    assert await event(client, lost, "ClaimLost") == (
        "persistentvolume-controller",
        "Warning",
        "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
    )


async def test_unbound_claims_report_what_they_wait_for(
    client: Client, namespace: str, storage_class: MakeClass
) -> None:
    outside = await storage_class("outside")
    late = await storage_class("late", volumeBindingMode="WaitForFirstConsumer")
    static = await storage_class("static", provisioner="kubernetes.io/no-provisioner")
    without = await claim(client, "without", storageClassName="")
    unknown = await claim(client, "unknown")
    provisioned = await claim(client, "outside", storageClassName=outside.metadata.name)
    waiting = await claim(client, "late", storageClassName=late.metadata.name)
    never = await claim(client, "static", storageClassName=static.metadata.name)
    binder = "persistentvolume-controller"

    assert await event(client, without, "FailedBinding") == (
        binder,
        "Normal",
        "no persistent volumes available for this claim and no storage class is set",
    )
    assert await event(client, unknown, "ProvisioningFailed") == (
        binder,
        "Warning",
        f'storageclass.storage.k8s.io "{namespace}" not found',
    )
    assert await event(client, provisioned, "ExternalProvisioning") == (
        binder,
        "Normal",
        "Waiting for a volume to be created either by the external provisioner 'example.com/none' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered.",
    )
    assert await event(client, waiting, "WaitForFirstConsumer") == (
        binder,
        "Normal",
        "waiting for first consumer to be created before binding",
    )
    assert await event(client, never, "ProvisioningFailed") == (
        binder,
        "Warning",
        "no volume plugin matched name: kubernetes.io/no-provisioner",
    )
    assert (await client.get(PersistentVolumeClaim, "outside")).metadata.annotations == {
        "volume.beta.kubernetes.io/storage-provisioner": "example.com/none",
        "volume.kubernetes.io/storage-provisioner": "example.com/none",
    }
    assert (await client.get(PersistentVolumeClaim, "late")).status.phase == "Pending"


async def test_a_claim_without_a_class_gets_the_default_one(client: Client, storage_class: MakeClass) -> None:
    default: JSONObject = {"storageclass.kubernetes.io/is-default-class": "true"}
    first = await storage_class("a", annotations=default)
    await storage_class("b", annotations=default)
    bare: JSONObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    given = from_json(PersistentVolumeClaim, {"metadata": {"name": "data"}, "spec": bare})
    async with asyncio.timeout(60):
        # The server watches the classes, and may be a little behind.
        while not (made := await client.create(given, dry_run=True)).spec.storage_class_name:
            await asyncio.sleep(0.02)
    none = await claim(client, "none", storageClassName="")

    # Of classes that were made in different seconds the newest.
    assert made.spec.storage_class_name in (first.metadata.name, first.metadata.name[:-1] + "b")
    assert none.spec.storage_class_name == ""


async def test_an_ephemeral_volume_has_a_claim_of_its_pod(client: Client) -> None:
    template: JSONValue = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": client.namespace,
        },
    }
    spec: JSONValue = {
        "containers": [{"name": "main", "image": "busybox"}],
        "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}],
    }
    pod = await client.create(from_json(Pod, {"metadata": {"name": "p"}, "spec": spec}))
    async with asyncio.timeout(60):
        while (made := await client.find(PersistentVolumeClaim, "p-scratch")) is None:
            await asyncio.sleep(0.02)

    assert [(owner.uid, owner.controller, owner.block_owner_deletion) for owner in made.metadata.owner_references] == [
        (pod.metadata.uid, True, True)
    ]
    assert made.metadata.labels == {"a": "b"}
