from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.builtins.label_selectors import is_empty, matches, validate_selector

LABELS: JSONObject = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"key": "app", "operator": "In", "values": ["web", "db"]}, True),
        ({"key": "other", "operator": "In", "values": ["web"]}, False),
        ({"key": "app", "operator": "NotIn", "values": ["web"]}, False),
        ({"key": "other", "operator": "NotIn", "values": ["web"]}, True),
        ({"key": "app", "operator": "Exists"}, True),
        ({"key": "app", "operator": "DoesNotExist"}, False),
        ({"key": "other", "operator": "DoesNotExist"}, True),
    ],
)
def test_an_expression_is_matched_by_its_operator(expression: JSONObject, expected: bool) -> None:
    selector: JSONObject = {"matchExpressions": [expression]}

    assert validate_selector(selector, "spec.selector") == []
    assert matches(selector, LABELS) is expected


def test_all_parts_of_a_selector_must_match() -> None:
    assert matches({"matchLabels": {"app": "web", "tier": "front"}}, LABELS)
    assert not matches({"matchLabels": {"app": "web", "tier": "back"}}, LABELS)
    assert not matches(
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, LABELS
    )


def test_a_selector_without_parts_is_empty_and_matches_everything() -> None:
    assert is_empty({})
    assert matches({}, {})
    assert not is_empty({"matchLabels": {"a": "b"}})
