from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.api.markers import JSONValue
from kubewright.api.resources import Object
from kubewright.api.storage.v1 import VolumeAttributesClass
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, deleted
from kubewright.controlplane.controllers.runtime import BuiltInController
from kubewright.controlplane.controllers.storage_protection import (
    AttributesClassProtection,
    ClaimProtection,
    VolumeProtection,
)

CLAIM: dict[str, JSONValue] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME: dict[str, JSONValue] = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "hostPath": {"path": "/data"},
}
CONTAINER: JSONValue = {"name": "main", "image": "busybox"}
OF_CLAIM: JSONValue = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


async def claim(client: Client, namespace: str, name: str = "data", **metadata: JSONValue) -> PersistentVolumeClaim:
    given: JSONValue = {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": CLAIM}
    return await client.create(from_json(PersistentVolumeClaim, given))


async def pod(client: Client, namespace: str, *, volume: JSONValue = OF_CLAIM, node: str = "node-1") -> Pod:
    spec: JSONValue = {"containers": [CONTAINER], "volumes": [volume], "nodeName": node or None}
    return await client.create(from_json(Pod, {"metadata": {"name": "p", "namespace": namespace}, "spec": spec}))


async def is_held(client: Client, obj: Object, finalizer: str) -> bool:
    """Whether it is still there and protected when the controller has dealt with what came later."""
    return (await client.get(type(obj), obj.key)).metadata.finalizers == [finalizer]


async def settled(client: Client, namespace: str) -> None:
    """The controller of claims has come past everything that happened before."""
    await client.delete(await claim(client, namespace, "later"))
    await client.wait_for(PersistentVolumeClaim, "later", deleted, namespace=namespace)


async def test_an_unused_claim_is_released(
    client: Client, namespace: str, start: Callable[[BuiltInController], None]
) -> None:
    start(ClaimProtection(client))
    created = await claim(client, namespace)
    await client.delete(created)

    assert await client.wait_for(created, deleted) is None


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
async def test_a_claim_stays_as_long_as_a_pod_with_a_node_mentions_it(
    client: Client, pod_namespace: str, start: Callable[[BuiltInController], None], phase: str
) -> None:
    created, user = await claim(client, pod_namespace), await pod(client, pod_namespace)
    await client.status.patch(user, MergePatch({"status": {"phase": phase}}))
    start(ClaimProtection(client))
    await client.delete(created)
    await settled(client, pod_namespace)

    assert await is_held(client, created, "kubernetes.io/pvc-protection")
    await client.delete(user, grace_period=0)
    assert await client.wait_for(created, deleted) is None


async def test_a_pod_without_a_node_holds_no_claim(
    client: Client, pod_namespace: str, start: Callable[[BuiltInController], None]
) -> None:
    start(ClaimProtection(client))
    created = await claim(client, pod_namespace)
    await pod(client, pod_namespace, node="")
    await client.delete(created)

    assert await client.wait_for(created, deleted) is None


async def test_the_claim_of_an_ephemeral_volume_is_held_by_the_pod_it_was_made_for(
    client: Client, pod_namespace: str, start: Callable[[BuiltInController], None]
) -> None:
    volume: JSONValue = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}
    user = await pod(client, pod_namespace, volume=volume)
    owner: dict[str, JSONValue] = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": user.metadata.uid}
    own = await claim(client, pod_namespace, "p-scratch", ownerReferences=[{**owner, "controller": True}])
    start(ClaimProtection(client))
    await client.delete(own)
    await settled(client, pod_namespace)
    held = await is_held(client, own, "kubernetes.io/pvc-protection")
    # A finalizer of the pod must not keep the claim: it may be waiting for just that.
    await client.patch(user, MergePatch({"metadata": {"finalizers": ["example.com/hold"]}}))
    await client.delete(user, grace_period=0)
    gone = await client.wait_for(own, deleted)
    await client.patch(user, MergePatch({"metadata": {"finalizers": None}}))

    assert held
    assert gone is None


async def test_a_claim_of_the_same_name_is_not_the_one_of_an_ephemeral_volume(
    client: Client, pod_namespace: str, start: Callable[[BuiltInController], None]
) -> None:
    start(ClaimProtection(client))
    volume: JSONValue = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}
    await pod(client, pod_namespace, volume=volume)
    foreign = await claim(client, pod_namespace, "p-scratch")
    await client.delete(foreign)

    assert await client.wait_for(foreign, deleted) is None


async def test_a_volume_is_released_when_it_is_not_bound(
    client: Client, namespace: str, start: Callable[[BuiltInController], None]
) -> None:
    bound, free = [
        await client.create(from_json(PersistentVolume, {"metadata": {"name": f"{namespace}-{name}"}, "spec": VOLUME}))
        for name in ("bound", "free")
    ]
    bound.status.phase = "Bound"
    bound = await client.status.update(bound)
    start(VolumeProtection(client))
    await client.delete(bound)
    await client.delete(free)

    assert await client.wait_for(free, deleted) is None
    assert await is_held(client, bound, "kubernetes.io/pv-protection")
    bound = await client.get(PersistentVolume, bound.key)
    bound.status.phase = "Released"
    await client.status.update(bound)
    assert await client.wait_for(bound, deleted) is None


async def test_an_attributes_class_is_released_when_neither_volumes_nor_claims_have_it(
    client: Client, namespace: str, start: Callable[[BuiltInController], None]
) -> None:
    name = f"{namespace}-fast"
    given: JSONValue = {"metadata": {"name": name}, "driverName": "csi.example.com", "parameters": {"iops": "1"}}
    fast = await client.create(from_json(VolumeAttributesClass, given))
    spec: JSONValue = {
        **VOLUME,
        "hostPath": None,
        "csi": {"driver": "csi.example.com", "volumeHandle": "x"},
        "volumeAttributesClassName": name,
    }
    volume = await client.create(from_json(PersistentVolume, {"metadata": {"name": name}, "spec": spec}))
    wanting = await client.create(
        from_json(
            PersistentVolumeClaim,
            {
                "metadata": {"name": "data", "namespace": namespace},
                "spec": {**CLAIM, "volumeAttributesClassName": name},
            },
        )
    )
    for controller in (AttributesClassProtection(client), ClaimProtection(client), VolumeProtection(client)):
        start(controller)
    await client.delete(fast)
    for user in (volume, wanting):
        assert await is_held(client, fast, "kubernetes.io/vac-protection")
        await client.delete(user)
        await client.wait_for(user, deleted)

    assert await client.wait_for(fast, deleted) is None


async def test_the_finalizer_is_put_on_again_where_it_is_missing(
    client: Client, namespace: str, start: Callable[[BuiltInController], None]
) -> None:
    start(ClaimProtection(client))
    created = await claim(client, namespace)
    await client.patch(created, MergePatch({"metadata": {"finalizers": None}}))

    assert await client.wait_for(created, Field("metadata.finalizers[0]").equals("kubernetes.io/pvc-protection"))
