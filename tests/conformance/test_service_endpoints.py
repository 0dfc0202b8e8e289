"""Endpoints, EndpointSlices and mirrored ones: what a Service is behind, by kube-controller-manager and by ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from tests.conformance.workload_steps import events, eventually

from kubewright.api.codec import from_json, to_json
from kubewright.api.core.v1 import Endpoints, Event, Node, ObjectReference, Pod, ResourceQuota, Service, ServiceAccount
from kubewright.api.discovery.v1 import EndpointSlice
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import Client, MergePatch, StrategicMergePatch
from kubewright.client.wait import deleted, exists
from kubewright.testing.namespaces import unique_name

SLICES_OF = "kubernetes.io/service-name"


@pytest.fixture
async def node(admin: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A node on which nothing runs."""
    name = unique_name(request.node.name)
    made = await admin.create(from_json(Node, {"metadata": {"name": name}}))
    yield name
    await admin.delete(made)


@pytest.fixture
async def client(client: Client) -> Client:
    """Admits pods."""
    await client.wait_for(ServiceAccount, "default", exists, timeout=60)
    return client


async def pod(client: Client, node: str, name: str, ip: str, *, ready: bool, port: int = 8080) -> Pod:
    spec: JSONObject = {
        "nodeName": node,
        "containers": [{"name": "main", "image": "web", "ports": [{"name": "web", "containerPort": port}]}],
        # A node without a kubelet is soon tainted.
        "tolerations": [{"operator": "Exists"}],
    }
    made = await client.create(from_json(Pod, {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}))
    status: JSONObject = {
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [
            {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-02T03:04:05Z"},
        ],
    }
    return await client.status.patch(made, StrategicMergePatch({"status": status}))


async def service(client: Client, name: str, **spec: JSONValue) -> Service:
    given: JSONValue = {"metadata": {"name": name, "labels": {"team": "a"}}, "spec": spec}
    return await client.create(from_json(Service, given))


async def endpoints(client: Client, name: str, holds: Callable[[Endpoints], bool]) -> Endpoints:
    async with asyncio.timeout(60):
        while (found := await client.find(Endpoints, name)) is None or not holds(found):
            await asyncio.sleep(0.02)
    return found


async def slices(client: Client, name: str, holds: Callable[[list[EndpointSlice]], bool]) -> list[EndpointSlice]:
    async with asyncio.timeout(60):
        while not holds(found := await client.list(EndpointSlice, labels={SLICES_OF: name})):
            await asyncio.sleep(0.02)
    return found


def readiness(found: list[EndpointSlice]) -> list[bool]:
    """Whether each endpoint is ready, sorted. A controller may learn of pods and of their state one after the other."""
    return sorted(endpoint.conditions.ready is True for slice_ in found for endpoint in slice_.endpoints)


def seen(slice_: EndpointSlice) -> JSONValue:
    """The slice without what is different in each run."""
    shown = to_json(slice_)
    assert isinstance(shown, dict)
    del shown["metadata"]
    assert isinstance(shown["endpoints"], list)
    shown["endpoints"].sort(key=str)
    return shown


def target(found: Pod) -> JSONValue:
    meta = found.metadata
    return {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}


PORTS: JSONValue = [
    {"name": "http", "port": 80, "targetPort": "web"},
    {"name": "admin", "port": 81, "targetPort": 9000, "appProtocol": "kubernetes.io/h2c"},
    {"name": "dns", "port": 53, "protocol": "UDP"},
]


async def test_the_pods_of_a_service_are_its_endpoints(client: Client, node: str) -> None:
    ready = await pod(client, node, "a", "10.9.0.1", ready=True)
    starting = await pod(client, node, "b", "10.9.0.2", ready=False)
    web = await service(client, "web", selector={"app": "web"}, ports=PORTS)

    written = await endpoints(
        client,
        "web",
        lambda found: any(subset.addresses and subset.not_ready_addresses for subset in found.subsets),
    )
    assert written.metadata.labels == {"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert to_json(written.subsets) == [
        {
            "addresses": [{"ip": "10.9.0.1", "nodeName": node, "targetRef": target(ready)}],
            "notReadyAddresses": [{"ip": "10.9.0.2", "nodeName": node, "targetRef": target(starting)}],
            "ports": [
                {"name": "http", "port": 8080, "protocol": "TCP"},
                {"appProtocol": "kubernetes.io/h2c", "name": "admin", "port": 9000, "protocol": "TCP"},
                {"name": "dns", "port": 53, "protocol": "UDP"},
            ],
        }
    ]

    (one,) = await slices(client, "web", lambda found: readiness(found) == [False, True])
    assert one.metadata.generate_name == "web-"
    assert one.metadata.owner_references == [web.as_owner()]
    assert one.metadata.labels == {
        "team": "a",
        SLICES_OF: "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert seen(one) == {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.9.0.1"],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "nodeName": node,
                "targetRef": target(ready),
            },
            {
                "addresses": ["10.9.0.2"],
                "conditions": {"ready": False, "serving": False, "terminating": False},
                "nodeName": node,
                "targetRef": target(starting),
            },
        ],
        "ports": [
            {"name": "http", "port": 8080, "protocol": "TCP"},
            {"name": "admin", "port": 9000, "protocol": "TCP", "appProtocol": "kubernetes.io/h2c"},
            {"name": "dns", "port": 53, "protocol": "UDP"},
        ],
    }

    # Changed labels of the service, a pod that is deleted, and one that becomes ready.
    web.metadata.labels = {"team": "b"}
    await client.patch(web)
    await client.delete(ready, grace_period=0)
    became = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:06Z"}
    await client.status.patch(starting, StrategicMergePatch({"status": {"conditions": [became]}}))
    changed = await endpoints(
        client,
        "web",
        lambda found: (
            found.metadata.labels["team"] == "b" and [one.ip for one in found.subsets[0].addresses] == ["10.9.0.2"]
        ),
    )
    assert not changed.subsets[0].not_ready_addresses
    (again,) = await slices(
        client, "web", lambda found: found[0].metadata.labels["team"] == "b" and readiness(found) == [True]
    )
    assert again.metadata.name == one.metadata.name

    await client.delete(starting, grace_period=0)
    await endpoints(client, "web", lambda found: not found.subsets)
    (empty,) = await slices(client, "web", lambda found: not found[0].endpoints)
    assert (empty.metadata.name, empty.ports) == (one.metadata.name, [])

    await client.delete(web)
    await client.wait_for(changed, deleted, timeout=60)
    await client.wait_for(empty, deleted, timeout=60)


