from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.manifest.yaml_reader import MAX_DEPTH, compose
from kubewright.manifest.yaml_values import value_of


def read(text: str) -> object:
    node = compose(yaml.CSafeLoader(text), text)
    return None if node is None else value_of(node)


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@settings(deadline=None)
@given(values, st.booleans())
def test_it_reads_what_pyyaml_reads(value: object, flow: bool) -> None:
    # Values that are the same object are written as anchor and aliases. Plain text differs.
    text = yaml.safe_dump([value, value], default_flow_style=flow, default_style='"', allow_unicode=True)

    assert read(text) == yaml.safe_load(text)


def test_tags_anchors_and_merge_keys_are_followed() -> None:
    text = "base: &base {a: !!str 1, b: [x]}\nmore: {<<: *base, c: 2}\nagain: *base\n? key\n: 2026-01-01\n"
    base = {"a": "1", "b": ["x"]}

    assert read(text) == {"base": base, "more": {**base, "c": 2}, "again": base, "key": "2026-01-01"}


def test_of_several_documents_the_first_is_read() -> None:
    assert read("--- 1\n--- 2\n") == 1
    assert read("") is None
    assert read("# nothing\n") is None


def flow(levels: int) -> str:
    return "[" * levels + "]" * levels


def block(levels: int) -> str:
    return "- " * levels + "x"


@pytest.mark.parametrize("nested", [flow, block])
def test_as_many_levels_as_in_go_are_read(nested: type[str]) -> None:
    value = read(nested(MAX_DEPTH))

    assert sum(1 for _ in levels_of(value)) == MAX_DEPTH


def levels_of(value: object) -> Iterator[object]:
    while isinstance(value, list):
        yield value
        value = value[0] if value else None


@pytest.mark.parametrize(
    "text", [flow(MAX_DEPTH + 1), block(MAX_DEPTH + 1), "[" * 25_000, "{" * 25_000, "{a: " * 25_000]
)
def test_more_levels_are_refused(text: str) -> None:
    """libyaml's own composer overflows the stack of the process."""
    with pytest.raises(yaml.MarkedYAMLError) as refused:
        read(text)
    assert refused.value.problem == "exceeded max depth of 10000"


def aliases(levels: int, width: int) -> str:
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(("levels", "width"), [(9, 9), (50, 10), (4, 9), (2, 400)])
def test_aliases_that_stand_for_far_more_than_is_written_are_refused(levels: int, width: int) -> None:
    with pytest.raises(yaml.MarkedYAMLError) as refused:
        read(aliases(levels, width))
    assert refused.value.problem == "document contains excessive aliasing"


def test_many_values_between_thousands_of_brackets_are_refused() -> None:
    """libyaml takes time in proportion to the product of both: minutes, for half a megabyte."""
    with pytest.raises(yaml.MarkedYAMLError, match="too many values nest too deeply"):
        read("[" * 9_000 + "a," * 200_000)


def test_merge_keys_are_aliases_like_any_other() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}" for level in range(1, 10)]
    with pytest.raises(yaml.MarkedYAMLError) as refused:
        read("\n".join(lines))
    assert refused.value.problem == "document contains excessive aliasing"


def test_many_aliases_of_little_are_read() -> None:
    text = "base: &base {a: 1}\nall: [" + ", ".join(["*base"] * 2_000) + "]"

    assert read(text) == {"base": {"a": 1}, "all": [{"a": 1}] * 2_000}


def test_a_value_that_contains_itself_is_refused() -> None:
    with pytest.raises(yaml.MarkedYAMLError) as refused:
        read("a: &a [*a]")
    assert refused.value.problem == "anchor 'a' value contains itself"


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "byte order mark"])
@pytest.mark.parametrize("encode", [str, str.encode], ids=["text", "bytes"])
def test_an_escaped_slash_is_refused_where_it_stands(mark: str, encode: Callable[[str], str | bytes]) -> None:
    text = encode(mark + 'a: "é/"\nb: "\\\\/"\nc: "one\n  two\\/"\n')
    with pytest.raises(yaml.scanner.ScannerError, match="unknown escape") as refused:
        compose(yaml.CSafeLoader(text), text)
    assert refused.value.problem_mark is not None
    assert (refused.value.problem_mark.line, refused.value.problem_mark.column) == (3, 5)
