from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.auth.rules import RBACRule, not_covered, rules_of


@pytest.mark.parametrize(
    ("resources", "resource", "subresource", "allowed"),
    [
        (("pods",), "pods", "", True),
        (("pods",), "pods", "log", False),
        (("pods/log",), "pods", "log", True),
        (("pods/log",), "pods", "", False),
        (("*/scale",), "deployments", "scale", True),
        (("*/scale",), "deployments", "", False),
        (("pods/*",), "pods", "log", False),
        (("*",), "pods", "log", True),
        (("*",), "pods", "", True),
        ((), "pods", "", False),
    ],
)
def test_resources_and_subresources_are_matched_as_kubernetes_does(
    resources: tuple[str, ...], resource: str, subresource: str, allowed: bool
) -> None:
    rule = RBACRule(("get",), ("",), resources)

    assert rule.allows_resource("get", "", resource, subresource) is allowed


@pytest.mark.parametrize(
    ("urls", "path", "allowed"),
    [
        (("/healthz",), "/healthz", True),
        (("/healthz",), "/healthz/ping", False),
        (("/healthz/*",), "/healthz/ping", True),
        (("/healthz/*",), "/healthz", False),
        (("/healthz*",), "/healthzz", True),
        (("*",), "/anything", True),
        ((), "/healthz", False),
    ],
)
def test_a_trailing_star_of_a_url_stands_for_any_rest(urls: tuple[str, ...], path: str, allowed: bool) -> None:
    assert RBACRule(("get",), urls=urls).allows_url("get", path) is allowed


def test_a_rule_about_resources_allows_no_urls() -> None:
    rule = RBACRule(("*",), ("*",), ("*",))

    assert not rule.allows_url("get", "/healthz")
    assert rule.allows_resource("get", "apps", "deployments", "")


def test_verbs_and_groups_must_both_match() -> None:
    rule = RBACRule(("get", "list"), ("apps",), ("deployments",))

    assert rule.allows_resource("list", "apps", "deployments", "")
    assert not rule.allows_resource("delete", "apps", "deployments", "")
    assert not rule.allows_resource("get", "", "deployments", "")


def test_missing_rules_are_split_and_their_verbs_joined_again() -> None:
    wanted = RBACRule(("get", "delete"), ("", "apps"), ("pods",))

    missing = not_covered([RBACRule(("get",), ("",), ("pods",))], [wanted])

    assert [str(rule) for rule in missing] == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}',
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "delete"]}',
    ]


@pytest.mark.parametrize(
    ("held", "wanted", "covered"),
    [
        (RBACRule(("*",), ("*",), ("*",)), RBACRule(("get",), ("",), ("pods/log",)), True),
        (RBACRule(("get",), ("",), ("*/log",)), RBACRule(("get",), ("",), ("pods/log",)), True),
        (RBACRule(("get",), ("",), ("*/log",)), RBACRule(("get",), ("",), ("pods",)), False),
        (RBACRule(("get",), ("",), ("pods",)), RBACRule(("get",), ("",), ("pods",), ("a",)), True),
        (RBACRule(("get",), ("",), ("pods",), ("a",)), RBACRule(("get",), ("",), ("pods",)), False),
        (RBACRule(("get",), ("",), ("pods",), ("a",)), RBACRule(("get",), ("",), ("pods",), ("a", "b")), False),
        (RBACRule(("get",), urls=("/x/*",)), RBACRule(("get",), urls=("/x/y/*",)), True),
        (RBACRule(("get",), urls=("/x",)), RBACRule(("get",), urls=("/x/*",)), False),
        (RBACRule(("get",), ("",), ("pods",)), RBACRule(("*",), ("",), ("pods",)), False),
    ],
)
def test_a_rule_covers_what_it_allows_and_no_more(held: RBACRule, wanted: RBACRule, covered: bool) -> None:
    assert (not_covered([held], [wanted]) == []) is covered


def test_a_rule_must_be_covered_by_one_rule_not_by_two_halves() -> None:
    """Kubernetes compares rule by rule: verbs of one and groups of the other do not add up."""
    held = [RBACRule(("get",), ("",), ("pods",), ("a",)), RBACRule(("get",), ("",), ("pods",), ("b",))]

    assert not_covered(held, [RBACRule(("get",), ("",), ("pods",), ("a", "b"))]) == []
    assert not_covered(held, [RBACRule(("get",), ("",), ("pods",))]) != []


def test_rules_are_read_from_the_object_and_anything_malformed_is_left_out() -> None:
    role: JSONObject = {
        "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}, None, {"verbs": [1, "list"], "apiGroups": None}]
    }

    assert rules_of(role) == (RBACRule(("get",), urls=("/x",)), RBACRule(("list",)))