async def test_services_without_an_address_ports_or_pods(client: Client, node: str) -> None:
    await pod(client, node, "a", "10.9.0.1", ready=False)
    await pod(client, node, "b", "10.9.0.2", ready=True, port=9090)
    await pod(client, node, "c", "10.9.0.3", ready=True)
    await service(client, "bare", clusterIP="None", selector={"app": "web"}, publishNotReadyAddresses=True)
    await service(client, "named", selector={"app": "web"}, ports=[{"port": 80, "targetPort": "web"}])
    await service(client, "lonely", selector={"app": "other"}, ports=[{"port": 80}])
    await service(client, "manual", ports=[{"port": 80}])
    await service(client, "outside", type="ExternalName", externalName="example.com", selector={"app": "web"})

    bare = await endpoints(client, "bare", lambda found: sum(len(one.addresses) for one in found.subsets) == 3)
    assert "service.kubernetes.io/headless" in bare.metadata.labels
    assert [one.ip for one in bare.subsets[0].addresses] == ["10.9.0.1", "10.9.0.2", "10.9.0.3"]
    assert bare.subsets[0].ports == []
    (headless,) = await slices(client, "bare", lambda found: bool(found) and len(found[0].endpoints) == 3)
    assert headless.metadata.labels["service.kubernetes.io/headless"] == ""
    assert headless.ports == []
    unready = next(one for one in headless.endpoints if one.addresses == ["10.9.0.1"])
    assert (unready.conditions.ready, unready.conditions.serving) == (True, False)

    # Pods with another number for the port of that name are in slices and subsets of their own.
    named = await endpoints(client, "named", lambda found: [len(one.addresses) for one in found.subsets] == [1, 1])
    assert sorted((one.ports[0].port, [two.ip for two in one.addresses]) for one in named.subsets) == [
        (8080, ["10.9.0.3"]),
        (9090, ["10.9.0.2"]),
    ]
    two = await slices(client, "named", lambda found: len(found) == 2 and readiness(found) == [False, True, True])
    assert sorted((one.ports[0].port, len(one.endpoints)) for one in two) == [(8080, 2), (9090, 1)]

    lonely = await endpoints(client, "lonely", lambda found: True)
    assert lonely.subsets == []
    (placeholder,) = await slices(client, "lonely", lambda found: len(found) == 1)
    assert (placeholder.endpoints, placeholder.ports) == ([], [])
    for name in ("manual", "outside"):
        assert await client.find(Endpoints, name) is None
        assert not await client.list(EndpointSlice, labels={SLICES_OF: name})


