from __future__ import annotations

import pytest

from kubewright.api.meta import LabelSelector, LabelSelectorRequirement
from kubewright.api.selectors import Labels, field_matcher, field_selector, label_matcher, label_selector


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ("app in (a,b),!c", "app in (a,b),!c"),
        ({}, ""),
        ({"app": "web"}, "app=web"),
        ({"app": ""}, "app="),
        ({"tier": ["front", "back"]}, "tier in (back,front)"),
        ({"tier": {"one"}}, "tier in (one)"),
        ({"tier": ("a", "")}, "tier in (,a)"),
        ({"canary": True}, "canary"),
        ({"canary": False}, "!canary"),
        (
            {"app.kubernetes.io/name": "web", "tier": ["b", "a"], "canary": False},
            "app.kubernetes.io/name=web,tier in (a,b),!canary",
        ),
        (LabelSelector(), ""),
        (LabelSelector(match_labels={"b": "2", "a": "1"}), "a=1,b=2"),
    ],
)
def test_label_selectors_are_spelt_as_the_server_reads_them(labels: Labels, text: str) -> None:
    assert label_selector(labels) == text


def test_the_selector_of_a_workload_is_translated() -> None:
    selector = LabelSelector(
        match_labels={"app": "web"},
        match_expressions=[
            LabelSelectorRequirement(key="tier", operator="In", values=["front", "back"]),
            LabelSelectorRequirement(key="zone", operator="NotIn", values=["b", "a"]),
            LabelSelectorRequirement(key="owner", operator="Exists"),
            LabelSelectorRequirement(key="canary", operator="DoesNotExist"),
        ],
    )

    assert label_selector(selector) == "app=web,tier in (back,front),zone notin (a,b),owner,!canary"


def test_an_unknown_operator_is_named() -> None:
    selector = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="Gt", values=["1"])])
    with pytest.raises(ValueError, match=r'matchExpressions: "Gt" is not an operator .*DoesNotExist'):
        label_selector(selector)


@pytest.mark.parametrize(
    "labels",
    [
        {"owner": "x,canary"},
        {"owner": ["x,y"]},
        {"owner": "x)"},
        {"owner": "a b"},
        {"owner=x,app": True},
        {"!owner": True},
        LabelSelector(match_labels={"owner": "x,y"}),
        LabelSelector(match_expressions=[LabelSelectorRequirement(key="owner", operator="NotIn", values=["x,y"])]),
    ],
)
def test_a_value_cannot_turn_into_another_selector(labels: Labels) -> None:
    """`delete_all(..., labels={"owner": name})` must not delete more because of what is in `name`."""
    with pytest.raises(ValueError, match="cannot be in a label selector: expected letters, digits"):
        label_selector(labels)


@pytest.mark.parametrize(
    "labels",
    [
        {"tier": []},
        LabelSelector(match_expressions=[LabelSelectorRequirement(key="tier", operator="In")]),
        LabelSelector(match_expressions=[LabelSelectorRequirement(key="tier", operator="NotIn")]),
    ],
)
def test_any_of_nothing_is_refused(labels: Labels) -> None:
    """The server would read it as: the label is empty."""
    with pytest.raises(ValueError, match='the label selector for "tier" names no value'):
        label_selector(labels)


def test_field_selectors_take_any_value() -> None:
    assert field_selector("metadata.name=a") == "metadata.name=a"
    assert field_selector({}) == ""
    assert field_selector({"spec.nodeName": "node-1", "status.phase": "Running"}) == (
        "spec.nodeName=node-1,status.phase=Running"
    )
    assert field_selector({"reason": r"a=b,c\d"}) == r"reason=a\=b\,c\\d"


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (LabelSelector(), True),
        (LabelSelector(match_labels={"app": "web"}), True),
        (LabelSelector(match_labels={"app": "web", "tier": "front"}), False),
        (
            LabelSelector(
                match_expressions=[LabelSelectorRequirement(key="app", operator="In", values=["web", "shop"])]
            ),
            True,
        ),
        (
            LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="NotIn", values=["web"])]),
            False,
        ),
        (
            LabelSelector(match_expressions=[LabelSelectorRequirement(key="tier", operator="NotIn", values=["web"])]),
            True,
        ),
        (LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="Exists")]), True),
        (LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="DoesNotExist")]), False),
    ],
)
def test_a_selector_matches_when_all_its_requirements_hold(selector: LabelSelector, matches: bool) -> None:
    assert label_matcher(selector).matches({"app": "web"}) is matches


@pytest.mark.parametrize(
    ("labels", "found", "matches"),
    [
        ({"app": "web", "tier": ["a", "b"], "canary": False}, {"app": "web", "tier": "b"}, True),
        ({"app": "web", "tier": ["a", "b"], "canary": False}, {"app": "web", "tier": "c"}, False),
        ({"canary": False}, {"canary": ""}, False),
        ({"app": True}, {}, False),
        ("app=web,tier in (a,b)", {"app": "web", "tier": "a"}, True),
        ({}, {}, True),
    ],
)
def test_python_values_and_text_match_alike(labels: Labels, found: dict[str, str], matches: bool) -> None:
    assert label_matcher(labels).matches(found) is matches
    assert label_matcher(label_selector(labels)).matches(found) is matches


def test_fields_as_python_values_must_all_be_equal() -> None:
    selector = field_matcher({"status.phase": "a,b=c", "metadata.name": "web"})

    assert selector.matches({"metadata.name": "web", "status.phase": "a,b=c"})
    assert not selector.matches({"metadata.name": "web"})
    assert field_matcher(field_selector({"status.phase": "a,b=c"})).matches({"status.phase": "a,b=c"})
