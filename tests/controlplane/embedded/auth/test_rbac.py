from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.auth import rbac
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.rbac import Decision
from kubewright.controlplane.embedded.auth.users import MASTERS, UserInfo

if TYPE_CHECKING:
    from tests.controlplane.embedded.auth.conftest import World

JANE = UserInfo("jane", ("dev",))
READS_PODS: JSONValue = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}


def subject(kind: str, name: str, namespace: str = "") -> JSONValue:
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def pods(verb: str = "get", namespace: str = "home", name: str = "", user: UserInfo = JANE) -> Attributes:
    return Attributes(user, verb, resource="pods", namespace=namespace, name=name)


def test_without_any_binding_nothing_is_allowed(world: World) -> None:
    assert world.authorizer.authorize(pods()) == Decision(False)


def test_masters_may_do_everything_and_no_reason_is_given(world: World) -> None:
    master = UserInfo("root", (MASTERS,))

    assert world.authorizer.authorize(pods(user=master)) == Decision(True)
    path = Attributes(master, "get", path="/x", resource_request=False)
    assert world.authorizer.authorize(path) == Decision(True)


def test_a_cluster_binding_counts_everywhere_and_the_reason_names_it(world: World) -> None:
    world.role("reader", READS_PODS)
    world.bind("readers", "reader", subject("Group", "dev"))

    reason = 'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "dev"'
    assert world.authorizer.authorize(pods()) == Decision(True, reason)
    assert world.authorizer.authorize(pods(namespace="")) == Decision(True, reason)
    assert not world.authorizer.authorize(pods("delete")).allowed


def test_a_role_binding_counts_in_its_namespace_alone(world: World) -> None:
    world.role("reader", READS_PODS)
    world.bind("b", "reader", subject("User", "jane"), namespace="home")

    reason = 'RBAC: allowed by RoleBinding "b/home" of ClusterRole "reader" to User "jane"'
    assert world.authorizer.authorize(pods()) == Decision(True, reason)
    assert not world.authorizer.authorize(pods(namespace="away")).allowed
    assert not world.authorizer.authorize(pods(namespace="")).allowed


def test_a_role_is_found_only_in_the_namespace_of_its_binding(world: World) -> None:
    world.role("reader", READS_PODS, namespace="away")
    world.bind("b", "reader", subject("User", "jane"), namespace="home", kind="Role")

    missing = 'RBAC: role.rbac.authorization.k8s.io "reader" not found'
    assert world.authorizer.authorize(pods()) == Decision(False, missing)
    assert world.authorizer.authorize(pods(namespace="away")) == Decision(False)


def test_a_service_account_without_namespace_is_one_of_the_binding(world: World) -> None:
    world.role("reader", READS_PODS)
    world.bind("b", "reader", subject("ServiceAccount", "robot"), namespace="home")
    world.bind("c", "reader", subject("ServiceAccount", "robot"))

    here = UserInfo("system:serviceaccount:home:robot")
    reason = 'RBAC: allowed by RoleBinding "b/home" of ClusterRole "reader" to ServiceAccount "robot/home"'
    assert world.authorizer.authorize(pods(user=here)) == Decision(True, reason)
    # In a ClusterRoleBinding there is no such namespace, so it binds no user.
    assert not world.authorizer.authorize(pods(user=here, namespace="away")).allowed


def test_a_user_that_is_called_like_a_group_is_not_in_it(world: World) -> None:
    world.role("reader", READS_PODS)
    world.bind("b", "reader", subject("Group", "jane"))

    assert not world.authorizer.authorize(pods(user=UserInfo("jane"))).allowed


