from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.controlplane.embedded.patch.ordering import arranged

NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(server=NAMES, wanted=NAMES)
def test_both_orders_are_kept_and_nothing_is_lost(server: list[str], wanted: list[str]) -> None:
    merged = sorted({*server, *wanted})
    result = arranged(merged, wanted, server, "")
    assert sorted(map(str, result)) == merged
    assert [item for item in result if item in wanted] == wanted
    assert [item for item in result if item not in wanted] == [item for item in server if item not in wanted]


@pytest.mark.parametrize(
    ("server", "wanted", "expected"),
    [
        ("abc", "b", "abc"),
        ("abc", "ca", "bca"),
        ("abc", "xb", "xabc"),
        ("abc", "bx", "abxc"),
        ("abc", "x", "xabc"),
        ("", "ba", "ba"),
        ("abc", "", "abc"),
    ],
)
def test_other_items_stay_in_front_of_those_they_were_in_front_of(server: str, wanted: str, expected: str) -> None:
    merged = list(dict.fromkeys(server + wanted))
    assert arranged(merged, list(wanted), list(server), "") == list(expected)


def test_equal_numbers_of_different_types_are_different_items() -> None:
    assert arranged([1, 1.0, True], [True], [1.0, 1], "") == [True, 1.0, 1]
