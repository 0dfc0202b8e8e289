"""The objects of a new cluster: the same on both servers, but for uids and times."""

from __future__ import annotations

import asyncio
from datetime import UTC

import pytest

from kubewright.api.codec import decode_json, origin
from kubewright.api.coordination.v1 import Lease, LeaseSpec
from kubewright.api.core.v1 import Namespace, Service
from kubewright.api.flowcontrol.v1 import FlowSchema, PriorityLevelConfiguration
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.networking.v1 import IPAddress, ServiceCIDR
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from kubewright.api.resources import Object
from kubewright.api.scheduling.v1 import PriorityClass
from kubewright.api.time import MicroTime
from kubewright.client import Client
from kubewright.client.errors import Invalid
from kubewright.client.http.transport import HTTPTransport
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.auth.bootstrap import bootstrap_objects

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def described(received: Object) -> JSONObject:
    """An object without what differs between any two clusters: when, by whom, and on which port."""
    found: JSONObject = dict(mapping(decode_json(origin(received) or b"{}")))
    kept = ("name", "namespace", "labels", "annotations", "finalizers")
    found["metadata"] = {name: value for name, value in mapping(found, "metadata").items() if name in kept}
    for condition in items(found, "status", "conditions"):
        if isinstance(condition, dict):
            condition.pop("lastTransitionTime", None)
    for port in items(found, "spec", "ports"):
        if isinstance(port, dict):
            port.pop("targetPort", None)
    return {name: value for name, value in found.items() if name not in ("kind", "apiVersion")}


async def first_objects(client: Client, kind: type[Object], namespace: str | None) -> dict[str, JSONObject]:
    """Of the kinds that other tests create too, only what has a name that is known to be there."""
    found = {obj.metadata.name: described(obj) async for obj in client.list(kind, namespace=namespace)}
    if kind is Namespace:
        return {name: found[name] for name in NAMESPACES}
    if kind is PriorityClass:
        return {name: obj for name, obj in found.items() if name.startswith("system-")}
    if kind is IPAddress:
        return {name: obj for name, obj in found.items() if text(obj, "spec", "parentRef", "name") == "kubernetes"}
    return found


@pytest.mark.parametrize(
    ("kind", "namespace"),
    [
        (Namespace, None),
        (Service, "default"),
        (PriorityClass, None),
        (ServiceCIDR, None),
        (IPAddress, None),
        (FlowSchema, None),
        (PriorityLevelConfiguration, None),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
async def test_both_begin_with_the_same(
    embedded_control_plane: ControlPlane,
    real_control_plane: ControlPlane,
    kind: type[Object],
    namespace: str | None,
) -> None:
    async with embedded_control_plane.client() as ours, real_control_plane.client() as theirs:
        mine = await first_objects(ours, kind, namespace)
        async with asyncio.timeout(30):
            # kube-controller-manager completes some of them a little later.
            while (expected := await first_objects(theirs, kind, namespace)) != mine and kind is ServiceCIDR:
                await asyncio.sleep(0.05)
        assert expected
        assert mine == expected


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/api/v1/namespaces", NAMESPACES),
        ("/api/v1/namespaces/default/services", ("kubernetes",)),
        ("/api/v1/namespaces/kube-system/configmaps", ("extension-apiserver-authentication",)),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", ("system-cluster-critical",)),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", ("cluster-admin", "edit", "system:node")),
        ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", ("cluster-admin",)),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/roles", ("system:controller:bootstrap-signer",)),
    ],
)
async def test_both_have_the_same_managers_of_the_first_objects(
    embedded_control_plane: ControlPlane, real_control_plane: ControlPlane, path: str, names: tuple[str, ...]
) -> None:
    """So that a first apply meets the same managers everywhere."""
    managers: list[list[JSONValue]] = []
    for plane in (embedded_control_plane, real_control_plane):
        transport = HTTPTransport(plane.url, tls=plane.admin.ssl_context())
        async with asyncio.timeout(30):
            # The aggregation of roles is a controller's work.
            while True:
                listed = mapping(decode_json((await transport.request("GET", path, timeout=30)).body))
                found = [_managed(item) for item in items(listed, "items") if text(item, "metadata", "name") in names]
                if "edit" not in names or "clusterrole-aggregation-controller" in str(found):
                    break
                await asyncio.sleep(0.05)
        await transport.aclose()
        managers.append(found)

    assert len(managers[0]) == len(names)
    assert managers[0] == managers[1]


def _managed(item: JSONValue) -> JSONValue:
    """Without what other tests, which share the real server, added."""
    return [
        {name: value for name, value in mapping(entry).items() if name != "time"}
        for entry in items(item, "metadata", "managedFields")
        if text(entry, "manager") in ("kube-apiserver", "clusterrole-aggregation-controller")
    ]


async def test_a_lease_has_microseconds_and_is_updated_at_a_revision_only(client: Client) -> None:
    renewed = MicroTime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)
    spec = LeaseSpec(holder_identity="me", lease_duration_seconds=15, renew_time=renewed)
    created = await client.create(Lease(metadata=ObjectMeta(name="a"), spec=spec))
    stored = mapping(decode_json(origin(created) or b"{}"))
    created.metadata.resource_version = ""
    with pytest.raises(Invalid) as refused:
        await client.update(created)

    assert text(stored, "spec", "renewTime") == "2026-01-02T03:04:05.600000Z"
    assert refused.value.status.message == (
        'leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )


async def test_the_roles_and_bindings_of_a_new_server_are_the_ones_we_ship(admin: Client) -> None:
    ours = {key(found): found for found in bootstrap_objects()}

    async def theirs() -> dict[tuple[str, ...], JSONObject]:
        found = {}
        for kind in (ClusterRole, ClusterRoleBinding, Role, RoleBinding):
            async for item in admin.list(kind, labels={"kubernetes.io/bootstrapping": "rbac-defaults"}):
                received: JSONObject = {
                    **mapping(decode_json(origin(item) or b"{}")),
                    "kind": item.kind,
                    "apiVersion": item.api_version,
                }
                received["metadata"] = {
                    name: value
                    for name, value in mapping(received, "metadata").items()
                    if name in ("name", "namespace", "labels", "annotations")
                }
                found[key(received)] = received
        return found

    async with asyncio.timeout(60):
        # A controller fills in the rules of aggregated roles, one after the other.
        while (received := await theirs()) != ours and not items(received["ClusterRole", "", "admin"], "rules"):
            await asyncio.sleep(0.05)
    assert received == ours


def key(found: JSONObject) -> tuple[str, ...]:
    return text(found, "kind"), text(found, "metadata", "namespace"), text(found, "metadata", "name")
