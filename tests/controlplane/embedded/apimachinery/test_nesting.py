from __future__ import annotations

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.nesting import LEVELS, cut, decode, decode_deep, encoded

scalars = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text()
values: st.SearchStrategy[JSONValue] = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@settings(deadline=None, max_examples=50)
@given(values)
def test_json_is_read_without_recursion_as_with_it(value: JSONValue) -> None:
    assert decode_deep(json.dumps(value)) == value
    assert decode_deep(json.dumps(value, indent=1, ensure_ascii=False)) == value


@settings(deadline=None, max_examples=50)
@given(values)
def test_json_is_written_without_recursion_as_with_it(value: JSONValue) -> None:
    assert encoded(value) == msgspec.json.encode(value, order="sorted")


def nested(levels: int, innermost: JSONValue) -> JSONValue:
    for _ in range(levels):
        innermost = {"a": innermost}
    return innermost


def test_shallow_values_are_left_as_they_are() -> None:
    body = msgspec.json.encode(nested(LEVELS, 1))

    assert decode(body) == nested(LEVELS, 1)


@settings(deadline=None, max_examples=50)
@given(values)
def test_deeper_values_are_kept_as_text(value: JSONValue) -> None:
    body = msgspec.json.encode(nested(LEVELS, value))

    assert msgspec.json.encode(decode(body), order="sorted") == msgspec.json.encode(
        nested(LEVELS, value), order="sorted"
    )


def test_equal_values_are_equal_however_they_were_written() -> None:
    head, tail = b'{"a":' * LEVELS, b"}" * LEVELS

    assert decode(head + b'{"x":1,"y":2}' + tail) == decode(head + b'{ "y": 2, "x": 1 }' + tail)


def test_a_shared_value_is_cut_at_each_position() -> None:
    """As an alias in YAML makes them."""
    shared: list[object] = [[1]]
    value: list[object] = [shared, nested(LEVELS - 2, shared)]  # type: ignore[arg-type]

    assert msgspec.json.encode(cut(value)).count(b"[[1]]") == 2
