"""The texts were read off kube-apiserver v1.36.4."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.controlplane.embedded.apimachinery.selectors import (
    parse_field_selector,
    parse_label_selector,
)
from kubewright.controlplane.embedded.apimachinery.status import StatusError

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!a in (x)", "found 'in', expected: ',' or 'end of string'"),
        ("a in (x))", "found ')', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("a>=5", "unable to parse requirement: found '=', expected: identifier"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("a\0b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("a in (x,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a$=b", f'unable to parse requirement: <nil>: Invalid value: "a$": name part {NAME_RULE}'),
        ("/a", 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'),
        ("a=$", f'unable to parse requirement: values[0][a]: Invalid value: "$": {VALUE_RULE}'),
        ("a=\x01", f'unable to parse requirement: values[0][a]: Invalid value: "\\x01": {VALUE_RULE}'),
        ("a=\u2028", f'unable to parse requirement: values[0][a]: Invalid value: "\\u2028": {VALUE_RULE}'),
        (
            "a in (x,$,-)",
            f'unable to parse requirement: [values[0][a]: Invalid value: "$": {VALUE_RULE}, '
            f'values[1][a]: Invalid value: "-": {VALUE_RULE}]',
        ),
        (
            "a>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "a<9223372036854775808",
            'unable to parse requirement: values[0]: Invalid value: "9223372036854775808": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("a>-5", f'unable to parse requirement: values[0][a]: Invalid value: "-5": {VALUE_RULE}'),
    ],
)
def test_a_malformed_label_selector_is_refused_with_kubernetes_message(selector: str, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_label_selector(selector)

    assert (caught.value.code, caught.value.reason, caught.value.message) == (400, "BadRequest", message)


@given(st.text(alphabet="ab=!()<>,\\ \t\0in$/.-é5", max_size=20))
def test_whatever_is_sent_is_either_a_selector_or_a_bad_request(selector: str) -> None:
    for parse in (parse_label_selector, parse_field_selector):
        with suppress(StatusError):
            assert parse(selector).matches({"a": "b"}) in (True, False)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("!x", "invalid selector: '!x'; can't understand '!x'"),
        ("a,b=c", "invalid selector: 'a,b=c'; can't understand 'a'"),
        ("b=c,a\\", "invalid selector: 'b=c,a\\'; can't understand 'a\\'"),
        ("a>5", "invalid selector: 'a>5'; can't understand 'a>5'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a!==c", "invalid field selector: unescaped character in value: 61"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b\\é", "invalid field selector: invalid escape sequence: \\é"),
    ],
)
def test_a_malformed_field_selector_is_refused_with_kubernetes_message(selector: str, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_field_selector(selector)

    assert (caught.value.code, caught.value.reason, caught.value.message) == (400, "BadRequest", message)
