"""Cuts an expression into tokens, as the grammar of cel-go does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kubewright.controlplane.embedded.cel.source import Issue

TokenKind: TypeAlias = Literal["float", "int", "uint", "string", "bytes", "ident", "escaped", "sign", "end"]

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = rf"""(?:
      [rR]\"\"\"(?:.|\n)*?\"\"\" | [rR]'''(?:.|\n)*?''' | [rR]"[^"\n\r]*" | [rR]'[^'\n\r]*'
    | \"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\" | '''(?:{_ESCAPE}|[^\\])*?'''
    | "(?:{_ESCAPE}|[^\\"\n\r])*" | '(?:{_ESCAPE}|[^\\'\n\r])*'
)"""
_TOKEN: Final = re.compile(
    rf"""
      (?P<hidden> [\t \r\n\f]+ | //[^\n]* )
    | (?P<bytes> [bB]{_STRING} )
    | (?P<string> {_STRING} )
    | (?P<float> [0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | \.[0-9]+(?:[eE][+-]?[0-9]+)? )
    | (?P<uint> (?: 0x[0-9a-fA-F]+ | [0-9]+ )[uU] )
    | (?P<int> 0x[0-9a-fA-F]+ | [0-9]+ )
    | (?P<ident> [A-Za-z_][A-Za-z0-9_]* )
    | (?P<escaped> `[A-Za-z0-9_.\-/ ]+` )
    | (?P<sign> == | != | <= | >= | && | \|\| | [<>\[\]{{}}().,\-!?:+*/%] )
    """,
    re.VERBOSE,
)
# How far something that looked like a token goes before it turns out to be none: up to and with the offending sign.
_BROKEN: Final = re.compile(
    rf"""
      "(?:{_ESCAPE}|[^\\"\n\r])*(?: \\[xX][0-9a-fA-F]? | \\u[0-9a-fA-F]{{0,3}} | \\U[0-9a-fA-F]{{0,7}}
                                  | \\[0-3][0-7]? | \\ )?(?:.|\n)?
    | '(?:{_ESCAPE}|[^\\'\n\r])*(?: \\[xX][0-9a-fA-F]? | \\u[0-9a-fA-F]{{0,3}} | \\U[0-9a-fA-F]{{0,7}}
                                  | \\[0-3][0-7]? | \\ )?(?:.|\n)?
    | `[A-Za-z0-9_.\-/ ]*(?:.|\n)?
    | [=&|](?:.|\n)?
    | .
    """,
    re.VERBOSE,
)
_KINDS: Final[dict[str, TokenKind]] = {
    "bytes": "bytes",
    "string": "string",
    "float": "float",
    "uint": "uint",
    "int": "int",
    "ident": "ident",
    "escaped": "escaped",
    "sign": "sign",
}
# Words of the grammar: signs that are written with letters.
_WORDS: Final = frozenset(("in", "true", "false", "null"))


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the expression and its offset; at the end comes one of kind "end", shown as `<EOF>`."""

    kind: TokenKind
    text: str
    at: int


def tokens_of(expression: str) -> tuple[list[Token], list[Issue]]:
    """All tokens, and a fault for everything that is none."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    position = 0
    while position < len(expression):
        found = _TOKEN.match(expression, position)
        if found is None:
            broken = _BROKEN.match(expression, position)
            text = broken.group() if broken else expression[position]
            issues.append(Issue(position, f"Syntax error: token recognition error at: '{_visible(text)}'"))
            position += len(text)
            continue
        if found.lastgroup and found.lastgroup != "hidden":
            text = found.group()
            kind: TokenKind = "sign" if text in _WORDS else _KINDS[found.lastgroup]
            tokens.append(Token(kind, text, position))
        position = found.end()
    tokens.append(Token("end", "<EOF>", len(expression)))
    return tokens, issues


def _visible(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPED: Final = re.compile(
    r"\\(?:[xX](?P<hex>..)|u(?P<u>.{4})|U(?P<long>.{8})|(?P<octal>[0-3]..)|(?P<simple>.))", re.DOTALL
)


def text_of(token: str) -> str:
    """The string that a string token stands for; ValueError for an escape that is no character."""
    raw, body = _unquoted(token)
    return body if raw else _ESCAPED.sub(_character, body)


def bytes_of(token: str) -> bytes:
    """The bytes that a bytes token stands for: hexadecimal and octal escapes are bytes, everything else is UTF-8."""
    raw, body = _unquoted(token[1:])
    if raw:
        return body.encode()
    parts: list[bytes] = []
    position = 0
    for found in _ESCAPED.finditer(body):
        parts.append(body[position : found.start()].encode())
        code = found["hex"] or found["octal"]
        if code:
            parts.append(bytes([int(code, 16 if found["hex"] else 8)]))
        else:
            parts.append(_character(found).encode())
        position = found.end()
    return b"".join([*parts, body[position:].encode()])


def _unquoted(token: str) -> tuple[bool, str]:
    raw = token[0] in "rR"
    if raw:
        token = token[1:]
    width = 3 if token.startswith(('"""', "'''")) and len(token) >= 6 else 1
    # Line ends are the same on every platform.
    return raw, token[width:-width].replace("\r\n", "\n").replace("\r", "\n")


def _character(found: re.Match[str]) -> str:
    if found["simple"]:
        return _SIMPLE[found["simple"]]
    digits = found["hex"] or found["u"] or found["long"]
    code = int(digits, 16) if digits else int(found["octal"], 8)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("unable to unescape string")
    return chr(code)
