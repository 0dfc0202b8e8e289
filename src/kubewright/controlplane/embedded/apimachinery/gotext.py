"""Texts of Go's standard library that reach the client: quoted strings and complaints about JSON, to the letter.

Only for messages: bodies are decoded by a real decoder, and this explains why it failed.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

MAX_DEPTH: Final = 10_000
_SUMMARY = 30
_BEYOND_64_BITS = 21

ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def summarized(data: bytes) -> str:
    """The beginning of a body that was not recognised: as it is when it looks like JSON, else in hexadecimal."""
    if not data:
        return "<empty>"
    beginning = data[:_SUMMARY].decode(errors="replace") if data[:1] == b"{" else data[:_SUMMARY].hex()
    return f"{beginning} ..." if len(data) > _SUMMARY else beginning


def printed_number(value: float) -> str:
    """A number as Go's `%v` prints it."""
    if isinstance(value, int):
        return str(value)
    decimal = Decimal(repr(value)).normalize()
    exponent = decimal.adjusted() if value else 0
    if -4 <= exponent < 6:
        return format(decimal, "f")
    mantissa = format(decimal.scaleb(-exponent), "f")
    return f"{mantissa}e{'+' if exponent > 0 else '-'}{abs(exponent):02d}"


def bounded_integer(numeral: str) -> int:
    """The integer of any number of decimal digits; one of more than 64 bits is cut, and still has more."""
    digits = numeral.lstrip("+-").lstrip("0")[:_BEYOND_64_BITS] or "0"
    return -int(digits) if numeral.startswith("-") else int(digits)


def quoted(text: str) -> str:
    """A string as `%q` prints it."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_shown, text))}"'


def _shown(character: str) -> str:
    code = ord(character)
    if character in ESCAPES:
        return ESCAPES[character]
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _State(NamedTuple):
    """Where a token stands: by which characters it goes on, and what is wrong with others unless it ends there."""

    following: dict[str, str]
    complaint: str = ""
    otherwise: str = ""


def _to(**states: str) -> dict[str, str]:
    return {character: state for state, characters in states.items() for character in characters}


_DIGITS = "0123456789"
_HEX = _DIGITS + "abcdefABCDEF"
_HEX_COMPLAINT = "in \\u hexadecimal character escape"
_EXPONENT_COMPLAINT = "in exponent of numeric literal"
_TOKENS = {
    "minus": _State(_to(zero="0", whole="123456789"), "in numeric literal"),
    "zero": _State(_to(dot=".", exponent="eE"), otherwise="again"),
    "whole": _State(_to(whole=_DIGITS, dot=".", exponent="eE"), otherwise="again"),
    "dot": _State(_to(fraction=_DIGITS), "after decimal point in numeric literal"),
    "fraction": _State(_to(fraction=_DIGITS, exponent="eE"), otherwise="again"),
    "exponent": _State(_to(sign="+-", power=_DIGITS), _EXPONENT_COMPLAINT),
    "sign": _State(_to(power=_DIGITS), _EXPONENT_COMPLAINT),
    "power": _State(_to(power=_DIGITS), otherwise="again"),
    "string": _State(
        {'"': "end", "\\": "escape"} | {chr(code): "" for code in range(0x20)}, "in string literal", "string"
    ),
    "escape": _State(_to(string='bfnrt\\/"', hex1="u"), "in string escape code"),
    "hex1": _State(_to(hex2=_HEX), _HEX_COMPLAINT),
    "hex2": _State(_to(hex3=_HEX), _HEX_COMPLAINT),
    "hex3": _State(_to(hex4=_HEX), _HEX_COMPLAINT),
    "hex4": _State(_to(string=_HEX), _HEX_COMPLAINT),
} | {
    word[:read]: _State(
        {word[read]: word[: read + 1] if read + 1 < len(word) else "end"},
        f"in literal {word} (expecting {word[read]!r})",
    )
    for word in ("true", "false", "null")
    for read in range(1, len(word))
}
_STARTS = _to(string='"', minus="-", zero="0", whole="123456789", t="t", f="f", n="n")
_SPACES = " \t\r\n"
_AFTER = {"key": "after object key", "{": "after object key:value pair", "[": "after array element"}


def json_complaint(data: bytes) -> str | None:
    """The message of encoding/json about bytes that are not JSON; None when they are."""
    nesting: list[str] = []
    state = "value"
    # At the end, the scanner is given a space to see whether what it has is complete. Bytes are characters to it.
    for character in data.decode("latin-1") + " ":
        if state in _TOKENS:
            following, complaint, otherwise = _TOKENS[state]
            state = following.get(character, otherwise)
            if not state:
                return _about(character, complaint)
            if state != "again":
                continue
            state = "end"
        if character in _SPACES:
            continue
        state, complaint = _structure(state, character, nesting)
        if complaint:
            return _about(character, complaint)
        if character in "{[" and len(nesting) > MAX_DEPTH:
            return _about(character, "exceeded max depth")
    return None if state == "end" and not nesting else "unexpected end of JSON input"


def _structure(state: str, character: str, nesting: list[str]) -> tuple[str, str]:
    """The state after a character between tokens, or what is wrong with it. `nesting` holds what is open."""
    if state == "end":
        return _separator(character, nesting)
    if (state, character) in (("first key", "}"), ("first item", "]")):
        nesting.pop()
        return "end", ""
    if state in ("first key", "key"):
        if character != '"':
            return "", "looking for beginning of object key string"
        nesting.append("key")
        return "string", ""
    if character in "{[":
        nesting.append(character)
        return "first key" if character == "{" else "first item", ""
    if character in _STARTS:
        return _STARTS[character], ""
    return "", "looking for beginning of value"


def _separator(character: str, nesting: list[str]) -> tuple[str, str]:
    if not nesting:
        return "", "after top-level value"
    match nesting[-1], character:
        case "key", ":":
            nesting.pop()
            return "value", ""
        case "{", ",":
            return "key", ""
        case "[", ",":
            return "value", ""
        case ("{", "}") | ("[", "]"):
            nesting.pop()
            return "end", ""
    return "", _AFTER[nesting[-1]]


def _about(character: str, complaint: str) -> str:
    shown = {"'": "\\'", '"': '"'}.get(character) or quoted(character)[1:-1]
    return f"invalid character '{shown}' {complaint}"
