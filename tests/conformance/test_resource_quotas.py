"""Resource quotas: what counts, what is refused, and what a quota shows."""

from __future__ import annotations

import asyncio

from tests.conformance.asking import Answer, Ask

from kubewright.api.codec import from_json, to_json
from kubewright.api.core.v1 import ConfigMap, PersistentVolumeClaim, Pod, ResourceQuota, Service
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.client import Client, MergePatch
from kubewright.client.errors import Forbidden


async def quota(client: Client, name: str, hard: JSONObject, **spec: JSONValue) -> ResourceQuota:
    """A new quota, once it is counted."""
    given: JSONValue = {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}
    created = await client.create(from_json(ResourceQuota, given))
    async with asyncio.timeout(60):
        while not created.status.used:
            await asyncio.sleep(0.01)
            created = await client.get(ResourceQuota, name)
    return created


async def used(client: Client, name: str, expected: JSONObject) -> JSONValue:
    """The usage of a quota, once it is as expected, or after a while."""
    found: JSONValue = None
    for _ in range(1000):
        found = to_json((await client.get(ResourceQuota, name)).status.used)
        if found == expected:
            break
        await asyncio.sleep(0.02)
    return found


async def refusal(client: Client, obj: Object) -> str:
    # As long as the server has not heard of a new quota, it lets everything pass.
    for _ in range(1000):
        try:
            await client.create(obj, dry_run=True)
        except Forbidden as refused:
            return refused.status.message
        await asyncio.sleep(0.01)
    raise AssertionError(f"{obj.key} was not refused")


def pod(name: str, resources: JSONValue = None, **spec: JSONValue) -> Pod:
    container: JSONValue = {"name": "main", "image": "busybox", "resources": resources or {}}
    return from_json(Pod, {"metadata": {"name": name}, "spec": {"containers": [container], **spec}})


async def test_the_objects_of_a_namespace_are_counted_and_limited(client: Client) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name="before")))
    hard: JSONObject = {
        "configmaps": "4",
        "count/secrets": "1",
        "services": "2",
        "services.nodeports": "1",
        "requests.storage": "3Gi",
        "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "0",
    }
    # The namespace has a ConfigMap from the beginning.
    created = await quota(client, "q", hard)
    initial: JSONObject = {**dict.fromkeys(hard, "0"), "configmaps": "2"}
    at_first = await used(client, "q", initial)
    service = from_json(Service, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    open_service = from_json(
        Service,
        {
            "metadata": {"name": "t"},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]},
        },
    )
    claim: JSONObject = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
        "storageClassName": "slow",
    }
    stored = await client.create(from_json(PersistentVolumeClaim, {"metadata": {"name": "c"}, "spec": claim}))
    await client.create(service)
    after: JSONObject = {**initial, "services": "1", "requests.storage": "2Gi"}
    counted = await used(client, "q", after)
    too_much = await refusal(client, from_json(PersistentVolumeClaim, {"metadata": {"name": "d"}, "spec": claim}))
    too_open = await refusal(client, open_service)
    no_class = await refusal(
        client,
        from_json(
            PersistentVolumeClaim,
            {
                "metadata": {"name": "d"},
                "spec": {**claim, "resources": {"requests": {"storage": "1"}}, "storageClassName": "fast"},
            },
        ),
    )
    await client.delete(stored)

    assert to_json(created.status.hard) == hard
    assert at_first == initial
    assert counted == after
    assert too_much == (
        'persistentvolumeclaims "d" is forbidden: exceeded quota: q, '
        "requested: requests.storage=2Gi, used: requests.storage=2Gi, limited: requests.storage=3Gi"
    )
    assert too_open == (
        'services "t" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, '
        "limited: services.nodeports=1"
    )
    assert no_class.startswith(
        'persistentvolumeclaims "d" is forbidden: exceeded quota: q, requested: fast.storageclass'
    )
    freed: JSONObject = {**after, "requests.storage": "0"}
    assert await used(client, "q", freed) == freed


async def test_pods_count_by_what_they_request(client: Client) -> None:
    await quota(client, "compute", {"pods": "3", "requests.cpu": "1", "limits.memory": "1Gi"})
    full: JSONValue = {"requests": {"cpu": "400m"}, "limits": {"memory": "256Mi"}}
    unnamed = await refusal(client, pod("a"))
    first, second = [await client.create(pod(name, full)) for name in ("a", "b")]
    two: JSONObject = {"pods": "2", "requests.cpu": "800m", "limits.memory": "512Mi"}
    counted = await used(client, "compute", two)
    too_much = await refusal(client, pod("c", full))
    await client.status.patch(first, MergePatch({"status": {"phase": "Succeeded"}}))
    one: JSONObject = {"pods": "1", "requests.cpu": "400m", "limits.memory": "256Mi"}
    after_end = await used(client, "compute", one)
    await client.delete(second, grace_period=0)
    none: JSONObject = {"pods": "0", "requests.cpu": "0", "limits.memory": "0"}

    assert unnamed == (
        'pods "a" is forbidden: failed quota: compute: must specify limits.memory for: main; requests.cpu for: main'
    )
    assert counted == two
    assert too_much == (
        'pods "c" is forbidden: exceeded quota: compute, requested: requests.cpu=400m, used: requests.cpu=800m, '
        "limited: requests.cpu=1"
    )
    assert after_end == one
    assert await used(client, "compute", none) == none


async def test_a_quota_may_be_about_some_pods_only(client: Client) -> None:
    await quota(client, "besteffort", {"pods": "1"}, scopes=["BestEffort"])
    await quota(client, "deadline", {"pods": "0"}, scopes=["Terminating"])
    expression: JSONValue = {"scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical"]}
    await quota(client, "critical", {"pods": "0"}, scopeSelector={"matchExpressions": [expression]})
    small: JSONValue = {"requests": {"cpu": "1m"}}
    ending = await refusal(client, pod("x", small, activeDeadlineSeconds=5))
    critical = await refusal(client, pod("x", small, priorityClassName="system-cluster-critical"))
    await client.create(pod("a"))
    second = await refusal(client, pod("x"))
    await client.create(pod("c", small))

    assert (
        second == 'pods "x" is forbidden: exceeded quota: besteffort, requested: pods=1, used: pods=1, limited: pods=1'
    )
    assert ending == 'pods "x" is forbidden: exceeded quota: deadline, requested: pods=1, used: pods=0, limited: pods=0'
    assert critical.endswith("exceeded quota: critical, requested: pods=1, used: pods=0, limited: pods=0")
    assert await used(client, "besteffort", {"pods": "1"}) == {"pods": "1"}


async def test_a_pod_that_is_resized_is_charged_for_the_difference(client: Client, ask: Ask) -> None:
    await quota(client, "q", {"requests.cpu": "1"})
    await refusal(client, pod("b", {"requests": {"cpu": "2"}}))
    await client.create(pod("a", {"requests": {"cpu": "500m"}}))

    async def resized(cpu: str) -> Answer:
        container: JSONObject = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        path = "/api/v1/namespaces/NAMESPACE/pods/a/resize"
        change: JSONObject = {"spec": {"containers": [container]}}
        return await ask("PATCH", path, change, "application/strategic-merge-patch+json")

    exceeded = "requested: requests.cpu=1500m, used: requests.cpu=500m, limited: requests.cpu=1"
    refused = (403, "Forbidden", f'pods "a" is forbidden: exceeded quota: q, {exceeded}')
    assert (await resized("2")).refusal == refused
    assert (await resized("800m")).code == 200
    assert await used(client, "q", {"requests.cpu": "800m"}) == {"requests.cpu": "800m"}
