"""Limit ranges, runtime classes and default ingress classes: what they fill in, and what they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.conformance.asking import Answer, Ask

from kubewright.api.codec import from_json, to_json
from kubewright.api.core.v1 import LimitRange, PersistentVolumeClaim, Pod
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.networking.v1 import Ingress, IngressClass
from kubewright.api.node.v1 import RuntimeClass
from kubewright.api.resources import Object
from kubewright.client import Client
from kubewright.client.errors import Forbidden

CONTAINER: JSONObject = {
    "type": "Container",
    "default": {"cpu": "500m", "memory": "256Mi"},
    "defaultRequest": {"cpu": "100m"},
    "max": {"cpu": "1"},
    "min": {"memory": "64Mi"},
    "maxLimitRequestRatio": {"cpu": "5"},
}
LIMITS: list[JSONValue] = [
    CONTAINER,
    {"type": "Pod", "max": {"memory": "1Gi"}},
    {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}},
]


def pod(*resources: JSONValue, name: str = "a", init: JSONValue = None, **spec: JSONValue) -> Pod:
    containers: list[JSONValue] = [
        {"name": f"c{index}", "image": "busybox", "resources": each or {}}
        for index, each in enumerate(resources or (None,))
    ]
    before: JSONValue = [{"name": "init", "image": "busybox", "resources": init}] if init is not None else []
    given: JSONValue = {"containers": containers, "initContainers": before, **spec}
    return from_json(Pod, {"metadata": {"name": name}, "spec": given})


async def refusal(client: Client, obj: Object) -> str:
    with pytest.raises(Forbidden) as refused:
        await client.create(obj, dry_run=True)
    return refused.value.status.message


@pytest.fixture
async def limits(client: Client) -> None:
    await client.create(from_json(LimitRange, {"metadata": {"name": "limits"}, "spec": {"limits": LIMITS}}))


@pytest.mark.usefixtures("limits")
async def test_containers_get_the_limits_of_their_namespace(client: Client) -> None:
    created = await client.create(pod({"limits": {"cpu": "300m"}}, None, init={"requests": {"memory": "128Mi"}}))
    first, second = (to_json(container.resources) for container in created.spec.containers)
    init = to_json(created.spec.init_containers[0].resources)

    assert first == {
        "limits": {"cpu": "300m", "memory": "256Mi"},
        "requests": {"cpu": "300m", "memory": "256Mi"},
    }
    assert second == {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}}
    assert init == {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}}
    assert created.metadata.annotations == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: memory request for container c0; memory limit for container c0; "
            "cpu, memory request for container c1; cpu, memory limit for container c1; "
            "cpu request for init container init; cpu, memory limit for init container init"
        )
    }
    assert created.status.qos_class == "Burstable"


@pytest.mark.usefixtures("limits")
async def test_what_is_beyond_the_limits_is_refused(client: Client) -> None:
    large: JSONValue = {"limits": {"cpu": "2"}}
    small: JSONValue = {"limits": {"memory": "32Mi"}}
    wide: JSONValue = {"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}
    heavy: JSONValue = {"limits": {"memory": "600Mi"}}
    prefix = 'pods "a" is forbidden: '

    assert await refusal(client, pod(large)) == f"{prefix}maximum cpu usage per Container is 1, but limit is 2"
    assert (
        await refusal(client, pod(small)) == f"{prefix}minimum memory usage per Container is 64Mi, but request is 32Mi"
    )
    assert await refusal(client, pod(wide)) == (
        f"{prefix}cpu max limit to request ratio per Container is 5, but provided ratio is 10.000000"
    )
    assert (
        await refusal(client, pod(heavy, heavy)) == f"{prefix}maximum memory usage per Pod is 1Gi, but limit is 1200Mi"
    )
    assert await refusal(client, pod(large, small)) == (
        f"{prefix}[maximum cpu usage per Container is 1, but limit is 2, "
        "minimum memory usage per Container is 64Mi, but request is 32Mi]"
    )


@pytest.mark.usefixtures("limits")
async def test_a_pod_is_resized_within_the_limits(client: Client, ask: Ask) -> None:
    amounts: JSONObject = {"cpu": "500m", "memory": "128Mi"}
    await client.create(pod({"limits": amounts, "requests": amounts}))

    async def resized(cpu: str) -> Answer:
        wanted: JSONValue = {"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}
        change: JSONObject = {"spec": {"containers": [{"name": "c0", "resources": wanted}]}}
        path = "/api/v1/namespaces/NAMESPACE/pods/a/resize"
        return await ask("PATCH", path, change, "application/strategic-merge-patch+json")

    why = "maximum cpu usage per Container is 1, but limit is 2"
    assert (await resized("2")).refusal == (403, "Forbidden", f'pods "a" is forbidden: {why}')
    assert (await resized("1")).code == 200


@pytest.mark.usefixtures("limits")
async def test_claims_stay_within_the_limits(client: Client) -> None:
    def claim(size: str) -> PersistentVolumeClaim:
        spec: JSONValue = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return from_json(PersistentVolumeClaim, {"metadata": {"name": "data"}, "spec": spec})

    prefix = 'persistentvolumeclaims "data" is forbidden: '
    assert await refusal(client, claim("10Gi")) == (
        f"{prefix}maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 10Gi"
    )
    assert await refusal(client, claim("1Mi")) == (
        f"{prefix}minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"
    )
    within = await client.create(claim("2Gi"), dry_run=True)
    assert within.metadata.name == "data"


@pytest.fixture
async def sandbox(admin: Client, namespace: str) -> AsyncIterator[str]:
    given: JSONValue = {
        "metadata": {"name": namespace},
        "handler": "sandbox",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {
            "nodeSelector": {"runtime": "sandbox"},
            "tolerations": [{"key": "sandbox", "operator": "Exists"}],
        },
    }
    created = await admin.create(from_json(RuntimeClass, given))
    yield namespace
    await admin.delete(created)


async def test_a_pod_takes_over_what_its_runtime_class_says(client: Client, sandbox: str) -> None:
    created = await client.create(pod(runtimeClassName=sandbox, nodeSelector={"disk": "fast"}))
    prefix = 'pods "b" is forbidden: '

    assert to_json(created.spec.overhead) == {"cpu": "250m"}
    assert created.spec.node_selector == {"disk": "fast", "runtime": "sandbox"}
    assert "sandbox" in [toleration.key for toleration in created.spec.tolerations]
    assert await refusal(client, pod(name="b", runtimeClassName="nowhere")) == (
        f'{prefix}pod rejected: RuntimeClass "nowhere" not found'
    )
    assert await refusal(client, pod(name="b", runtimeClassName=sandbox, overhead={"cpu": "1"})) == (
        f"{prefix}pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    )
    assert await refusal(client, pod(name="b", overhead={"cpu": "1"})) == (
        f"{prefix}pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    )
    assert await refusal(client, pod(name="b", runtimeClassName=sandbox, nodeSelector={"runtime": "other"})) == (
        f"{prefix}conflict: runtimeClass.scheduling.nodeSelector[runtime] = sandbox; "
        "pod.spec.nodeSelector[runtime] = other"
    )


async def test_an_ingress_without_a_class_gets_the_default_one(admin: Client, client: Client, namespace: str) -> None:
    meta: JSONValue = {"name": namespace, "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    default = await admin.create(from_json(IngressClass, {"metadata": meta, "spec": {"controller": "example.com/a"}}))
    spec: JSONObject = {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}
    plain = from_json(Ingress, {"metadata": {"name": "a"}, "spec": spec})
    own = from_json(Ingress, {"metadata": {"name": "b"}, "spec": {**spec, "ingressClassName": "own"}})
    async with asyncio.timeout(60):
        # The server watches the classes, and may be a little behind.
        while not (created := await client.create(plain, dry_run=True)).spec.ingress_class_name:
            await asyncio.sleep(0.02)
    kept = await client.create(own, dry_run=True)
    await admin.delete(default)

    assert created.spec.ingress_class_name == namespace
    assert kept.spec.ingress_class_name == "own"
