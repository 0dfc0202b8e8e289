from __future__ import annotations

import asyncio
import re

import msgspec
import pytest
import yaml

from kubewright.api.apps.v1 import Deployment
from kubewright.api.authorization.v1 import SelfSubjectAccessReview
from kubewright.api.core.v1 import ConfigMap, Namespace, Node, Pod
from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from kubewright.client import Client
from kubewright.client.errors import Forbidden
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager.permissions import MAX_AT_ONCE, Permission, ResourceName, explain, missing_permissions
from kubewright.testing.namespaces import unique_name


@pytest.fixture(params=["embedded", "real"])
def plane(request: pytest.FixtureRequest) -> ControlPlane:
    found: ControlPlane = request.getfixturevalue(f"{request.param}_control_plane")
    return found


async def may(client: Client, user: str, *rules: PolicyRule, namespace: str = "") -> None:
    """Bind rules to a user, in one namespace or everywhere."""
    name = unique_name("permissions")
    subjects = [Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io")]
    kind = "Role" if namespace else "ClusterRole"
    reference = RoleRef(api_group="rbac.authorization.k8s.io", kind=kind, name=name)
    if namespace:
        meta = ObjectMeta(name=name, namespace=namespace)
        await client.create(Role(metadata=meta, rules=list(rules)))
        await client.create(RoleBinding(metadata=meta, subjects=subjects, role_ref=reference))
    else:
        meta = ObjectMeta(name=name)
        await client.create(ClusterRole(metadata=meta, rules=list(rules)))
        await client.create(ClusterRoleBinding(metadata=meta, subjects=subjects, role_ref=reference))


async def test_only_missing_permissions_are_reported(plane: ControlPlane) -> None:
    name = unique_name("operator")
    async with plane.client() as admin, plane.client(plane.add_user(name)) as client:
        await admin.create(Namespace(metadata=ObjectMeta(name=name)))
        await may(admin, name, PolicyRule(api_groups=[""], resources=["pods"], verbs=["get", "list"]))
        await may(
            admin, name, PolicyRule(api_groups=["apps"], resources=["deployments/scale"], verbs=["*"]), namespace=name
        )
        wanted = [
            Permission(Pod, "get", "list", "watch", "delete"),
            Permission(Pod, "list"),
            Permission("apps/deployments/scale", "patch", namespace=name),
            Permission(Deployment, "get", namespace=name),
            Permission(ConfigMap, "get", namespace=name, name="settings"),
        ]
        lacking = await missing_permissions(client, wanted)
        assert [(each.permission, each.resource) for each in lacking] == [
            (Permission(Pod, "watch", "delete"), ResourceName("", "pods")),
            (Permission(Deployment, "get", namespace=name), ResourceName("apps", "deployments")),
            (Permission(ConfigMap, "get", namespace=name, name="settings"), ResourceName("", "configmaps")),
        ]
        assert {each.user for each in lacking} == {name}
        assert explain(lacking) == (
            f'watching and deleting pods is not permitted: User "{name}" cannot watch, delete resource "pods" in '
            'API group "" at the cluster scope\n'
            f'reading deployments.apps is not permitted: User "{name}" cannot get resource "deployments" in '
            f'API group "apps" in the namespace "{name}"\n'
            f'reading "settings" of configmaps is not permitted: User "{name}" cannot get resource "configmaps" in '
            f'API group "" in the namespace "{name}"\n'
            "add to its ClusterRole:\n"
            '- apiGroups: [""]\n'
            '  resources: ["pods"]\n'
            '  verbs: ["watch", "delete"]\n'
            f'add to its Role in the namespace "{name}":\n'
            '- apiGroups: ["apps"]\n'
            '  resources: ["deployments"]\n'
            '  verbs: ["get"]\n'
            '- apiGroups: [""]\n'
            '  resources: ["configmaps"]\n'
            '  resourceNames: ["settings"]\n'
            '  verbs: ["get"]'
        )
        await admin.delete(Namespace, name)


async def test_the_rules_that_are_printed_are_those_that_were_missing(plane: ControlPlane) -> None:
    """Pasted into roles they are all it takes."""
    name = unique_name("operator")
    async with plane.client() as admin, plane.client(plane.add_user(name)) as client:
        await admin.create(Namespace(metadata=ObjectMeta(name=name)))
        wanted = [
            Permission(Pod, "list", "*"),
            Permission("/pods/log", "get", namespace=name),
            Permission("apps/deployments/scale", "patch"),
            Permission("example.com/widgets", "list", namespace=name, name="mine"),
        ]
        printed = explain(await missing_permissions(client, wanted))
        headings = ["add to its ClusterRole:\n", f'add to its Role in the namespace "{name}":\n']
        everywhere, here = printed.partition(headings[0])[2].split(headings[1])
        for text, namespace in (everywhere, ""), (here, name):
            rules = [msgspec.convert(rule, PolicyRule) for rule in yaml.safe_load(text)]
            await may(admin, name, *rules, namespace=namespace)
        await eventually_permitted(client, wanted)
        await admin.delete(Namespace, name)


async def eventually_permitted(client: Client, wanted: list[Permission]) -> None:
    """The real server needs a moment to notice roles."""
    async with asyncio.timeout(30):
        while await missing_permissions(client, wanted):
            await asyncio.sleep(0.05)


async def test_nothing_is_missing_for_a_cluster_admin(plane: ControlPlane) -> None:
    async with plane.client() as client:
        assert (
            await missing_permissions(client, [Permission(Pod, "*"), Permission("example.com/widgets", "list")]) == []
        )
        assert await missing_permissions(client, []) == []
    assert explain([]) == ""


async def test_kinds_known_only_by_name_are_checked_by_the_servers_plural(
    embedded_control_plane: EmbeddedControlPlane,
) -> None:
    user = embedded_control_plane.add_user("operator")
    async with embedded_control_plane.client() as admin, embedded_control_plane.client(user) as client:
        # Irregular, and therefore not what would be guessed.
        endpoints = PolicyRule(api_groups=[""], resources=["endpoints"], verbs=["list"])
        await may(admin, "operator", endpoints)
        # Discovery is for the authenticated; the embedded control plane's users are.
        known = Dynamic.of("v1", "Endpoints")
        unknown = Dynamic.of("example.com/v1", "Widget")
        lacking = await missing_permissions(client, [Permission(known, "list"), Permission(unknown, "list")])
        assert [each.resource for each in lacking] == [ResourceName("example.com", "widgets")]


async def test_each_verb_is_checked_once_and_not_all_at_the_same_time(
    embedded_control_plane: EmbeddedControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with embedded_control_plane.client() as client:
        create, under_way, max_under_way, reviews = client.create, 0, 0, 0

        async def counted(review: SelfSubjectAccessReview) -> SelfSubjectAccessReview:
            nonlocal under_way, max_under_way, reviews
            under_way += 1
            reviews += 1
            max_under_way = max(max_under_way, under_way)
            try:
                return await create(review)
            finally:
                under_way -= 1

        monkeypatch.setattr(client, "create", counted)
        permissions = [Permission(f"example.com/kind{number}", "get", "list") for number in range(50)]
        await missing_permissions(client, permissions * 2)
        assert reviews == 100
        assert 1 <= max_under_way <= MAX_AT_ONCE


async def test_a_failed_access_review_is_an_error_not_a_permission(
    embedded_control_plane: EmbeddedControlPlane,
) -> None:
    async with embedded_control_plane.client() as client:
        embedded_control_plane.faults.fail(
            lambda target: target.resource == "selfsubjectaccessreviews", code=403, message="no", times=None
        )
        with pytest.raises(Forbidden):
            await missing_permissions(client, [Permission(Pod, "get", "list")])


@pytest.mark.parametrize(
    ("kind", "resource", "subresource", "group"),
    [
        ("pods", "pods", "", ""),
        ("/pods/log", "pods", "log", ""),
        ("apps/deployments", "deployments", "", "apps"),
        ("apps/deployments/scale", "deployments", "scale", "apps"),
        ("example.com/widgets", "widgets", "", "example.com"),
    ],
)
async def test_resources_are_named_in_text(
    embedded_control_plane: EmbeddedControlPlane, kind: str, resource: str, subresource: str, group: str
) -> None:
    async with embedded_control_plane.client(embedded_control_plane.add_user("nobody")) as client:
        [found] = await missing_permissions(client, [Permission(kind, "get")])
        assert found.resource == ResourceName(group, resource, subresource)


@pytest.mark.parametrize("kind", ["", "pods/log", "apps/", "apps/a/b/c", "/", "apps//scale"])
def test_text_that_names_no_resource_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{kind}" does not name a resource: expected "pods", ')):
        Permission(kind, "get")


def test_a_subresource_without_its_group_is_explained() -> None:
    with pytest.raises(ValueError, match=re.escape('write "/pods/log"')):
        Permission("pods/log", "get")


@pytest.mark.parametrize(
    ("verbs", "found"), [((), "found none"), (("get", "List", "wa tch"), "found 'List', 'wa tch'")]
)
def test_verbs_that_are_none_are_refused(verbs: tuple[str, ...], found: str) -> None:
    with pytest.raises(ValueError, match=re.escape('Permission(Pod) needs verbs such as "get"')) as error:
        Permission(Pod, *verbs)
    assert str(error.value).endswith(found)


def test_cluster_scoped_kinds_are_not_checked_in_a_namespace() -> None:
    with pytest.raises(ValueError, match=re.escape("Permission(Node) is not in any namespace: leave out")):
        Permission(Node, "get", namespace="shop")


def test_permissions_are_shown_as_they_are_written() -> None:
    assert str(Permission(Pod, "list", "watch")) == 'Permission(Pod, "list", "watch")'
    assert str(Permission("/pods/log", "get", namespace="shop")) == 'Permission("/pods/log", "get", namespace="shop")'
    assert repr([Permission("pods", "get", name="web")]) == '[Permission("pods", "get", name="web")]'


def test_permissions_for_the_same_are_equal() -> None:
    permissions = [Permission(Pod, "list", "list", "watch", namespace="shop", name="web") for _ in range(2)]

    assert permissions[0] == permissions[1]
    assert len(set(permissions)) == 1
    assert permissions[0] != Permission(Pod, "list", "watch", namespace="shop")
    assert permissions[0] != Permission(Pod, "watch", "list", namespace="shop", name="web")
