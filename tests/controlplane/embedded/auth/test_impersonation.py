from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.impersonation import Impersonator
from kubewright.controlplane.embedded.auth.users import MASTERS, NODE_NAME, UserInfo

if TYPE_CHECKING:
    from tests.controlplane.embedded.auth.conftest import World

JANE = UserInfo("jane", ("dev",))
ROOT = UserInfo("root", (MASTERS,))
DEV: JSONValue = {"kind": "Group", "name": "dev"}
GROUP = "authentication.k8s.io"


def listing(user: UserInfo, resource: str = "pods") -> Attributes:
    return Attributes(user, "list", "", "v1", resource, namespace="home")


def as_(name: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [("Accept", "application/json"), ("Impersonate-User", name), *more]


def refusal(impersonator: Impersonator, headers: list[tuple[str, str]], attributes: Attributes) -> str:
    with pytest.raises(StatusError) as refused:
        impersonator.impersonate(headers, attributes)
    return refused.value.message


def test_without_the_headers_one_is_oneself(world: World) -> None:
    impersonator = Impersonator(world.authorizer)

    assert impersonator.impersonate([("Accept", "*/*")], listing(JANE)) is None
    assert impersonator.impersonate([("Impersonate-User", "")], listing(JANE)) is None


def test_every_header_becomes_part_of_the_user(world: World) -> None:
    headers = [
        ("impersonate-user", "bob"),
        ("IMPERSONATE-GROUP", "g"),
        ("Impersonate-Group", "h"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-example.com%2fScope", "a"),
        ("Impersonate-Extra-Example.com%2fscope", "b"),
    ]

    found = Impersonator(world.authorizer).impersonate(headers, listing(ROOT))

    assert found is not None
    assert found.constraint == "impersonate:user-info"
    assert found.user == UserInfo("bob", ("g", "h", "system:authenticated"), "7", {"example.com/scope": ("a", "b")})


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        (as_("system:anonymous"), ("system:unauthenticated",)),
        (
            as_("system:serviceaccount:home:robot"),
            ("system:serviceaccounts", "system:serviceaccounts:home", "system:authenticated"),
        ),
        (as_("system:serviceaccount:home:robot", ("Impersonate-Group", "g")), ("g", "system:authenticated")),
        (as_("system:node:n1"), ("system:nodes", "system:authenticated")),
        (as_("bob", ("Impersonate-Group", "system:unauthenticated")), ("system:unauthenticated",)),
        (as_("bob", ("Impersonate-Group", MASTERS)), (MASTERS, "system:authenticated")),
    ],
)
def test_groups_follow_from_the_name(world: World, headers: list[tuple[str, str]], groups: tuple[str, ...]) -> None:
    found = Impersonator(world.authorizer).impersonate(headers, listing(ROOT))

    assert found is not None
    assert found.user.groups == groups


def test_anything_without_a_user_is_a_bad_request(world: World) -> None:
    headers = [("Impersonate-Group", "bob"), ("Impersonate-Uid", "5"), ("Impersonate-Extra-a%2fB", "v")]
    impersonator = Impersonator(world.authorizer)

    assert refusal(impersonator, headers, listing(ROOT)) == (
        'requested &user.DefaultInfo{Name:"", UID:"5", Groups:[]string{"bob"}, '
        'Extra:map[string][]string{"a/b":[]string{"v"}}} without impersonating a user name'
    )
    assert refusal(impersonator, [("Impersonate-Uid", "5")], listing(ROOT)) == (
        'requested &user.DefaultInfo{Name:"", UID:"5", Groups:[]string(nil), Extra:map[string][]string(nil)} '
        "without impersonating a user name"
    )


def test_a_user_who_may_not_impersonate_gets_the_refusal_of_the_first_way(world: World) -> None:
    impersonator = Impersonator(world.authorizer)

    assert refusal(impersonator, as_("bob"), listing(JANE)) == (
        'pods is forbidden: User "jane" cannot impersonate-on:user-info:list resource "pods" in API group "" '
        'in the namespace "home"'
    )
    path = Attributes(JANE, "get", path="/metrics", resource_request=False)
    assert refusal(impersonator, as_("bob"), path) == (
        'forbidden: User "jane" cannot impersonate-on:user-info:get path "/metrics"'
    )
    account = as_("system:serviceaccount:home:robot")
    assert "cannot impersonate-on:serviceaccount:list" in refusal(impersonator, account, listing(JANE))
    assert "cannot impersonate-on:arbitrary-node:list" in refusal(impersonator, as_("system:node:x"), listing(JANE))
    assert refusal(impersonator, [*account, ("Impersonate-Group", "x")], listing(JANE)) == (
        'serviceaccounts "robot" is forbidden: User "jane" cannot impersonate resource "serviceaccounts" '
        'in API group "" in the namespace "home"'
    )