def test_names_limit_a_rule_to_these_objects(world: World) -> None:
    world.role("one", {"verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["web"]})
    world.bind("b", "one", subject("User", "jane"))

    assert world.authorizer.authorize(pods(name="web")).allowed
    assert not world.authorizer.authorize(pods(name="other")).allowed
    assert not world.authorizer.authorize(pods("list")).allowed
    # The other way round too: an answer for one name is never given for another.
    assert world.authorizer.authorize(pods(name="web")).allowed


def test_a_binding_to_a_missing_role_is_reported_but_does_not_hide_others(world: World) -> None:
    world.bind("a", "gone", subject("User", "jane"))
    world.bind("b", "gone too", subject("User", "jane"), namespace="home", kind="Role")
    denied = world.authorizer.authorize(pods())
    world.role("reader", READS_PODS)
    world.bind("c", "reader", subject("User", "jane"))

    assert denied.reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
        'role.rbac.authorization.k8s.io "gone too" not found]'
    )
    assert world.authorizer.authorize(pods()).allowed


def test_the_first_subject_that_applies_is_reported(world: World) -> None:
    world.role("reader", READS_PODS)
    world.bind("b", "reader", subject("User", "bob"), subject("Group", "dev"), subject("User", "jane"))

    assert world.authorizer.authorize(pods()).reason.endswith('to Group "dev"')


def test_paths_are_allowed_by_cluster_bindings_only(world: World) -> None:
    world.role("probe", {"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]})
    world.bind("b", "probe", subject("User", "jane"), namespace="home")
    path = Attributes(JANE, "get", path="/healthz/ping", resource_request=False)
    before = world.authorizer.authorize(path).allowed
    world.bind("c", "probe", subject("User", "jane"))

    assert not before
    assert world.authorizer.authorize(path).allowed


def test_an_answer_changes_when_a_role_changes(world: World) -> None:
    world.role("reader", READS_PODS)
    world.bind("b", "reader", subject("User", "jane"))
    before = world.authorizer.authorize(pods()).allowed
    world.objects["ClusterRole"][0] = {"metadata": {"name": "reader"}, "rules": []}
    world.authorizer.invalidate()

    assert before
    assert not world.authorizer.authorize(pods()).allowed


def test_groups_are_part_of_the_user(world: World) -> None:
    """The same name with other groups, as impersonation makes them, is another user."""
    world.role("reader", READS_PODS)
    world.bind("b", "reader", subject("Group", "dev"))

    assert world.authorizer.authorize(pods()).allowed
    assert not world.authorizer.authorize(pods(user=UserInfo("jane", ("ops",)))).allowed


@pytest.mark.parametrize(
    ("attributes", "message", "details"),
    [
        (
            pods("list", namespace=""),
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope',
            {"kind": "pods"},
        ),
        (
            Attributes(JANE, "get", "", "v1", "pods", "log", "home", "web"),
            'pods "web" is forbidden: User "jane" cannot get resource "pods/log" in API group "" '
            'in the namespace "home"',
            {"name": "web", "kind": "pods"},
        ),
        (
            Attributes(JANE, "delete", "apps", "v1", "deployments", "", "home", "web"),
            'deployments.apps "web" is forbidden: User "jane" cannot delete resource "deployments" in API group '
            '"apps" in the namespace "home"',
            {"name": "web", "group": "apps", "kind": "deployments"},
        ),
        (
            Attributes(JANE, "post", path="/a<b", resource_request=False),
            'forbidden: User "jane" cannot post path "/a&lt;b"',
            {},
        ),
        (
            Attributes(UserInfo('a"b'), "get", path="/", resource_request=False),
            'forbidden: User "a\\"b" cannot get path "/"',
            {},
        ),
    ],
)
def test_a_refusal_is_worded_as_kubernetes_words_it(
    world: World, attributes: Attributes, message: str, details: dict[str, str]
) -> None:
    with pytest.raises(StatusError) as refused:
        world.authorizer.require(attributes)

    assert refused.value.message == message
    assert (refused.value.code, refused.value.reason, refused.value.details) == (403, "Forbidden", details)


def test_a_refusal_reports_the_roles_that_are_missing(world: World) -> None:
    world.bind("a", "gone", subject("User", "jane"))

    with pytest.raises(StatusError) as refused:
        world.authorizer.require(pods())

    assert refused.value.message.endswith(
        'in the namespace "home": RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
    )


def test_endlessly_many_questions_do_not_fill_the_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac, "_REMEMBERED", 10)
    world.role("probe", {"verbs": ["get"], "nonResourceURLs": ["/5*"]})
    world.bind("b", "probe", subject("Group", "dev"))

    answers = [
        world.authorizer.authorize(
            Attributes(UserInfo(f"user-{number}", ("dev",)), "get", path=f"/{number}", resource_request=False)
        ).allowed
        for number in range(100)
    ]

    assert sum(answers) == 11
    assert len(world.authorizer._decisions) <= 10
    assert len(world.authorizer._grants) <= 10
