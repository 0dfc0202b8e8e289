"""Claims, volumes and classes of attributes: what holds them while they are in use, and when they may grow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.conformance.asking import Answer, Ask

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Namespace, PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.resources import Object
from kubewright.api.storage.v1 import VolumeAttributesClass
from kubewright.client import Client
from kubewright.client.wait import Field, deleted
from kubewright.controlplane.embedded.apimachinery.document import at, text

CLAIMS = "/api/v1/namespaces/NAMESPACE/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SPEC: JSONObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
MERGE = "application/merge-patch+json"

DOUBLE: JSONObject = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
CANNOT_GROW = (
    'persistentvolumeclaims "data" is forbidden: only dynamically provisioned pvc can be resized and '
    "the storageclass that provisions the pvc must support resize"
)

Grow = Callable[..., Awaitable[Answer]]


async def claim(client: Client, name: str = "data", **spec: JSONValue) -> PersistentVolumeClaim:
    given: JSONValue = {"metadata": {"name": name}, "spec": {**SPEC, **spec}}
    return await client.create(from_json(PersistentVolumeClaim, given))


async def test_a_deleted_claim_is_released_when_no_pod_uses_it(client: Client) -> None:
    created = await claim(client)
    spec: JSONValue = {
        "containers": [{"name": "main", "image": "busybox"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "nodeName": "nowhere",
    }
    user = await client.create(from_json(Pod, {"metadata": {"name": "user"}, "spec": spec}))
    await client.delete(created)
    free = await claim(client, "free")
    await client.delete(free)
    await client.wait_for(free, deleted, timeout=60)
    held = await client.get(PersistentVolumeClaim, "data")
    await client.delete(user, grace_period=0)

    assert held.metadata.finalizers == ["kubernetes.io/pvc-protection"]
    assert await client.wait_for(created, deleted, timeout=60) is None


async def test_a_namespace_with_a_claim_ends(admin: Client, client: Client, namespace: str) -> None:
    await claim(client)
    space = await admin.get(Namespace, namespace)
    await admin.delete(space)

    assert await admin.wait_for(space, deleted, timeout=60) is None


async def test_unused_volumes_and_classes_are_released(admin: Client, namespace: str) -> None:
    volume: JSONValue = {
        "metadata": {"name": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}},
    }
    fast: JSONValue = {"metadata": {"name": namespace}, "driverName": "a.example.com", "parameters": {"a": "b"}}
    created: list[Object] = [
        await admin.create(from_json(PersistentVolume, volume)),
        await admin.create(from_json(VolumeAttributesClass, fast)),
    ]
    held = [each.metadata.finalizers for each in created]
    for each in created:
        await admin.delete(each)

    assert held == [["kubernetes.io/pv-protection"], ["kubernetes.io/vac-protection"]]
    for each in created:
        assert await admin.wait_for(each, deleted, timeout=60) is None


# Growth


@pytest.fixture
async def grow(admin: Client, client: Client, ask: Ask, namespace: str) -> AsyncIterator[Grow]:
    """`await grow(bound=…, allowed=…)`: the answer to twice the size for a claim of a class that allows it or not."""

    async def grown(*, allowed: bool | None, bound: bool = True) -> Answer:
        given: JSONObject = {"metadata": {"name": namespace}, "provisioner": "example.com/none"}
        await ask("POST", CLASSES, given if allowed is None else {**given, "allowVolumeExpansion": allowed})
        volume: JSONValue = {
            "metadata": {"name": namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/data"},
                "storageClassName": namespace,
            },
        }
        if bound:
            await admin.create(from_json(PersistentVolume, volume))
        created = await claim(client, storageClassName=namespace, volumeName=namespace if bound else None)
        if bound:
            await client.wait_for(created, Field("status.phase").equals("Bound"), timeout=60)
        return await ask("PATCH", f"{CLAIMS}/data", DOUBLE, MERGE)

    yield grown
    await ask("DELETE", f"{CLAIMS}/data")
    await ask("DELETE", f"/api/v1/persistentvolumes/{namespace}")
    await ask("DELETE", f"{CLASSES}/{namespace}")


async def answered_with(code: int, ask: Ask, patch: JSONObject) -> Answer:
    """The answer to a patch of the claim, once the server has heard of the change of a class: it watches them."""
    async with asyncio.timeout(30):
        while (answer := await ask("PATCH", f"{CLAIMS}/data", patch, MERGE)).code != code:
            await asyncio.sleep(0.01)
    return answer


@pytest.mark.parametrize("allowed", [False, None])
async def test_a_claim_whose_class_does_not_allow_it_cannot_grow(grow: Grow, allowed: bool | None) -> None:
    refused = await grow(allowed=allowed)

    assert refused.refusal == (403, "Forbidden", CANNOT_GROW)


async def test_a_claim_whose_class_allows_it_grows(grow: Grow, ask: Ask) -> None:
    await grow(allowed=True)
    grown = await answered_with(200, ask, DOUBLE)

    assert (grown.code, at(grown.body, "spec", "resources", "requests", "storage")) == (200, "2Gi")


async def test_a_claim_whose_class_is_gone_cannot_grow(grow: Grow, ask: Ask, namespace: str) -> None:
    await grow(allowed=True)
    await answered_with(200, ask, DOUBLE)
    await ask("DELETE", f"{CLASSES}/{namespace}")
    refused, size = None, 3
    async with asyncio.timeout(60):
        # Ever larger: the server may not have heard of the deletion yet, and what it has granted is no growth any more.
        while refused is None or refused.code != 403:
            refused = await ask(
                "PATCH", f"{CLAIMS}/data", {"spec": {"resources": {"requests": {"storage": f"{size}Gi"}}}}, MERGE
            )
            size += 1
    labelled = await ask("PATCH", f"{CLAIMS}/data", {"metadata": {"labels": {"a": "b"}}}, MERGE)

    assert refused.refusal == (403, "Forbidden", CANNOT_GROW)
    assert labelled.code == 200


async def test_a_claim_that_is_not_bound_does_not_grow(grow: Grow) -> None:
    refused = await grow(allowed=True, bound=False)

    assert (refused.code, text(refused.body, "reason")) == (422, "Invalid")
