from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.managedfields.fieldset import (
    FieldSet,
    MalformedFields,
    Path,
    difference,
    has,
    intersection,
    of_paths,
    ordered,
    parsed,
    path_text,
    paths,
    quoted,
    union,
    without,
)

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'k:{"port":80}', 'k:{"port":443}', "v:2", "v:10", 'v:"z"'])
path_sets = st.sets(st.lists(elements, min_size=1, max_size=4).map(tuple), max_size=12)


@given(path_sets)
def test_a_set_has_the_paths_it_was_made_of_and_no_others(fields: set[Path]) -> None:
    made = of_paths(fields)

    assert set(paths(made)) == fields
    assert all(has(made, path) for path in fields)
    assert not has(made, ("f:nowhere",))
    assert not has(made, ())


@given(path_sets, path_sets)
def test_union_intersection_and_difference_are_those_of_the_paths(one: set[Path], other: set[Path]) -> None:
    left, right = of_paths(one), of_paths(other)

    assert set(paths(union(left, right))) == one | other
    assert set(paths(intersection(left, right))) == one & other
    assert set(paths(difference(left, right))) == one - other


@given(path_sets, path_sets)
def test_without_also_takes_what_is_below(one: set[Path], other: set[Path]) -> None:
    kept = {path for path in one if not any(path[:length] in other for length in range(1, len(path) + 1))}

    assert set(paths(without(of_paths(one), of_paths(other)))) == kept


@given(path_sets, path_sets)
def test_no_operation_leaves_a_node_without_fields_or_out_of_order(one: set[Path], other: set[Path]) -> None:
    left, right = of_paths(one), of_paths(other)

    def check(node: FieldSet) -> None:
        assert list(node) == list(ordered(node))
        assert list(node) != ["."]
        for nested in node.values():
            check(nested)

    for operation in (union, intersection, difference, without):
        result = operation(left, right)
        assert "." not in result
        check(result)


def test_elements_are_in_the_order_of_go_with_numbers_by_size() -> None:
    mixed: FieldSet = {
        'v:"a"': {},
        "v:10": {},
        "v:9": {},
        'k:{"port":443}': {},
        'k:{"port":80}': {},
        "f:z": {},
        ".": {},
    }

    assert list(ordered(mixed)) == [".", "f:z", 'k:{"port":80}', 'k:{"port":443}', "v:9", "v:10", 'v:"a"']


def test_strings_in_elements_are_escaped_as_go_escapes_them() -> None:
    assert quoted("a<b>&\u2028") == '"a\\u003cb\\u003e\\u0026\\u2028"'


def test_field_sets_of_clients_become_canonical() -> None:
    given: JSONValue = {"f:a": {".": {}}, 'k:{ "port":80.0, "name":"x" }': {"f:b": {}}, "x:future": {}, "v:1.0": {}}

    assert parsed(given) == {"f:a": {}, 'k:{"name":"x","port":80}': {"f:b": {}}, "v:1": {}}


@pytest.mark.parametrize("wrong", [[], "f:a", {"f:a": 1}, {"a": {}}, {"fa": {}}, {"k:[]": {}}, {"v:": {}}, {"i:x": {}}])
def test_an_invalid_field_set_is_refused(wrong: JSONValue) -> None:
    with pytest.raises(MalformedFields):
        parsed(wrong)


def test_paths_are_shown_as_messages_show_them() -> None:
    path = ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:tags", 'v:"x"', "i:3")

    assert path_text(path) == '.spec.ports[port=80,protocol="TCP"].tags[="x"][3]'


def test_fields_of_one_level_come_before_those_below() -> None:
    fields: FieldSet = {"f:a": {".": {}, "f:x": {}}, "f:b": {}}

    assert list(paths(fields)) == [("f:a",), ("f:b",), ("f:a", "f:x")]
