from __future__ import annotations

import msgspec
import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.meta import LabelSelector, LabelSelectorRequirement
from kubewright.api.selectors import Fields, Labels
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.cache.index import field_values
from kubewright.cache.selection import matcher, simple_fields


def _entry(labels: dict[str, str], phase: str = "") -> CacheEntry:
    metadata = {"name": "a", "resourceVersion": "1", "labels": labels}
    return parse_entry(msgspec.json.encode({"metadata": metadata, "status": {"phase": phase} if phase else {}}))


@pytest.mark.parametrize(
    ("selector", "labels", "holds"),
    [
        ("app=web", {"app": "web"}, True),
        ("app==web", {"app": "web"}, True),
        ("app=web", {"app": "db"}, False),
        ("app=web", {}, False),
        ("app!=web", {}, True),
        ("app!=web", {"app": "web"}, False),
        ("app", {"app": ""}, True),
        ("app=", {"app": ""}, True),
        ("!app", {}, True),
        ("! app", {"app": "web"}, False),
        ("app in (web, db),!canary", {"app": "db"}, True),
        ("app in (web,db),!canary", {"app": "db", "canary": "y"}, False),
        ("app notin (web,db)", {}, True),
        ("app notin (web,db)", {"app": "web"}, False),
        ("cores>2", {"cores": "3"}, True),
        ("cores>2", {"cores": "2"}, False),
        ("cores<2", {"cores": "many"}, False),
        ({"app": "web", "tier": ["a", "b"], "x": False}, {"app": "web", "tier": "b"}, True),
        ({"app": "web", "x": True}, {"app": "web"}, False),
        (
            LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="NotIn", values=["web"])]),
            {"app": "web"},
            False,
        ),
    ],
)
def test_labels_match_as_on_the_server(selector: Labels, labels: dict[str, str], holds: bool) -> None:
    matches = matcher(selector)
    assert matches is not None
    assert matches(_entry(labels)) is holds


@pytest.mark.parametrize(
    ("selector", "phase", "holds"),
    [
        ("status.phase=Running", "Running", True),
        ("status.phase!=Running", "Running", False),
        ("status.phase!=Running", "", True),
        ({"status.phase": "a,b=c"}, "a,b=c", True),
        ("metadata.name=a,status.phase==Failed", "Failed", True),
        ("metadata.name=b,status.phase==Failed", "Failed", False),
    ],
)
def test_fields_match_as_on_the_server(selector: Fields, phase: str, holds: bool) -> None:
    matches = matcher(None, selector)
    assert matches is not None
    assert matches(_entry({}, phase)) is holds


def test_without_selectors_there_is_no_matcher() -> None:
    assert matcher() is None
    assert matcher("", {}) is None


@pytest.mark.parametrize("selector", ["app=web=db", "app in web", "a b", "!a=b", ",", "app in (a"])
def test_an_invalid_label_selector_is_refused(selector: str) -> None:
    with pytest.raises(ValueError, match="is not a label selector"):
        matcher(selector)


@pytest.mark.parametrize("selector", ["spec", "=a", "spec>3"])
def test_an_invalid_field_selector_is_refused(selector: str) -> None:
    with pytest.raises(ValueError, match=r"is not (a field selector|the path of a field)"):
        matcher(None, selector)


def test_an_index_answers_equality_and_nothing_else() -> None:
    assert simple_fields("a=1,b!=2,c==3") == {"a": "1", "c": "3"}


@pytest.mark.parametrize(
    ("gvk", "selector", "content"),
    [
        (GroupVersionKind("", "v1", "Node"), "spec.unschedulable=false", {"spec": {}}),
        (GroupVersionKind("", "v1", "Node"), "spec.unschedulable=true", {"spec": {"unschedulable": True}}),
        (GroupVersionKind("", "v1", "Pod"), "spec.hostNetwork=false", {}),
        (GroupVersionKind("", "v1", "Pod"), "spec.host=n1", {"spec": {"nodeName": "n1"}}),
        (GroupVersionKind("batch", "v1", "Job"), "status.successful=0", {"status": {}}),
        (GroupVersionKind("batch", "v1", "Job"), "status.successful=2", {"status": {"succeeded": 2}}),
    ],
)
def test_fields_with_another_name_on_the_server_are_selected_as_it_does(
    gvk: GroupVersionKind, selector: str, content: dict[str, object]
) -> None:
    raw = msgspec.json.encode({"metadata": {"name": "a", "resourceVersion": "1"}, **content})
    matches = matcher(None, selector, gvk)
    assert matches is not None
    assert matches(parse_entry(raw))
    assert field_values(selector.partition("=")[0], gvk)(parse_entry(raw)) == (selector.partition("=")[2],)
    other = matcher(None, selector.replace("=", "!="), gvk)
    assert other is not None
    assert not other(parse_entry(raw))
