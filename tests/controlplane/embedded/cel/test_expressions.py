"""Errors of expressions are reported as by cel-go, with their position."""

from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.cel.declarations import declared
from kubewright.controlplane.embedded.cel.expressions import checked
from kubewright.controlplane.embedded.cel.program import InstantiationError
from kubewright.controlplane.embedded.cel.source import ExpressionError
from kubewright.controlplane.embedded.cel.types import CelType

OPERAND = (
    "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
    "IDENTIFIER}"
)
INDEX = OPERAND.replace("'!', ", "'!', '?', ")
SYNTAX = [
    ("self.text ==", 13, f"mismatched input '<EOF>' {OPERAND}"),
    ("self.flag &&", 13, f"mismatched input '<EOF>' {OPERAND}"),
    ("&& self.flag", 1, f"extraneous input '&&' {OPERAND}"),
    ("self.names[", 12, f"mismatched input '<EOF>' {INDEX}"),
    ("self.flag b", 11, "extraneous input 'b' expecting <EOF>"),
    ("self.flag and true", 11, "mismatched input 'and' expecting <EOF>"),
    ("(self.flag", 11, "missing ')' at '<EOF>'"),
    ("self.flag)", 10, "extraneous input ')' expecting <EOF>"),
    ("size(self.text b)", 16, "extraneous input 'b' expecting ')'"),
    ("[1, 2", 6, "mismatched input '<EOF>' expecting {']', ','}"),
    ("{'a' 1}", 6, "missing ':' at '1'"),
    ("self.flag ? 1", 14, "mismatched input '<EOF>' expecting ':'"),
    ("self.", 6, "no viable alternative at input '.'"),
    ("self..text", 6, "no viable alternative at input '..'"),
    ("self.text == 'x';", 17, "token recognition error at: ';'"),
    ("self.flag &", 11, "token recognition error at: '&'"),
]
FAULTS = [
    ("self.nope", 5, "undefined field 'nope'"),
    ("has(self.nope)", 4, "undefined field 'nope'"),
    ("self.unknown.z == 1", 13, "undefined field 'z'"),
    ("self.parts.exists(e, e.z == 1)", 23, "undefined field 'z'"),
    ("self.text.nope == 1", 10, "type 'string' does not support field selection"),
    ("nope == 1", 1, "undeclared reference to 'nope' (in container '')"),
    ("foo(1)", 4, "undeclared reference to 'foo' (in container '')"),
    ("self.foo(1)", 9, "undeclared reference to 'foo' (in container '')"),
    ("self.number == 'a'", 13, "found no matching overload for '_==_' applied to '(int, string)'"),
    ("self.text == null", 11, "found no matching overload for '_==_' applied to '(string, null)'"),
    ("1 + 'a' == ''", 3, "found no matching overload for '_+_' applied to '(int, string)'"),
    ("self.text.startsWith(1)", 21, "found no matching overload for 'startsWith' applied to 'string.(int)'"),
    ("self.either.startsWith(1)", 23, "found no matching overload for 'startsWith' applied to 'dyn.(int)'"),
    ("self.counts[1] == 1", 12, "found no matching overload for '_[_]' applied to '(map(string, int), int)'"),
    ("!self.number", 1, "found no matching overload for '!_' applied to '(int)'"),
    ("self.flag ? 1 : 'a'", 11, "found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
    ("self.flag && self.number", 18, "expected type 'bool' but found 'int'"),
    ("self.names.all(x, x)", 19, "expected type 'bool' but found 'string'"),
    (
        "self.names.filter(x, x).size() > 0",
        18,
        "found no matching overload for '_?_:_' applied to '(string, list(string), list(string))'",
    ),
    (
        "self.number.all(x, true)",
        5,
        "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
    ),
    ("[1, 'a'].size() == 2", 5, "expected type 'int' but found 'string'"),
    ("{'a': 1, 'b': 'c'}.size() == 2", 15, "expected type 'int' but found 'string'"),
    ("self.names.all(x.y, true)", 17, "argument must be a simple name"),
    ("has(self)", 5, "invalid argument to has() macro"),
    ("if == 1", 1, "reserved identifier: if"),
    ("9223372036854775808 == 1", 1, "invalid int literal"),
    ("self.text.matches('(')", 19, "invalid matches argument"),
    ("self.text.matches('a(?=b)')", 19, "invalid matches argument"),
    ("duration('1x') == duration('1s')", 10, "invalid duration argument"),
    ("timestamp('x') == self.time", 11, "invalid timestamp argument"),
    (
        "'%d'.format(['a']) == ''",
        14,
        "error during formatting: decimal clause can only be used on integers, was given string",
    ),
    ("'%s'.format([1, 2]) == ''", 12, "too many arguments supplied to string.format (expected 1, got 2)"),
    ("self.`text` == ''", 6, "unsupported syntax: '`'"),
]


@pytest.fixture
def variables(spec_schema: JSONObject) -> dict[str, CelType]:
    type_ = declared(spec_schema, resource=False)
    assert type_ is not None
    return {"self": type_}


@pytest.mark.parametrize(("expression", "column", "message"), SYNTAX)
def test_syntax_is_checked(expression: str, column: int, message: str, variables: dict[str, CelType]) -> None:
    with pytest.raises(ExpressionError) as caught:
        checked(expression, variables)
    mark = "." * (column - 1) + "^"
    expected = f"ERROR: <input>:1:{column}: Syntax error: {message}\n | {expression}\n | {mark}"
    assert str(caught.value) == expected


@pytest.mark.parametrize(("expression", "column", "message"), FAULTS)
def test_types_are_checked(expression: str, column: int, message: str, variables: dict[str, CelType]) -> None:
    with pytest.raises(ExpressionError) as caught:
        checked(expression, variables)
    mark = "." * (column - 1) + "^"
    assert str(caught.value) == f"ERROR: <input>:1:{column}: {message}\n | {expression}\n | {mark}"


def test_every_fault_is_reported_in_the_order_of_the_text(variables: dict[str, CelType]) -> None:
    with pytest.raises(ExpressionError) as caught:
        checked("math.greatest(1, x) == 2", variables)
    assert [(issue.at, issue.message) for issue in caught.value.issues] == [
        (0, "undeclared reference to 'math' (in container '')"),
        (13, "undeclared reference to 'greatest' (in container '')"),
        (17, "undeclared reference to 'x' (in container '')"),
    ]


def test_the_line_of_a_fault_is_shown(variables: dict[str, CelType]) -> None:
    with pytest.raises(ExpressionError) as caught:
        checked("self.flag &&\n\tself.nope", variables)
    assert str(caught.value) == "ERROR: <input>:2:6: undefined field 'nope'\n |  self.nope\n | .....^"


def test_wide_characters_get_wide_dots(variables: dict[str, CelType]) -> None:
    with pytest.raises(ExpressionError) as caught:
        checked("'é' == self.nope", variables)
    assert str(caught.value).endswith("\n | 'é' == self.nope\n | .\N{FULLWIDTH FULL STOP}.........^")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("int(1e30) == 1", "integer overflow"),
        ("string(dyn([1])) == ''", "no such overload: string(list)"),
        ("self.text.find(')') == ''", "error parsing regexp: unexpected ): `)`"),
    ],
)
def test_constants_that_can_never_be_converted_are_found_early(
    expression: str, message: str, variables: dict[str, CelType]
) -> None:
    with pytest.raises(InstantiationError) as caught:
        checked(expression, variables).program()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "expression", ["(" * 2000 + "true" + ")" * 2000, "+".join("1" * 3000) + " > 0", "self" + ".part" * 5000]
)
def test_absurdly_deep_expressions_are_refused(expression: str, variables: dict[str, CelType]) -> None:
    with pytest.raises(ExpressionError, match="recursion"):
        checked(expression, variables)


def test_long_chains_of_conditions_are_fine(variables: dict[str, CelType]) -> None:
    expression = " && ".join(["self.flag"] * 2000)
    assert checked(expression, variables).type.kind == "bool"


def test_a_huge_expression_is_refused(variables: dict[str, CelType]) -> None:
    with pytest.raises(ExpressionError, match="expression code point size exceeds limit: size: 100001, limit 100000"):
        checked("1" * 100_001, variables)