def test_the_older_right_is_checked_for_every_part(world: World) -> None:
    world.role("r", {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]})
    world.bind("b", "r", DEV)
    impersonator = Impersonator(world.authorizer)

    found = impersonator.impersonate(as_("bob"), listing(JANE))

    assert found is not None
    assert (found.user.name, found.constraint) == ("bob", "")
    scope = "at the cluster scope"
    expected = {
        ("Impersonate-Group", "x"): f'groups "x" is forbidden: User "jane" cannot impersonate resource "groups" '
        f'in API group "" {scope}',
        ("Impersonate-Uid", "x"): f'uids.{GROUP} "x" is forbidden: User "jane" cannot impersonate resource "uids" '
        f'in API group "{GROUP}" {scope}',
        ("Impersonate-Extra-Foo", "x"): f'userextras.{GROUP} "x" is forbidden: User "jane" cannot impersonate '
        f'resource "userextras/foo" in API group "{GROUP}" {scope}',
    }
    # What worked last is tried first, so its refusal is the one that is returned from now on.
    assert {header: refusal(impersonator, as_("bob", header), listing(JANE)) for header in expected} == expected
    assert refusal(impersonator, as_("alice"), listing(JANE)) == (
        f'users "alice" is forbidden: User "jane" cannot impersonate resource "users" in API group "" {scope}'
    )


def test_the_constrained_right_is_for_certain_users_and_certain_deeds(world: World) -> None:
    world.role(
        "r",
        {
            "verbs": ["impersonate:user-info"],
            "apiGroups": [GROUP],
            "resources": ["users", "groups"],
            "resourceNames": ["carol", "g", MASTERS],
        },
        {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]},
    )
    world.bind("b", "r", DEV)
    impersonator = Impersonator(world.authorizer)

    found = impersonator.impersonate(as_("carol", ("Impersonate-Group", "g")), listing(JANE))

    assert found is not None
    assert (found.user.groups, found.constraint) == (("g", "system:authenticated"), "impersonate:user-info")
    assert "cannot impersonate-on:user-info:list" in refusal(impersonator, as_("carol"), listing(JANE, "secrets"))
    assert refusal(impersonator, as_("alice"), listing(JANE)) == (
        f'users.{GROUP} "alice" is forbidden: User "jane" cannot impersonate:user-info resource "users" '
        f'in API group "{GROUP}" at the cluster scope'
    )
    assert refusal(impersonator, as_("carol", ("Impersonate-Group", MASTERS)), listing(JANE)) == (
        f'groups.{GROUP} "{MASTERS}" is forbidden: User "jane" cannot impersonate:user-info resource "groups" '
        f'in API group "{GROUP}" at the cluster scope: impersonating the system:masters group is not allowed'
    )
    assert "impersonating an invalid key in extra is not allowed: extra.key: Invalid value" in refusal(
        impersonator, as_("carol", ("Impersonate-Extra-Foo", "x")), listing(JANE)
    )


def test_many_groups_may_be_allowed_at_once(world: World) -> None:
    world.role(
        "r",
        {"verbs": ["impersonate:user-info"], "apiGroups": [GROUP], "resources": ["users"]},
        {
            "verbs": ["impersonate:user-info"],
            "apiGroups": [GROUP],
            "resources": ["groups"],
            "resourceNames": ["*"],
        },
        {"verbs": ["impersonate-on:user-info:list"], "apiGroups": [""], "resources": ["pods"]},
    )
    world.bind("b", "r", DEV)
    impersonator = Impersonator(world.authorizer)
    groups = [("Impersonate-Group", name) for name in "abcd"]

    assert impersonator.impersonate(as_("bob", *groups), listing(JANE)) is not None
    assert 'groups.authentication.k8s.io "a" is forbidden' in refusal(
        impersonator, as_("bob", *groups[:3]), listing(JANE)
    )


def test_a_pods_service_account_may_act_as_the_node_it_runs_on(world: World) -> None:
    agent = UserInfo("system:serviceaccount:home:agent", ("dev",), extra={NODE_NAME: ("n1",)})
    world.role(
        "r",
        {"verbs": ["impersonate:associated-node"], "apiGroups": [GROUP], "resources": ["nodes"]},
        {"verbs": ["impersonate-on:associated-node:list"], "apiGroups": [""], "resources": ["pods"]},
    )
    world.bind("b", "r", DEV)

    found = Impersonator(world.authorizer).impersonate(as_("system:node:n1"), listing(agent))

    assert found is not None
    assert found.constraint == "impersonate:associated-node"
    # Another node is the right of others.
    assert "impersonate-on:arbitrary-node" in refusal(
        Impersonator(world.authorizer), as_("system:node:n2"), listing(agent)
    )
