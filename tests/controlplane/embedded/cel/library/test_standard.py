"""Operators, conversions, times and optionals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.controlplane.embedded.cel.expressions import checked
from kubewright.controlplane.embedded.cel.types import INT
from kubewright.controlplane.embedded.cel.values import EvaluationError

HOLD = [
    "7 / 2 == 3 && -7 / 2 == -3 && 7 % -2 == 1 && -7 % 2 == -1 && 7.0 / 2.0 == 3.5",
    "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 10 - 2 - 3 == 5 && -self.number == -3",
    "1 < 1.5 && 2u > 1 && 3 >= 3.0 && dyn(1) == dyn(1.0) && dyn(1) != dyn('1') && dyn(true) != dyn(1)",
    "0x10 == 16 && 1e3 == 1000.0 && -9223372036854775808 < 0 && .5 == 0.5 && 1u + 2u == 3u",
    "int('42') == 42 && int(3.9) == 3 && double('1.5') == 1.5 && uint(3) == 3u && bool('true') && !bool('0')",
    "string(42) == '42' && string(true) == 'true'",
    "string(duration('90m')) == '5400s' && int(duration('1s')) == 1000000000",
    "type(1) == int && type('') == string && type([]) == list && type({}) == map && type(null) == null_type",
    "type(self.time) == google.protobuf.Timestamp && type(type(1)) == type && type(self.either) == string",
    "timestamp('2024-01-02T03:04:05Z') == self.time && self.time + duration('1h') > self.time",
    "self.time - timestamp('2024-01-02T03:04:04Z') == duration('1s') && self.period == duration('60m')",
    "self.time.getFullYear() == 2024 && self.time.getMonth() == 0",
    "self.time.getDate() == 2 && self.time.getDayOfMonth() == 1",
    "self.time.getDayOfWeek() == 2 && self.time.getDayOfYear() == 1 && self.time.getHours('+02:00') == 5",
    "self.time.getHours('America/New_York') == 22 && duration('3h5m').getMinutes() == 185",
    "string(timestamp('2020-01-01T00:00:00.5+01:00')) == '2020-01-01T00:00:00.5+01:00' && int(timestamp(5)) == 5",
    "optional.of(1).value() == 1 && optional.none().orValue(2) == 2 && optional.of(1).or(optional.of(2)).value() == 1",
    "self.?part.?size.orValue(7) == 7 && self.?text.hasValue() && !self.part.?size.hasValue()",
    "self.names[?0] == optional.of('p') && self.names[?9] == optional.none() && self.counts[?'k'].value() == 1",
    "self.?text.optMap(x, x + '!').value() == 'abc!' && self.?part.optFlatMap(x, x.?size) == optional.none()",
    "optional.ofNonZeroValue('') == optional.none() && optional.of(1).orValue(1 / 0) == 1",
    "[optional.of(1), optional.none()].unwrapOpt() == [1]",
    "self.names.all(x, x != '') && self.names.exists(x, x == 'q') && self.names.exists_one(x, x == 'p')",
    "self.names.map(x, x + '!') == ['p!', 'q!'] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
    "[1, 2].filter(x, x > 1) == [2]",
    "self.names.all(i, x, i < 2 && x != '') && self.counts.all(k, v, v == 1) && self.counts.exists(k, k == 'k')",
    "self.counts.transformMap(k, v, v + 1) == {'k': 2} && self.names.transformList(i, x, i) == [0, 1]",
    "{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'} && self.counts.transformList(k, v, v > 5, k) == []",
    "[0, 2].exists(x, 4 / x == 2) && ![0, 2].all(x, 4 / x == 3) && (true || 1 / 0 > 0) && !(false && 1 / 0 > 0)",
    "(1 / 0 > 0 || true) && !(1 / 0 > 0 && false) && (self.flag ? 1 : 1 / 0) == 1",
    "has(self.part.name) && !has(self.part.size) && has({'a': 1}.a) && {'a': 1}.a == {'a': 1}['a']",
    "dyn(self.part) == {'name': 's'} && {'name': 's'} == dyn(self.part) && self.parts[0] == self.parts[0]",
    "self.part != null && self.unknown == self.unknown && self.number in [1, 3]",
    "'a' == 'a' // a comment\n",
]
NO_OVERLOAD = "call arguments did not match a supported operator, function or macro signature for rule"
FAIL = [
    ("self.number / 0 == 1", "division by zero evaluating rule: {}"),
    ("self.number % 0 == 1", "modulus by zero evaluating rule: {}"),
    ("9223372036854775807 + 1 == 0", "integer overflow evaluating rule: {}"),
    ("-(-9223372036854775808) == 0", "integer overflow evaluating rule: {}"),
    ("1u - 2u == 1u", "unsigned integer overflow evaluating rule: {}"),
    ("self.part.size == 1", "no such key: size evaluating rule: {}"),
    ("self.counts['z'] == 1", "no such key: z evaluating rule: {}"),
    ("self.names[5] == 'a'", "index out of bounds: 5 evaluating rule: {}"),
    ("self.names[-1] == 'a'", "index out of bounds: -1 evaluating rule: {}"),
    ("self.names[dyn('x')] == 'q'", "unsupported index type 'string' in list evaluating rule: {}"),
    ("self.either.foo == 1", "no such key: foo evaluating rule: {}"),
    ("dyn(self.number).all(x, x.foo)", "got 'types.Int', expected iterable type evaluating rule: {}"),
    ("optional.none().value() == 1", "optional.none() dereference evaluating rule: {}"),
    ("int(self.text) == 1", "type conversion error from 'string' to 'int' evaluating rule: {}"),
    ("self.time.getHours('Nowhere') == 1", "unknown time zone Nowhere evaluating rule: {}"),
    ("self.either + 1 == 2", f"'no such overload': {NO_OVERLOAD}: {{}}"),
    ("self.either < 5", f"'no such overload': {NO_OVERLOAD}: {{}}"),
    ("dyn(true) + 1 == 1", f"'no such overload: _+_': {NO_OVERLOAD}: {{}}"),
    ("dyn(self.number).size() == 1", f"'no such overload: size': {NO_OVERLOAD}: {{}}"),
    ("dyn(1).startsWith('a')", f"'no such overload': {NO_OVERLOAD}: {{}}"),
    ("dyn(1).lowerAscii() == ''", f"'no such overload: lowerAscii(int)': {NO_OVERLOAD}: {{}}"),
    ("dyn(self.number) && true", f"'no such overload': {NO_OVERLOAD}: {{}}"),
    ("self.names == dyn('x')", f"'no such overload': {NO_OVERLOAD}: {{}}"),
    ("self.number < 3", "failed rule: {}"),
]


@pytest.mark.parametrize("rule", HOLD)
def test_rule_holds(rule: str, outcome: Callable[[str], str]) -> None:
    assert outcome(rule) == ""


@pytest.mark.parametrize(("rule", "detail"), FAIL)
def test_an_evaluation_error_is_reported(rule: str, detail: str, outcome: Callable[[str], str]) -> None:
    assert outcome(rule) == detail.format(rule)


_INT64 = st.integers(-(2**63), 2**63 - 1)


@given(_INT64, _INT64, st.sampled_from("+-*"))
def test_integers_are_exact_or_overflow(left: int, right: int, operator: str) -> None:
    program = checked(f"self {operator} oldSelf", {"self": INT, "oldSelf": INT}).program()
    exact = {"+": left + right, "-": left - right, "*": left * right}[operator]
    if -(2**63) <= exact < 2**63:
        assert program.run(left, right) == exact
    else:
        with pytest.raises(EvaluationError, match=r"^integer overflow$"):
            program.run(left, right)


@given(_INT64, _INT64.filter(bool))
def test_quotient_and_rest_make_the_number_again(left: int, right: int) -> None:
    variables = {"self": INT, "oldSelf": INT}
    if (left, right) == (-(2**63), -1):
        return
    quotient = checked("self / oldSelf", variables).program().run(left, right)
    rest = checked("self % oldSelf", variables).program().run(left, right)
    assert isinstance(quotient, int)
    assert isinstance(rest, int)
    assert quotient * right + rest == left
    assert abs(rest) < abs(right)
