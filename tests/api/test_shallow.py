from __future__ import annotations

import json

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from kubewright.api.shallow import elements, members

_texts = st.text() | st.sampled_from(['"', "\\", '\\"', "{", "}]", ",", ":", "é"])
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_texts, _values, max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_the_members_of_an_object_are_found_whatever_is_in_them(
    value: dict[str, object], indent: int | None, is_ascii: bool
) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    assert {name: json.loads(part) for name, part in members(raw).items()} == value


@given(st.lists(_values, max_size=5), st.sampled_from([None, 1]))
def test_the_elements_of_an_array_are_found_whatever_is_in_them(value: list[object], indent: int | None) -> None:
    assert [json.loads(part) for part in elements(json.dumps(value, indent=indent).encode())] == value


def test_depth_does_not_matter() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert members(b'{"a":%b,"b":2}' % deep) == {"a": deep, "b": b"2"}
    assert elements(b"[%b,1]" % deep) == [deep, b"1"]


@pytest.mark.parametrize("raw", [b"", b"7", b"[]", b'{"a":1', b'{"a', b'{"a":"}'])
def test_incomplete_or_other_json_is_an_error(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        members(raw)
