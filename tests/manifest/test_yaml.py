"""Manifests as text."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.markers import JSONValue
from kubewright.manifest.yaml import to_yaml

documents: st.SearchStrategy[JSONValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(documents)
def test_written_yaml_reads_back_as_the_same(document: JSONValue) -> None:
    assert yaml.safe_load(to_yaml(document)) == document


@pytest.mark.parametrize("text", ["1e3", "0o17", "0x1F", "1_000", "12:30:45", "y", "N", "~", "=", ".5", "-1", "+1"])
def test_text_that_another_reader_could_take_for_something_else_is_quoted(text: str) -> None:
    assert to_yaml({"value": text}) == f"value: '{text}'\n"


@pytest.mark.parametrize("text", ["v1", "date-time", ".spec.replicas", "apps.example.com", "1Gi or more".lstrip("1")])
def test_ordinary_text_is_not_quoted(text: str) -> None:
    assert to_yaml({"value": text}) == f"value: {text.strip()}\n"


def test_names_are_sorted_and_long_lines_are_left_alone() -> None:
    long = "word " * 50 + "end"
    assert to_yaml({"b": [{"d": long, "c": {}}], "a": "ü"}) == f"a: ü\nb:\n- c: {{}}\n  d: {long}\n"


def test_text_of_several_lines_is_a_block() -> None:
    assert to_yaml({"text": "one\ntwo"}) == "text: |-\n  one\n  two\n"


def test_equal_parts_are_written_out_twice_instead_of_referred_to() -> None:
    part: JSONValue = {"a": [1]}
    assert to_yaml([part, part]) == "- a:\n  - 1\n- a:\n  - 1\n"
