"""Makes a tree of an expression: recursive descent with the grammar of CEL and the messages of cel-go's parser.

After the first token that does not fit nothing more is read, where cel-go guesses how the expression could go on.
"""

from __future__ import annotations

from typing import Final, NoReturn

from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.cel.escaping import RESERVED
from kubewright.controlplane.embedded.cel.lexer import Token, bytes_of, text_of, tokens_of
from kubewright.controlplane.embedded.cel.macros import MacroError, expanded
from kubewright.controlplane.embedded.cel.source import NOWHERE, ExpressionError, Issue
from kubewright.controlplane.embedded.cel.syntax import (
    FunctionCall,
    Ident,
    ListLiteral,
    Literal_,
    MapLiteral,
    MapLiteralEntry,
    MessageLiteral,
    MessageLiteralField,
    Node,
    Select,
)
from kubewright.controlplane.embedded.cel.types import BOOL, BYTES, DOUBLE, ERROR, INT, NULL, STRING, UINT
from kubewright.controlplane.embedded.cel.values import MAX_INT, MIN_INT, Uint

_PRECEDENCE: Final = {
    "||": 1,
    "&&": 2,
    "<": 3,
    "<=": 3,
    ">": 3,
    ">=": 3,
    "==": 3,
    "!=": 3,
    "in": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
}
_RESERVED: Final = RESERVED - {"true", "false", "null", "in"}
# What may begin an operand, in the order of the grammar: this is how messages list what was expected.
_SIGNS: Final = ("[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "true", "false", "null")
_OPERAND_SIGNS: Final = frozenset(("[", "{", "(", ".", "-", "!", "true", "false", "null"))
_OPERAND_KINDS: Final = frozenset(("float", "int", "uint", "string", "bytes", "ident"))
_NAMED: Final = ("NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER")
_FOLLOWS_OPERAND: Final = frozenset((")", "]", "}", ",", ":", "?", ".", "[", *_PRECEDENCE))
_MAX_LENGTH: Final = 100_000
_DEEPEST: Final = 250


class _SyntaxError(Exception):
    pass


def parsed(expression: str) -> Node:
    """The tree of an expression; ExpressionError when it has none."""
    if len(expression) > _MAX_LENGTH:
        message = f"expression code point size exceeds limit: size: {len(expression)}, limit {_MAX_LENGTH}"
        raise ExpressionError(expression, [Issue(NOWHERE, message)])
    tokens, issues = tokens_of(expression)
    parser = _Parser(tokens, issues)
    try:
        node = parser.start()
    except _SyntaxError:
        raise ExpressionError(expression, issues) from None
    except RecursionError:
        issue = Issue(NOWHERE, f"expression recursion limit exceeded: {_DEEPEST}")
        raise ExpressionError(expression, [issue]) from None
    if issues:
        raise ExpressionError(expression, issues)
    return node


class _Parser:
    def __init__(self, tokens: list[Token], issues: list[Issue]) -> None:
        self._tokens = tokens
        self._issues = issues
        self._position = 0

    def start(self) -> Node:
        node = self._expression()
        if self._token.kind != "end":
            self._fail_unless_last("<EOF>")
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._position]

    @property
    def _next(self) -> Token:
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    def _is(self, sign: str) -> bool:
        token = self._tokens[self._position]
        return token.kind == "sign" and token.text == sign

    def _take(self) -> Token:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _taken(self, sign: str) -> bool:
        if self._is(sign):
            self._position += 1
            return True
        return False

    def _report(self, at: int, message: str) -> Node:
        self._issues.append(Issue(at, message))
        return Literal_("<<error>>", at=at, type=ERROR)

    def _fail(self, message: str) -> NoReturn:
        self._issues.append(Issue(self._token.at, f"Syntax error: {message}"))
        raise _SyntaxError

    def _fail_unless_last(self, expected: str) -> NoReturn:
        wrong = "extraneous" if self._next.kind == "end" else "mismatched"
        self._fail(f"{wrong} input '{self._token.text}' expecting {expected}")

    def _expect(self, sign: str) -> Token:
        if self._is(sign):
            return self._take()
        token, following = self._token, self._next
        if following.kind == "sign" and following.text == sign:
            self._fail(f"extraneous input '{token.text}' expecting '{sign}'")
        may_follow = _begins_operand(token) if sign == ":" else token.kind == "end" or token.text in _FOLLOWS_OPERAND
        if may_follow:
            self._fail(f"missing '{sign}' at '{token.text}'")
        return self._fail(f"mismatched input '{token.text}' expecting '{sign}'")

    def _expect_close(self, sign: str) -> None:
        if self._taken(sign):
            return
        wrong = "extraneous" if self._next.kind == "sign" and self._next.text == sign else "mismatched"
        self._fail(f"{wrong} input '{self._token.text}' expecting {{'{sign}', ','}}")

    def _expression(self, *also: str) -> Node:
        node = self._operators(1, also)
        if not self._is("?"):
            return node
        at = self._take().at
        then = self._operators(1)
        self._expect(":")
        return FunctionCall("_?_:_", None, [node, then, self._expression()], at=at)

    def _operators(self, lowest: int, also: tuple[str, ...] = ()) -> Node:
        left = self._unary(also)
        while True:
            token = self._token
            precedence = _PRECEDENCE.get(token.text, 0) if token.kind == "sign" else 0
            if precedence < lowest:
                return left
            self._position += 1
            right = self._operators(precedence + 1)
            if precedence > 2:
                name = "@in" if token.text == "in" else f"_{token.text}_"
                left = FunctionCall(name, None, [left, right], at=token.at)
                continue
            name = f"_{token.text}_"
            if isinstance(left, FunctionCall) and left.function == name:
                # A chain `a && b && c` is one call of many arguments, so that long ones need no deep recursion.
                left.arguments.append(right)
            else:
                left = FunctionCall(name, None, [left, right], at=token.at)

    def _unary(self, also: tuple[str, ...] = ()) -> Node:
        token = self._token
        if token.kind != "sign" or token.text not in ("!", "-"):
            return self._member(self._primary(also))
        if token.text == "-" and self._next.kind in ("int", "float"):
            self._position += 1
            return self._member(self._number(negative=token))
        count = 0
        while self._taken(token.text):
            count += 1
        operand = self._member(self._primary())
        return FunctionCall(f"{token.text}_", None, [operand], at=token.at) if count % 2 else operand

    def _member(self, node: Node) -> Node:
        while True:
            if self._is("."):
                node = self._selected(node)
            elif self._is("["):
                at = self._take().at
                optional = self._taken("?")
                index = self._expression(*(() if optional else ("?",)))
                self._expect("]")
                node = FunctionCall("_[?_]" if optional else "_[_]", None, [node, index], at=at)
            elif self._is("{") and (name := qualified_name(node)) is not None:
                node = self._message(name)
            else:
                return node

    def _selected(self, node: Node) -> Node:
        dot = self._take()
        optional = self._taken("?")
        token = self._token
        if token.kind == "escaped":
            self._position += 1
            return self._report(token.at, "unsupported syntax: '`'")
        if token.kind != "ident":
            if token.text in ("true", "false", "null"):
                self._fail(f"mismatched input '{token.text}' expecting IDENTIFIER")
            text = "" if token.kind == "end" else token.text
            self._fail(f"no viable alternative at input '.{text}'")
        self._position += 1
        if optional:
            return Select(node, token.text, optional=True, at=dot.at)
        if self._is("("):
            at = self._take().at
            return self._called(token.text, node, self._arguments(), at)
        return Select(node, token.text, at=dot.at)

    def _called(self, name: str, target: Node | None, arguments: list[Node], at: int) -> Node:
        try:
            return expanded(name, target, arguments, at) or FunctionCall(name, target, arguments, at=at)
        except MacroError as error:
            return self._report(error.at, str(error))

    def _arguments(self) -> list[Node]:
        if self._taken(")"):
            return []
        arguments = [self._expression(")")]
        while self._taken(","):
            arguments.append(self._expression())
        self._expect(")")
        return arguments

    def _primary(self, also: tuple[str, ...] = ()) -> Node:
        token = self._token
        if token.kind == "sign":
            match token.text:
                case "(":
                    self._position += 1
                    node = self._expression()
                    self._expect(")")
                    return node
                case "[":
                    return self._list()
                case "{":
                    return self._map()
                case "." if self._next.kind == "ident":
                    self._position += 1
                    return self._named(self._take(), token)
                case "true" | "false":
                    self._position += 1
                    return Literal_(token.text == "true", at=token.at, type=BOOL)
                case "null":
                    self._position += 1
                    return Literal_(None, at=token.at, type=NULL)
                case ".":
                    self._position += 1
                    self._fail(f"no viable alternative at input '.{self._token.text}'")
        match token.kind:
            case "ident":
                return self._named(self._take(), None)
            case "int" | "float":
                return self._number(negative=None)
            case "uint":
                self._position += 1
                return self._unsigned(token)
            case "string" | "bytes":
                self._position += 1
                return self._quoted(token)
            case _:
                wrong = "extraneous" if _begins_operand(self._next) else "mismatched"
                return self._fail(f"{wrong} input '{token.text}' expecting {_expected(also)}")

    def _named(self, token: Token, dot: Token | None) -> Node:
        if token.text in _RESERVED:
            return self._report((dot or token).at, f"reserved identifier: {token.text}")
        name = f".{token.text}" if dot else token.text
        if self._is("("):
            at = self._take().at
            return self._called(name, None, self._arguments(), at)
        return Ident(name, at=token.at)

    def _number(self, negative: Token | None) -> Node:
        token = self._take()
        sign, at = ("-", negative.at) if negative else ("", token.at)
        if token.kind == "float":
            value = float(sign + token.text)
            if value in (float("inf"), float("-inf")):
                return self._report(at, "invalid double literal")
            return Literal_(value, at=at, type=DOUBLE)
        number = _integer(token.text) * (-1 if sign else 1)
        if not MIN_INT <= number <= MAX_INT:
            return self._report(at, "invalid int literal")
        return Literal_(number, at=at, type=INT)

    def _unsigned(self, token: Token) -> Node:
        number = _integer(token.text[:-1])
        if number >= 2**64:
            return self._report(token.at, "invalid uint literal")
        return Literal_(Uint(number), at=token.at, type=UINT)

    def _quoted(self, token: Token) -> Node:
        try:
            if token.kind == "bytes":
                return Literal_(bytes_of(token.text), at=token.at, type=BYTES)
            return Literal_(text_of(token.text), at=token.at, type=STRING)
        except ValueError as error:
            return self._report(token.at, str(error))

    def _list(self) -> Node:
        at = self._take().at
        elements: list[Node] = []
        optional: set[int] = set()
        also: tuple[str, ...] = ("]", ",", "?")
        while not self._is("]"):
            if elements:
                if not self._is(","):
                    break
                self._position += 1
                if self._is("]"):
                    break
            elif self._is(",") and self._next.text == "]":
                self._position += 1
                break
            if self._taken("?"):
                optional.add(len(elements))
            elements.append(self._expression(*also))
            also = ("]", "?")
        self._expect_close("]")
        return ListLiteral(elements, frozenset(optional), at=at)

    def _map(self) -> Node:
        at = self._take().at
        entries: list[MapLiteralEntry] = []
        also: tuple[str, ...] = ("}", ",", "?")
        while not self._is("}"):
            if entries:
                if not self._is(","):
                    break
                self._position += 1
                if self._is("}"):
                    break
            elif self._is(",") and self._next.text == "}":
                self._position += 1
                break
            optional = self._taken("?")
            key = self._expression(*also)
            self._expect(":")
            entries.append(MapLiteralEntry(key, self._expression(), optional))
            also = ("}", "?")
        self._expect_close("}")
        return MapLiteral(entries, at=at)

    def _message(self, name: str) -> Node:
        at = self._take().at
        fields: list[MessageLiteralField] = []
        while not self._is("}"):
            optional = self._taken("?")
            if self._token.kind != "ident":
                self._fail(f"mismatched input '{self._token.text}' expecting {{'}}', ',', '?', IDENTIFIER}}")
            field = self._take().text
            colon = self._expect(":")
            fields.append(MessageLiteralField(field, self._expression(), optional, colon.at))
            if not self._taken(","):
                break
        self._expect_close("}")
        return MessageLiteral(name, fields, at=at)


def _begins_operand(token: Token) -> bool:
    return token.kind in _OPERAND_KINDS or (token.kind == "sign" and token.text in _OPERAND_SIGNS)


def _expected(also: tuple[str, ...]) -> str:
    signs = [f"'{sign}'" for sign in _SIGNS if sign in _OPERAND_SIGNS or sign in also]
    return f"{{{', '.join([*signs, *_NAMED])}}}"


def qualified_name(node: Node) -> str | None:
    """`a.b.c` when the node is nothing but names; None otherwise."""
    match node:
        case Ident():
            return node.name
        case Select() if not node.test and not node.optional:
            prefix = qualified_name(node.operand)
            return None if prefix is None else f"{prefix}.{node.field}"
        case _:
            return None


def _integer(text: str) -> int:
    return int(text, 16) if text.startswith("0x") else bounded_integer(text)