async def test_endpoints_that_were_written_by_hand_are_mirrored(client: Client) -> None:
    db = await service(client, "db", ports=[{"port": 5432}])
    written = await client.create(
        from_json(
            Endpoints,
            {
                "metadata": {"name": "db", "labels": {"tier": "data"}, "annotations": {"note": "x"}},
                "subsets": [
                    {
                        "addresses": [{"ip": "192.0.2.1", "hostname": "one"}, {"ip": "2001:db8::1"}],
                        "notReadyAddresses": [{"ip": "192.0.2.2"}],
                        "ports": [{"name": "sql", "port": 5432}],
                    }
                ],
            },
        )
    )
    found = await slices(client, "db", lambda found: len(found) == 2)
    four, six = sorted(found, key=lambda one: one.address_type)
    assert four.metadata.owner_references == [written.as_owner()]
    assert four.metadata.annotations == {"note": "x"}
    assert four.metadata.labels == {
        "tier": "data",
        SLICES_OF: "db",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    assert seen(four) == {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["192.0.2.1"], "conditions": {"ready": True}, "hostname": "one"},
            {"addresses": ["192.0.2.2"], "conditions": {"ready": False}},
        ],
        "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}],
    }
    assert [(one.addresses, one.conditions.ready) for one in six.endpoints] == [(["2001:db8::1"], True)]

    written.subsets[0].addresses = written.subsets[0].addresses[:1]
    await client.patch(written)
    (left,) = await slices(client, "db", lambda found: len(found) == 1)
    assert left.metadata.name == four.metadata.name
    written = await client.get(Endpoints, "db")
    written.metadata.labels["endpointslice.kubernetes.io/skip-mirror"] = "true"
    await client.patch(written)
    await slices(client, "db", lambda found: not found)
    await client.delete(db)
    await client.wait_for(written, deleted, timeout=60)


async def test_endpoints_are_preferred_by_zone_and_node(admin: Client, client: Client, node: str) -> None:
    await admin.patch(Node, node, MergePatch({"metadata": {"labels": {"topology.kubernetes.io/zone": "east"}}}))
    await pod(client, node, "a", "10.9.0.1", ready=True)
    await pod(client, node, "b", "10.9.0.2", ready=False)
    near: JSONValue = {"forZones": [{"name": "east"}]}
    wanted: dict[str, JSONValue] = {
        "PreferClose": near,
        "PreferSameZone": near,
        "PreferSameNode": {"forZones": [{"name": "east"}], "forNodes": [{"name": node}]},
    }
    for preference, hints in wanted.items():
        name = preference.lower()
        one = await service(client, name, selector={"app": "web"}, ports=[{"port": 80}], trafficDistribution=preference)
        found = await slices(client, name, lambda found: readiness(found) == [False, True])
        assert {each.addresses[0]: to_json(each.hints) for each in found[0].endpoints} == {
            "10.9.0.1": hints,
            "10.9.0.2": None,
        }
        assert {each.zone for each in found[0].endpoints} == {"east"}
    one.spec.traffic_distribution = None
    await client.patch(one)
    await slices(client, name, lambda found: all(each.hints is None for each in found[0].endpoints))


