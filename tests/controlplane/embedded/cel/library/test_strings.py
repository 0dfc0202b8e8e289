"""The strings library, and strings in general."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.controlplane.embedded.cel.expressions import checked
from kubewright.controlplane.embedded.cel.types import STRING

HOLD = [
    "'hello'.charAt(4) == 'o' && 'hello'.charAt(5) == ''",
    "'hello mellow'.indexOf('ello') == 1 && 'hello mellow'.indexOf('ello', 2) == 7 && 'abc'.indexOf('z') == -1",
    "'abc'.indexOf('') == 0 && 'abc'.indexOf('', 2) == 2 && 'abc'.indexOf('b', 10) == -1",
    "'hello mellow'.lastIndexOf('ello') == 7 && 'hello mellow'.lastIndexOf('ello', 6) == 1",
    "'abc'.lastIndexOf('') == 3 && 'abcb'.lastIndexOf('b', 2) == 1",
    "'TacoCÆt'.lowerAscii() == 'tacocÆt' && 'tacocæt'.upperAscii() == 'TACOCæT'",
    "'hello hello'.replace('he', 'we') == 'wello wello' && 'hello hello'.replace('he', 'we', 1) == 'wello hello'",
    "'ab'.replace('', '-') == '-a-b-' && 'ab'.replace('a', 'x', 0) == 'ab' && 'ab'.replace('a', 'x', -1) == 'xb'",
    "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a,b'.split(',', 0) == []",
    "'abc'.split('') == ['a', 'b', 'c'] && 'abc'.split('', 2) == ['a', 'bc'] && ''.split('') == []",
    "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco' && 'abc'.substring(3) == ''",
    "'  \\ttrim\\n '.trim() == 'trim'",
    "['x', 'y'].join() == 'xy' && ['x', 'y'].join('/') == 'x/y' && [].join(',') == ''",
    "strings.quote('a\\tb\"c') == '\"a\\\\tb\\\\\"c\"'",
    "'héllo'.size() == 5 && bytes('héllo').size() == 6 && '😀'.size() == 1",
    "'abc' < 'abd' && 'Z' < 'a' && 'a' <= 'a' && b'a' < b'b'",
    "'\\u00e9' == 'é' && '\\x41\\101' == 'AA' && r'\\n'.size() == 2 && '''a'b''' == \"a'b\"",
    "b'\\xff'.size() == 1 && bytes('é') == b'\\xc3\\xa9' && string(b'abc') == 'abc'",
]
FORMATTED = [
    ("'%d of %s'.format([1, 'x'])", "1 of x"),
    ("'%s'.format([self.names])", '["p", "q"]'),
    ("'%s'.format([{'b': 1.5, 'a': 2.0}])", '{"a":2.000000, "b":1.500000}'),
    ("'%s'.format([['a\"b']])", '["a\\"b"]'),
    ("'%s %s'.format([true, null])", "true null"),
    ("'%s'.format([[duration('90s')]])", '[duration("90s")]'),
    ("'%s'.format([self.time])", "2024-01-02T03:04:05Z"),
    ("'%s'.format([type(self.time)])", "google.protobuf.Timestamp"),
    ("'%.2f %f'.format([1234.5, 0.5])", "1,234.50 0.500000"),
    ("'%e'.format([1234.5])", "1.234500\N{MULTIPLICATION SIGN}10⁰³"),
    ("'%b %x %X %o'.format([-5, 255, 255, 8])", "-101 ff FF 10"),
    ("'%x'.format(['abz'])", "61627a"),
    ("'%d%%'.format([5])", "5%"),
    ("string(1000000.0) + ' ' + string(0.5) + ' ' + string(-0.0)", "1e+06 0.5 -0"),
]
FAIL = [
    ("'abc'.substring(5) == ''", "index out of range: 5 evaluating rule: 'abc'.substring(5) == ''"),
    (
        "'abc'.substring(2, 1) == ''",
        "invalid substring range. start: 2, end: 1 evaluating rule: 'abc'.substring(2, 1) == ''",
    ),
    ("'abc'.charAt(9) == ''", "index out of range: 9 evaluating rule: 'abc'.charAt(9) == ''"),
    ("'abc'.indexOf('b', -1) == 0", "index out of range: -1 evaluating rule: 'abc'.indexOf('b', -1) == 0"),
    (
        "'%d'.format([dyn('a')]) == ''",
        "error during formatting: decimal clause can only be used on integers, was given string evaluating rule: "
        "'%d'.format([dyn('a')]) == ''",
    ),
]


@pytest.mark.parametrize("rule", HOLD)
def test_rule_holds(rule: str, outcome: Callable[[str], str]) -> None:
    assert outcome(rule) == ""


@pytest.mark.parametrize(("expression", "text"), FORMATTED)
def test_text_is_printed_as_go_prints_it(expression: str, text: str, outcome: Callable[[str], str]) -> None:
    rule = f"{expression} == '''{text}'''" if "\\" not in text else f"{expression} == r'''{text}'''"
    assert outcome(rule) == ""


@pytest.mark.parametrize(("rule", "detail"), FAIL)
def test_an_invalid_operation_is_reported(rule: str, detail: str, outcome: Callable[[str], str]) -> None:
    assert outcome(rule) == detail


@given(st.text(max_size=8), st.text(max_size=3))
def test_splitting_and_joining_returns_the_same_text(text: str, separator: str) -> None:
    program = checked("self.split(oldSelf).join(oldSelf)", {"self": STRING, "oldSelf": STRING}).program()
    assert program.run(text, separator) == text
