"""Lists and sets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.controlplane.embedded.cel.expressions import checked
from kubewright.controlplane.embedded.cel.types import INT, list_of

HOLD = [
    "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted()",
    "[1, 3].sum() == 4 && [1.0, 3.0].sum() == 4.0 && [].sum() == 0",
    "[duration('1m'), duration('1s')].sum() == duration('61s')",
    "[1, 3].min() == 1 && [1, 3].max() == 3 && ['b', 'a'].min() == 'a'",
    "[1, 2, 2, 3].indexOf(2) == 1 && [1, 2, 2, 3].lastIndexOf(2) == 2 && ['a'].indexOf('z') == -1",
    "[1, 2, 3].slice(1, 3) == [2, 3] && [1].slice(0, 0) == []",
    "[[1], [2, 3]].flatten() == [1, 2, 3] && [[[1]]].flatten(2) == [1] && dyn([1]).flatten() == [1]",
    "['b', 'a'].sort() == ['a', 'b'] && [3, 1].reverse() == [1, 3] && [1, 1, 2].distinct() == [1, 2]",
    "[{'n': 2}, {'n': 1}].sortBy(x, x.n)[0].n == 1",
    "lists.range(3) == [0, 1, 2]",
    "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![].first().hasValue()",
    "sets.contains([1, 2], [2]) && !sets.contains([1], [2]) && sets.equivalent([1, 2, 2], [2, 1])",
    "sets.intersects([1, 2], [2, 3]) && !sets.intersects([], [1])",
    "[1, 2] + [3] == [1, 2, 3] && self.names + ['z'] == ['p', 'q', 'z']",
    "'p' in self.names && !('z' in self.names) && 'k' in self.counts && !(1 / 0 in [])",
    "dyn([1, 2]) == [1.0, 2.0]",
    "[?optional.of(1), ?optional.none()] == [1] && {?'a': optional.none()}.size() == 0",
]
FAIL = [
    ("[].min() == 1", "min called on empty list evaluating rule: [].min() == 1"),
    ("[1].slice(0, 5) == [1]", "cannot slice(0, 5), list is length 1 evaluating rule: [1].slice(0, 5) == [1]"),
    ("[[1]].flatten(-1) == [1]", "level must be non-negative evaluating rule: [[1]].flatten(-1) == [1]"),
    (
        "dyn(['a']).sum() == 1",
        "'no such overload: sum(list)': call arguments did not match a supported operator, function or macro signature "
        "for rule: dyn(['a']).sum() == 1",
    ),
]


@pytest.mark.parametrize("rule", HOLD)
def test_rule_holds(rule: str, outcome: Callable[[str], str]) -> None:
    assert outcome(rule) == ""


@pytest.mark.parametrize(("rule", "detail"), FAIL)
def test_an_invalid_operation_is_reported(rule: str, detail: str, outcome: Callable[[str], str]) -> None:
    assert outcome(rule) == detail


@given(st.lists(st.integers(-100, 100), max_size=10))
def test_a_sorted_list_is_sorted_and_has_the_same_elements(values: list[int]) -> None:
    type_ = list_of(INT)
    rule = "self.sort().isSorted() && sets.equivalent(self.sort(), self) && self.sort().size() == self.size()"
    assert checked(rule, {"self": type_}).program().run(values) is True
