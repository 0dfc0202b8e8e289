from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.auth.users import (
    ANONYMOUS_USER,
    UserInfo,
    authenticated,
    node_of,
    service_account_name,
    service_account_of,
)


def test_a_user_is_shown_without_what_is_empty() -> None:
    assert UserInfo("jane").document() == {"username": "jane"}
    assert UserInfo("jane", ("dev",), "7", {"k": ("v",)}).document() == {
        "username": "jane",
        "uid": "7",
        "groups": ["dev"],
        "extra": {"k": ["v"]},
    }


def test_everybody_but_the_anonymous_is_in_the_group_of_the_authenticated() -> None:
    assert authenticated(UserInfo("jane", ("dev",))).groups == ("dev", "system:authenticated")
    assert authenticated(authenticated(UserInfo("jane"))).groups == ("system:authenticated",)
    assert authenticated(ANONYMOUS_USER) is ANONYMOUS_USER


@pytest.mark.parametrize(
    ("name", "account"),
    [
        (service_account_name("home", "robot.1"), ("home", "robot.1")),
        ("system:serviceaccount:home", None),
        ("system:serviceaccount:home:a:b", None),
        ("system:serviceaccount:Home:a", None),
        ("system:serviceaccount::a", None),
        ("system:serviceaccount:home:", None),
        ("jane", None),
    ],
)
def test_a_name_is_a_service_account_only_when_both_parts_are_valid(name: str, account: tuple[str, str] | None) -> None:
    assert service_account_of(name) == account


@pytest.mark.parametrize(("name", "node"), [("system:node:n1.x", "n1.x"), ("system:node:", None), ("n1", None)])
def test_a_name_is_a_node_only_with_a_valid_node_name(name: str, node: str | None) -> None:
    assert node_of(name) == node
