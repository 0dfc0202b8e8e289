"""What the roles of a workspace, and that of the operator, permit."""

from __future__ import annotations

import pytest
from operators.user import User
from operators.user.names import RBAC, ROLE_NAMES, cluster_role_of, role_of, role_reference
from operators.user.roles import RULES
from operators.user.tests.deploying import deployed, vacant

from kubewright import Client, ControlPlane, Forbidden, ObjectMeta, Permission
from kubewright.api.core.v1 import ConfigMap, Namespace, Pod, Secret, ServiceAccount
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from kubewright.manager.permissions import missing_permissions
from kubewright.testing import Install, virtual

EVERYTHING = [PolicyRule(api_groups=["*"], resources=["*"], verbs=["*"])]
MALLORY = [Subject(kind="User", name="mallory", api_group=RBAC)]


@virtual
async def test_a_developer_reads_what_is_listed_and_nothing_else() -> None:
    permitted = [
        Permission(Pod, "get", "list", "watch", namespace="ns-alice"),
        Permission(Pod, "get", subresource="log", namespace="ns-alice"),
        Permission(ConfigMap, "list", namespace="ns-alice"),
        Permission("apps/deployments", "get", namespace="ns-alice"),
        Permission(RoleBinding, "list", namespace="ns-alice"),
    ]
    refused = [
        Permission(Secret, "get", "list", "watch", namespace="ns-alice"),
        Permission(Pod, "create", "delete", namespace="ns-alice"),
        *(
            Permission(Pod, "create", "get", subresource=each, namespace="ns-alice")
            for each in ("exec", "attach", "portforward", "proxy", "ephemeralcontainers")
        ),
        Permission(ServiceAccount, "create", subresource="token", namespace="ns-alice"),
        Permission(ServiceAccount, "impersonate", namespace="ns-alice"),
        Permission(Namespace, "patch"),
        Permission(ConfigMap, "list", namespace="default"),
    ]
    async with vacant() as (plane, admin, _):
        await admin.create(Namespace(metadata=ObjectMeta(name="ns-alice")))
        metadata = ObjectMeta(name="dev", namespace="ns-alice")
        subjects = [Subject(kind="User", name="dev", api_group=RBAC)]
        await admin.create(RoleBinding(metadata=metadata, role_ref=role_reference("Developer"), subjects=subjects))
        async with plane.client(plane.add_user("dev")) as client:
            assert await missing_permissions(client, permitted) == []
            missing = await missing_permissions(client, refused)
    assert [each.permission for each in missing] == refused


def test_no_rule_of_a_developer_has_a_wildcard() -> None:
    for rule in RULES["Developer"]:
        assert "*" not in (*rule.api_groups, *rule.resources, *rule.verbs)
        assert rule.verbs == ["get", "list", "watch"]


def test_a_role_is_known_by_its_reference() -> None:
    assert [role_of(role_reference(role)) for role in ROLE_NAMES] == [*ROLE_NAMES]
    assert role_of(RoleRef(api_group=RBAC, kind="Role", name="Owner")) == "Owner"
    assert role_of(RoleRef(api_group=RBAC, kind="Role", name="Auditor")) is None
    assert role_of(RoleRef(api_group=RBAC, kind="ClusterRole", name="cluster-admin")) is None


def bound(kind: str, name: str, namespace: str) -> RoleBinding:
    reference = RoleRef(api_group=RBAC, kind=kind, name=name)
    return RoleBinding(metadata=ObjectMeta(name="mine", namespace=namespace), role_ref=reference, subjects=MALLORY)


async def test_the_operator_gives_the_rights_of_workspaces_and_no_others(
    control_plane: ControlPlane, admin: Client, namespace: str, install: Install
) -> None:
    """Whoever has its token."""
    await install(User)
    async with deployed(control_plane) as own:
        for role in ROLE_NAMES:
            await own.apply(bound("ClusterRole", cluster_role_of(role), namespace), dry_run=True)
            written = Role(metadata=ObjectMeta(name=role, namespace=namespace), rules=EVERYTHING)
            await own.apply(written)
            with pytest.raises(Forbidden):
                await own.apply(bound("Role", role, namespace), dry_run=True)
            await own.apply(Role(metadata=written.metadata, rules=[]))
            with pytest.raises(Forbidden, match="is attempting to grant RBAC permissions not currently held"):
                await own.create(Role(metadata=ObjectMeta(name=role, namespace="default"), rules=EVERYTHING))
        with pytest.raises(Forbidden, match="is attempting to grant RBAC permissions not currently held"):
            await own.apply(Role(metadata=ObjectMeta(name="mine", namespace=namespace), rules=EVERYTHING))
        with pytest.raises(Forbidden):
            await own.apply(bound("ClusterRole", "cluster-admin", namespace))
        for cluster_role in ("mine", cluster_role_of("Owner")):
            with pytest.raises(Forbidden):
                await own.apply(ClusterRole(metadata=ObjectMeta(name=cluster_role), rules=EVERYTHING))
        reference = role_reference("Owner")
        with pytest.raises(Forbidden):
            await own.create(ClusterRoleBinding(metadata=ObjectMeta(name="mine"), role_ref=reference, subjects=MALLORY))
        for elsewhere in (namespace, "kube-system"):
            with pytest.raises(Forbidden):
                await own.list(Secret, namespace=elsewhere)
            with pytest.raises(Forbidden):
                await own.token("default", namespace=elsewhere)
