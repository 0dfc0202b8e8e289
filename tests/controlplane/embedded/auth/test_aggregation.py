from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.auth.aggregation import aggregated_rules


def role(name: str, rule: str, **labels: JSONValue) -> JSONObject:
    return {"metadata": {"name": name, "labels": labels}, "rules": [{"verbs": [rule]}]}


def aggregating(*selectors: JSONValue) -> JSONObject:
    return {
        "metadata": {"name": "all", "labels": {"x": "1"}},
        "aggregationRule": {"clusterRoleSelectors": list(selectors)},
        "rules": [{"verbs": ["stale"]}],
    }


def verbs(rules: list[JSONValue] | None) -> list[JSONValue]:
    return [rule["verbs"] for rule in rules or [] if isinstance(rule, dict)]


def test_a_role_without_aggregation_rule_is_left_alone() -> None:
    assert aggregated_rules(role("a", "get"), []) is None


def test_rules_come_in_the_order_of_selectors_then_names_each_once_and_never_from_itself() -> None:
    whole = aggregating({"matchLabels": {"x": "2"}}, {"matchLabels": {"x": "1"}})
    others = [role("d", "get", x="1"), role("c", "list", x="1"), role("b", "get", x="2"), role("a", "no", x="3"), whole]

    assert verbs(aggregated_rules(whole, others)) == [["get"], ["list"]]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ({"key": "x", "operator": "In", "values": ["1", "2"]}, ["one"]),
        ({"key": "x", "operator": "NotIn", "values": ["1"]}, ["other"]),
        ({"key": "x", "operator": "Exists"}, ["one"]),
        ({"key": "x", "operator": "DoesNotExist"}, ["other"]),
    ],
)
def test_expressions_select_too(expression: JSONValue, found: list[str]) -> None:
    whole = aggregating({"matchExpressions": [expression]})
    others = [role("one", "one", x="1"), role("other", "other", y="1")]

    assert verbs(aggregated_rules(whole, others)) == [found]


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    others = [role("a", "a"), role("b", "b", x="1")]

    assert aggregated_rules(aggregating(), others) == []
    assert verbs(aggregated_rules(aggregating({}), others)) == [["a"], ["b"]]