async def test_a_slice_has_a_hundred_endpoints(client: Client, node: str) -> None:
    made = await asyncio.gather(
        *(pod(client, node, f"p-{number:03}", f"10.9.1.{number}", ready=True) for number in range(101))
    )
    # Once the first Service has all of them, so has whoever writes the slices of the second.
    for name in ("first", "second"):
        await service(client, name, selector={"app": "web"}, ports=[{"port": 80}])
        await slices(client, name, lambda found: sum(len(one.endpoints) for one in found) == 101)
    before = await slices(client, "second", lambda found: sizes(found) == [1, 100])
    full = next(one for one in before if len(one.endpoints) == 100)
    gone = next(one for one in made if one.metadata.name == (full.endpoints[0].target_ref or ObjectReference()).name)
    await client.delete(gone, grace_period=0)
    await slices(client, "second", lambda found: sizes(found) == [1, 99])
    await pod(client, node, "new", "10.9.1.200", ready=True)
    after = await slices(client, "second", lambda found: sizes(found) == [1, 100])
    assert {one.metadata.name for one in after} == {one.metadata.name for one in before}


def sizes(found: list[EndpointSlice]) -> list[int]:
    return sorted(len(one.endpoints) for one in found)


async def test_what_keeps_endpoints_from_being_written_is_reported(
    admin: Client, client: Client, namespace: str
) -> None:
    hard: JSONValue = {"count/endpoints": "0", "count/endpointslices.discovery.k8s.io": "1"}
    quota = await client.create(from_json(ResourceQuota, {"metadata": {"name": "none"}, "spec": {"hard": hard}}))
    async with asyncio.timeout(60):
        while (await client.get(ResourceQuota, "none")).status.hard != quota.spec.hard:
            await asyncio.sleep(0.02)
    await pod(client, "nowhere", "a", "10.9.0.1", ready=True)
    ports: JSONValue = [{"port": 80}]
    await service(client, "web", selector={"app": "web"}, ports=ports)
    await slices(client, "web", lambda found: len(found) == 1)
    await service(client, "more", selector={"app": "other"}, ports=ports)
    over = "exceeded quota: none, requested: count/{0}={1}, used: count/{0}={1}, limited: count/{0}={1}"
    kind = "endpointslices.discovery.k8s.io"
    expected = {
        (
            namespace,
            "Service",
            "web",
            "FailedToUpdateEndpointSlices",
            f"Error updating Endpoint Slices for Service {namespace}/web: "
            f"skipping Pod a for Service {namespace}/web: Node nowhere Not Found",
            "endpoint-slice-controller",
        ),
        (
            # Those that could not be created are in no namespace yet, and events about such are in this one.
            "default",
            "Endpoints",
            "web",
            "FailedToCreateEndpoint",
            f'Failed to create endpoint for service {namespace}/web: endpoints "web" is forbidden: '
            "exceeded quota: none, requested: count/endpoints=1, used: count/endpoints=0, limited: count/endpoints=0",
            "endpoint-controller",
        ),
    }

    async def reported() -> set[tuple[str | None, ...]]:
        return {
            (
                one.metadata.namespace,
                one.involved_object.kind,
                one.involved_object.name,
                one.reason,
                one.message,
                one.source.component,
            )
            for where in (client, admin.in_namespace("default"))
            for one in await where.list(Event)
        }

    refused = f"Error updating Endpoint Slices for Service {namespace}/more: failed to create EndpointSlice for Service"
    found = await eventually(
        reported,
        lambda found: expected <= found and any(str(message).startswith(refused) for *_, message, _ in found),
    )
    # Each attempt has a name of its own.
    assert all(
        str(message).endswith(f"is forbidden: {over.format(kind, 1)}")
        for *_, message, _ in found
        if str(message).startswith(refused)
    )


async def test_of_many_addresses_a_thousand_are_mirrored(client: Client) -> None:
    await service(client, "db", ports=[{"port": 5432}])
    addresses: list[JSONValue] = [{"ip": f"192.0.{number // 250}.{number % 250}"} for number in range(1001)]
    subset: JSONObject = {"addresses": addresses, "ports": [{"port": 5432}]}
    made = await client.create(from_json(Endpoints, {"metadata": {"name": "db"}, "subsets": [subset]}))
    await slices(client, "db", lambda found: sizes(found) == [1000])
    assert await events(client, made, 1) == [
        (
            "Warning",
            "TooManyAddressesToMirror",
            "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped",
            "endpoint-slice-mirroring-controller",
        )
    ]
