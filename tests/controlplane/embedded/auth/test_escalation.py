from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.auth.escalation import RoleWrite, escalation
from kubewright.controlplane.embedded.auth.users import MASTERS, UserInfo

if TYPE_CHECKING:
    from tests.controlplane.embedded.auth.conftest import World

JANE = UserInfo("jane", ("dev", "system:authenticated"))
SUBJECT: JSONValue = {"kind": "User", "name": "jane"}
READS_PODS: JSONValue = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
READS_SECRETS: JSONValue = {
    "verbs": ["get", "list"],
    "apiGroups": [""],
    "resources": ["secrets"],
    "resourceNames": ["b", "a"],
}
GROUP = "rbac.authorization.k8s.io"


def role(*rules: JSONValue, **fields: JSONValue) -> JSONObject:
    return {"metadata": {"name": "r"}, "rules": list(rules), **fields}


def binding(name: str, kind: str = "ClusterRole") -> JSONObject:
    return {"metadata": {"name": "b"}, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name}}


def test_permissions_that_one_holds_may_be_granted(world: World) -> None:
    world.role("reader", READS_PODS)
    world.bind("readers", "reader", SUBJECT)

    assert escalation(world.authorizer, RoleWrite(JANE, "clusterroles", role(READS_PODS))) is None


def test_permissions_that_one_does_not_hold_are_listed(world: World) -> None:
    world.role("reader", READS_PODS)
    world.bind("readers", "reader", SUBJECT)
    wanted = role(READS_PODS, READS_SECRETS, {"verbs": ["get"], "nonResourceURLs": ["/x"]})

    refused = escalation(world.authorizer, RoleWrite(JANE, "clusterroles", wanted))

    assert refused is not None
    assert (refused.code, refused.details) == (403, {"name": "r", "group": GROUP, "kind": "clusterroles"})
    assert refused.message == (
        'clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["dev" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get" "list"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}'
    )


def test_rights_in_a_namespace_may_be_granted_there_only(world: World) -> None:
    world.role("reader", READS_PODS)
    world.bind("readers", "reader", SUBJECT, namespace="home")

    assert escalation(world.authorizer, RoleWrite(JANE, "roles", role(READS_PODS), namespace="home")) is None
    assert escalation(world.authorizer, RoleWrite(JANE, "roles", role(READS_PODS), namespace="away")) is not None
    assert escalation(world.authorizer, RoleWrite(JANE, "clusterroles", role(READS_PODS))) is not None


def test_roles_that_could_not_be_read_are_reported(world: World) -> None:
    world.bind("lost", "gone", SUBJECT)
    world.bind("lost too", "gone too", SUBJECT)

    refused = escalation(world.authorizer, RoleWrite(JANE, "roles", role(READS_PODS), namespace="home"))

    assert refused is not None
    assert refused.message.endswith(
        '; resolution errors: [[roles.rbac.authorization.k8s.io "gone" not found, '
        'roles.rbac.authorization.k8s.io "gone too" not found]]'
    )


def test_masters_and_users_that_may_escalate_are_exempt(world: World) -> None:
    world.role("r", {"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["clusterroles"]})
    world.bind("b", "r", SUBJECT)
    write = RoleWrite(JANE, "clusterroles", role(READS_SECRETS))

    assert escalation(world.authorizer, write) is None
    assert escalation(world.authorizer, RoleWrite(UserInfo("root", (MASTERS,)), write.plural, write.new)) is None
    assert escalation(world.authorizer, RoleWrite(JANE, "roles", role(READS_SECRETS), namespace="home")) is not None


def test_escalating_one_role_by_name_needs_a_request_with_that_name(world: World) -> None:
    """A POST has no name in its path, so the real server refuses it there."""
    world.role(
        "r", {"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["r"]}
    )
    world.bind("b", "r", SUBJECT)
    new = role(READS_SECRETS)

    assert escalation(world.authorizer, RoleWrite(JANE, "clusterroles", new)) is not None
    assert escalation(world.authorizer, RoleWrite(JANE, "clusterroles", new, old=role(), name="r")) is None


@pytest.mark.parametrize("old", [None, role(aggregationRule={"clusterRoleSelectors": [{}]})])
def test_aggregation_needs_every_permission(world: World, old: JSONObject | None) -> None:
    new = role() if old else role(aggregationRule={"clusterRoleSelectors": [{}]})
    write = RoleWrite(JANE, "clusterroles", new, old)

    refused = escalation(world.authorizer, write)
    world.role(
        "all", {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}
    )
    world.bind("b", "all", SUBJECT)

    assert refused is not None
    assert refused.message == (
        'clusterroles.rbac.authorization.k8s.io "r" is forbidden: '
        "must have cluster-admin privileges to use the aggregationRule"
    )
    assert escalation(world.authorizer, write) is None


def test_finalizers_and_owners_may_change_without_the_rights(world: World) -> None:
    old: JSONObject = {"metadata": {"name": "r", "finalizers": ["a/b"]}, "rules": [READS_SECRETS]}
    new: JSONObject = {"metadata": {"name": "r", "ownerReferences": []}, "rules": [READS_SECRETS]}
    relabelled: JSONObject = {"metadata": {"name": "r", "labels": {"a": "b"}}, "rules": [READS_SECRETS]}

    assert escalation(world.authorizer, RoleWrite(JANE, "clusterroles", new, old, name="r")) is None
    assert escalation(world.authorizer, RoleWrite(JANE, "clusterroles", relabelled, old, name="r")) is not None


def test_a_role_may_be_bound_by_users_that_hold_it_or_may_bind_it(world: World) -> None:
    world.role("secrets", READS_SECRETS)
    world.role("pods", READS_PODS)
    world.role(
        "binder", {"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["pods"]}
    )
    world.bind("b", "binder", SUBJECT)

    assert escalation(world.authorizer, RoleWrite(JANE, "rolebindings", binding("pods"), namespace="home")) is None
    refused = escalation(world.authorizer, RoleWrite(JANE, "rolebindings", binding("secrets"), namespace="home"))
    assert refused is not None
    assert refused.message.startswith('rolebindings.rbac.authorization.k8s.io "b" is forbidden: user "jane"')
    assert '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get" "list"]}' in refused.message


@pytest.mark.parametrize(
    ("plural", "namespace", "new", "code", "message"),
    [
        ("rolebindings", "home", binding("x", "Role"), 404, 'rolebindings.rbac.authorization.k8s.io "x" not found'),
        ("clusterrolebindings", "", binding("x"), 404, 'clusterrolebindings.rbac.authorization.k8s.io "x" not found'),
        ("clusterrolebindings", "", binding("x", "Role"), 400, "Namespace parameter required."),
        ("clusterrolebindings", "", binding("x", "Foo"), 500, 'unsupported role reference kind: "Foo"'),
    ],
)
def test_a_binding_to_nothing_is_refused_as_the_real_server_does(
    world: World, plural: str, namespace: str, new: JSONObject, code: int, message: str
) -> None:
    refused = escalation(world.authorizer, RoleWrite(JANE, plural, new, namespace=namespace))

    assert refused is not None
    assert (refused.code, refused.message) == (code, message)
