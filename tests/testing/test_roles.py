from __future__ import annotations

import pytest

from kubewright import Forbidden, Manager, ObjectMeta, Permission, Request, controller_for
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap, Namespace, Pod, Secret
from kubewright.api.rbac.v1 import PolicyRule, Role, RoleBinding, RoleRef
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.testing import compare_permissions, recorded_permissions, restricted_client
from kubewright.testing.audit_file import AuditFileRequest


async def test_a_restricted_client_may_do_what_is_permitted_and_nothing_else(
    control_plane: ControlPlane, namespace: str
) -> None:
    permitted = [Permission(ConfigMap, "create", "list", namespace=namespace)]
    async with restricted_client(control_plane, permitted) as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="it", namespace=namespace)))
        await client.get(ConfigMap, "it", namespace=namespace)  # comes with list
        for request in (
            client.delete(ConfigMap, "it", namespace=namespace),
            client.list(Secret, namespace=namespace),
            client.list(ConfigMap, namespace="default"),
        ):
            with pytest.raises(Forbidden):
                await request


async def test_the_roles_of_a_restricted_client_go_after_a_failed_block_too(
    embedded_control_plane: EmbeddedControlPlane,
) -> None:
    """Or each further test with a user of that name would fail, whatever it is about."""
    permitted = [Permission(ConfigMap, "list"), Permission(Secret, "list", namespace="default")]
    for _ in range(2):
        with pytest.raises(AssertionError):
            async with restricted_client(embedded_control_plane, permitted, user="operator"):
                raise AssertionError


async def test_the_least_permissions_are_those_that_requests_needed(
    embedded_control_plane: EmbeddedControlPlane,
) -> None:
    plane = embedded_control_plane
    user = plane.add_user("operator", ["system:masters"])
    async with plane.client(user) as client, plane.client() as admin:
        await admin.create(Namespace(metadata=ObjectMeta(name="shop")))
        own = client.in_namespace("shop")

        async def reconcile(request: Request) -> None:
            """Does nothing."""

        manager = Manager(client)
        controller_for(manager, Pod).complete(reconcile)
        async with manager.running():
            await manager.synced()
        await own.apply(ConfigMap(metadata=ObjectMeta(name="applied"), data={"a": "b"}))
        await own.status.apply(Namespace(metadata=ObjectMeta(name="shop", labels={"a": "b"})))
        await own.create(Secret(metadata=ObjectMeta(name="mine")))
        await own.get(Secret, "mine")
        for name in ("one", "two"):
            await own.create(Lease(metadata=ObjectMeta(name=name)))
            await own.get(Lease, name)
        rules = [PolicyRule(api_groups=[""], resources=["pods"], verbs=["get"])]
        await own.create(Role(metadata=ObjectMeta(name="it"), rules=rules))
        reference = RoleRef(kind="Role", name="it", api_group="rbac.authorization.k8s.io")
        await own.create(RoleBinding(metadata=ObjectMeta(name="it"), role_ref=reference))
    used = recorded_permissions(plane.audit.events, "operator")
    assert used.permissions == [
        Permission("/pods", "list", "watch"),
        Permission("/configmaps", "create", "patch", namespace="shop"),
        Permission("/namespaces/status", "patch", namespace="shop"),
        Permission("/secrets", "create", namespace="shop"),
        Permission("/secrets", "get", namespace="shop", name="mine"),
        Permission("coordination.k8s.io/leases", "create", "get", namespace="shop"),
        Permission("rbac.authorization.k8s.io/rolebindings", "create", namespace="shop"),
        Permission("rbac.authorization.k8s.io/roles", "create", namespace="shop"),
    ]
    bind, escalate = used.warnings
    assert "it writes rolebindings" in bind
    assert 'needs the verb "bind"' in bind
    assert "it writes roles" in escalate
    assert 'the verb "escalate" on roles' in escalate
    assert {each.namespace for each in used.everywhere() if not each.name} == {""}
    assert recorded_permissions(plane.audit.events, "stranger").permissions == []


def test_definitions_are_granted_by_name_however_many_there_are() -> None:
    """Who may change all of them, or all configurations of webhooks, may do everything in the cluster."""
    group, resource = "apiextensions.k8s.io", "customresourcedefinitions"
    requests = [
        AuditFileRequest("operator", verb, group, resource, "", "", name, is_apply=False)
        for name in ("cats.example.com", "dogs.example.com")
        for verb in ("watch", "patch")
    ]
    assert recorded_permissions(requests, "operator").permissions == [
        Permission(f"{group}/{resource}", "list", "patch", "watch", name=name)
        for name in ("cats.example.com", "dogs.example.com")
    ]


def test_requests_that_no_permission_can_have_are_left_out() -> None:
    """A server logs what it is asked for, whether or not there is such a thing."""
    requests = [
        AuditFileRequest("operator", verb, group, "cats", "", "", "tom", is_apply=False)
        for verb, group in (("get", "foo"), ("list", "foo"), ("", "example.com"), ("get", "example.com"))
    ]
    used = recorded_permissions(requests, "operator")
    assert used.permissions == [Permission("example.com/cats", "get")]
    assert used.warnings == [
        'requests to the API group "foo" are left out: those without a dot are Kubernetes\' own, and it is none'
    ]


async def test_what_was_refused_is_needed(embedded_control_plane: EmbeddedControlPlane) -> None:
    plane = embedded_control_plane
    async with restricted_client(plane, [Permission(Pod, "list")], user="operator") as client:
        with pytest.raises(Forbidden):
            await client.delete(Pod, "it", namespace="default")
    used = recorded_permissions(plane.audit.events, "operator").permissions
    assert used == [Permission("/pods", "delete", namespace="default")]


def test_declared_and_used_permissions_are_compared() -> None:
    declared = [
        Permission(Pod, "list", "watch", "create"),
        Permission(ConfigMap, "*", namespace="shop"),
        Permission(ConfigMap, "update", subresource="finalizers"),
        Permission(Role, "escalate", name="reader"),
        Permission("rbac.authorization.k8s.io/clusterroles", "bind", name="reader"),
        Permission("coordination.k8s.io/leases", "get", "update", namespace="ops", name="it"),
    ]
    used = [
        Permission("/pods", "get", "list", "watch", namespace="shop"),
        Permission("/pods", "delete", namespace="shop"),
        Permission("/configmaps", "patch", namespace="shop"),
        Permission("/configmaps", "patch", namespace="stock"),
        Permission("coordination.k8s.io/leases", "get", "update", namespace="ops", name="it"),
        Permission("coordination.k8s.io/leases", "get", namespace="ops", name="other"),
    ]
    assert compare_permissions(declared, used).splitlines() == [
        "declared and never used: create pods",
        'used and not declared: get leases.coordination.k8s.io "other" in the namespace "ops"',
        'used and not declared: delete pods in the namespace "shop"',
        'used and not declared: patch configmaps in the namespace "stock"',
    ]
    assert compare_permissions(declared, [*declared, Permission("/pods", "get")]) == ""
