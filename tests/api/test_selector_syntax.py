"""Read and matched as kube-apiserver does; tests/conformance/test_listing.py compares the two."""

from __future__ import annotations

import pytest

from kubewright.api.selector_syntax import parse_fields, parse_labels
from kubewright.api.selectors import FieldRequirement, LabelRequirement, SelectorError


@pytest.mark.parametrize(
    ("selector", "requirements"),
    [
        ("", []),
        (" \t\n", []),
        ("a", [LabelRequirement("a", "exists")]),
        ("!a", [LabelRequirement("a", "!")]),
        ("a=b", [LabelRequirement("a", "=", ("b",))]),
        ("a==b", [LabelRequirement("a", "==", ("b",))]),
        ("a!=b", [LabelRequirement("a", "!=", ("b",))]),
        ("a=", [LabelRequirement("a", "=", ("",))]),
        ("a=,b!=", [LabelRequirement("a", "=", ("",)), LabelRequirement("b", "!=", ("",))]),
        ("a in (y, x,y)", [LabelRequirement("a", "in", ("x", "y"))]),
        ("a notin (x)", [LabelRequirement("a", "notin", ("x",))]),
        ("a in ()", [LabelRequirement("a", "in", ("",))]),
        ("a in (,)", [LabelRequirement("a", "in", ("",))]),
        ("a in (x,,y)", [LabelRequirement("a", "in", ("", "x", "y"))]),
        ("a in (x,)", [LabelRequirement("a", "in", ("", "x"))]),
        ("in in (in,notin)", [LabelRequirement("in", "in", ("in", "notin"))]),
        ("notin", [LabelRequirement("notin", "exists")]),
        ("a>5", [LabelRequirement("a", ">", ("5",))]),
        ("a<5", [LabelRequirement("a", "<", ("5",))]),
        ("\t a \n= b\r", [LabelRequirement("a", "=", ("b",))]),
        ("z,example.com/a=1", [LabelRequirement("example.com/a", "=", ("1",)), LabelRequirement("z", "exists")]),
        ("a\0", [LabelRequirement("a", "exists")]),
        ("a \0=b", [LabelRequirement("a", "exists")]),
    ],
)
def test_a_label_selector_is_read_as_kubernetes_reads_it(selector: str, requirements: list[LabelRequirement]) -> None:
    assert list(parse_labels(selector).requirements) == requirements


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("", {}, True),
        ("a=1", {"a": "1"}, True),
        ("a=1", {"a": "2"}, False),
        ("a=1", {}, False),
        ("a=", {}, False),
        ("a!=1", {}, True),
        ("a!=1", {"a": "1"}, False),
        ("a in (1,2)", {"a": "2"}, True),
        ("a in (1,2)", {"a": "3"}, False),
        ("a notin (1,2)", {}, True),
        ("a notin (1,2)", {"a": "2"}, False),
        ("a", {"a": ""}, True),
        ("a", {"b": ""}, False),
        ("!a", {"b": ""}, True),
        ("!a", {"a": ""}, False),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "5"}, False),
        ("a<5", {"a": "-7"}, True),
        ("a<5", {"a": "5"}, False),
        ("a<5", {}, False),
        ("a<5", {"a": "x"}, False),
        ("a>5", {"a": "1_0"}, False),
        ("a>5", {"a": "\u0667"}, False),
        ("a>5", {"a": "9" * 30}, False),
        ("a=1,b", {"a": "1"}, False),
        ("a=1,b", {"a": "1", "b": ""}, True),
    ],
)
def test_a_label_selector_matches_as_in_kubernetes(selector: str, labels: dict[str, str], matches: bool) -> None:
    assert parse_labels(selector).matches(labels) is matches


def test_an_empty_selector_reports_that_it_selects_everything() -> None:
    assert parse_labels("").matches_all
    assert parse_fields("").matches_all
    assert parse_fields(",,").matches_all
    assert not parse_labels("a").matches_all
    assert not parse_fields("a=b").matches_all


@pytest.mark.parametrize(
    ("selector", "requirements"),
    [
        ("", []),
        ("a=b", [FieldRequirement("a", "=", "b")]),
        ("a==b", [FieldRequirement("a", "=", "b")]),
        ("a!=b", [FieldRequirement("a", "!=", "b")]),
        ("a=", [FieldRequirement("a", "=", "")]),
        ("b=1,,a=2,", [FieldRequirement("a", "=", "2"), FieldRequirement("b", "=", "1")]),
        (r"a=x\,y\=z\\", [FieldRequirement("a", "=", "x,y=z\\")]),
        (" a = b ", [FieldRequirement(" a ", "=", " b ")]),
        ("=b", [FieldRequirement("", "=", "b")]),
        ("=,!=,a=b", [FieldRequirement("a", "=", "b")]),
        ("a=x\ny", [FieldRequirement("a", "=", "x\ny")]),
    ],
)
def test_a_field_selector_is_read_as_kubernetes_reads_it(selector: str, requirements: list[FieldRequirement]) -> None:
    assert list(parse_fields(selector).requirements) == requirements


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("metadata.name=web", True),
        ("metadata.name!=web", False),
        ("metadata.name=db", False),
        ("status.phase=", True),
        ("status.phase!=Running", True),
        ("metadata.name=web,status.phase=Running", False),
    ],
)
def test_a_field_selector_takes_an_absent_field_for_an_empty_one(selector: str, matches: bool) -> None:
    assert parse_fields(selector).matches({"metadata.name": "web"}) is matches


def test_a_field_selector_names_its_fields_and_the_one_value_a_field_must_have() -> None:
    selector = parse_fields("metadata.name=web,status.phase!=Running")

    assert selector.names == ("metadata.name", "status.phase")
    assert selector.exact("metadata.name") == "web"
    assert selector.exact("status.phase") is None
    assert selector.exact("spec.nodeName") is None


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=$", 'unable to parse requirement: the value "$" has characters other than letters, digits and - _ .'),
        ("a$", 'unable to parse requirement: the key "a$" has characters other than letters, digits and - _ . /'),
        ("a>x", 'unable to parse requirement: "x" is not an integer'),
    ],
)
def test_a_malformed_label_selector_is_quoted_with_the_reason_and_an_example(selector: str, reason: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_labels(selector)

    assert caught.value.reason == reason
    assert str(caught.value) == (
        f'"{selector}" is not a label selector: {reason}; expected requirements such as '
        "app=web, tier in (front,back), !canary"
    )


def test_a_malformed_field_selector_is_quoted_with_the_reason_and_an_example() -> None:
    with pytest.raises(SelectorError) as caught:
        parse_fields("spec>3")

    assert caught.value.reason == "invalid selector: 'spec>3'; can't understand 'spec>3'"
    assert str(caught.value).startswith("\"spec>3\" is not a field selector: invalid selector: 'spec>3'")
    assert str(caught.value).endswith("spec.nodeName=node-1, status.phase!=Failed, separated by commas")
