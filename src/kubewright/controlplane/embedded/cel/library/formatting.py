"""`'%d of %s'.format([1, x])`: the clauses, what they print, and which types they take."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kubewright.controlplane.embedded.apimachinery.gotext import ESCAPES, bounded_integer
from kubewright.controlplane.embedded.cel.library.numbers import double_text
from kubewright.controlplane.embedded.cel.library.times import duration_text, timestamp_text
from kubewright.controlplane.embedded.cel.values import (
    Duration,
    EvaluationError,
    Timestamp,
    TypeValue,
    Uint,
    elements_of,
    found_in,
    keys_of,
    type_name,
)

_PRECISION: Final = 6
_MAX_PRECISION: Final = 10_000
"""Digits after the point; the real one has memory for more."""
_CLAUSE: Final = re.compile(r"%(?:(%)|(?:\.([0-9]*))?(.)?)", re.DOTALL)

ALLOWED: Final[dict[str, tuple[frozenset[str], str]]] = {
    "s": (
        frozenset(
            [
                "list",
                "map",
                "int",
                "uint",
                "double",
                "bool",
                "string",
                "bytes",
                "type",
                "null_type",
                "google.protobuf.Timestamp",
                "google.protobuf.Duration",
            ]
        ),
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        "timestamps",
    ),
    "d": (frozenset(("int", "uint")), "decimal clause can only be used on integers"),
    "f": (frozenset(("double", "string")), "fixed-point clause can only be used on doubles"),
    "e": (frozenset(("double", "string")), "scientific clause can only be used on doubles"),
    "b": (frozenset(("int", "uint", "bool")), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset(("int", "uint", "string", "bytes")),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset(("int", "uint")), "octal clause can only be used on integers"),
}
"""Which types each clause takes, and what to say of any other."""


class FormatError(Exception):
    """A format that cannot be used; `argument` is the index of the invalid argument, if there is one."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.argument = argument


@dataclass(frozen=True, slots=True)
class Clause:
    """Text, then one clause for the argument at `index` unless it is the end."""

    before: str
    index: int
    letter: str = ""
    precision: int = _PRECISION
    upper: bool = False


def clauses(template: str, count: int) -> Iterator[Clause]:
    """The clauses of a format for `count` arguments, and a last one with the rest of the text."""
    text, position, index = "", 0, 0
    for found in _CLAUSE.finditer(template):
        text += template[position : found.start()]
        position = found.end()
        if found[1]:
            text += "%"
            continue
        if index >= count:
            raise FormatError(f"index {index} out of range")
        letter = found[3]
        if letter is None:
            if found[2] is None:
                raise FormatError("unexpected end of string")
            message = "error while parsing precision: could not find end of precision specifier"
            raise FormatError(f"could not parse formatting clause: {message}")
        if found[2] == "":
            message = (
                'error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing ""'
            )
            raise FormatError(f"could not parse formatting clause: {message}: invalid syntax")
        if letter.lower() not in ALLOWED or (letter.isupper() and letter != "X"):
            raise FormatError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
        yield Clause(
            text, index, letter.lower(), _PRECISION if found[2] is None else bounded_integer(found[2]), letter.isupper()
        )
        text, index = "", index + 1
    yield Clause(text + template[position:], index)


def formatted(template: str, arguments: object) -> str:
    """The template with its clauses filled in."""
    values = elements_of(arguments) or []
    parts: list[str] = []
    try:
        for clause in clauses(template, len(values)):
            parts.append(clause.before)
            if clause.letter:
                parts.append(_PRINTERS[clause.letter](values[clause.index], clause))
    except FormatError as error:
        raise EvaluationError(str(error)) from None
    return "".join(parts)


def refused(letter: str, name: str) -> FormatError:
    """What is wrong with an argument of a type that a clause does not take."""
    return FormatError(f"error during formatting: {ALLOWED[letter][1]}, was given {name}")


def _decimal(value: object, _clause: Clause) -> str:
    if type(value) is int or type(value) is Uint:
        return str(int(value))
    raise refused("d", type_name(value))


def _text(value: object, _clause: Clause) -> str:
    return text_of(value)


def text_of(value: object) -> str:
    """A value as `%s` prints it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case str():
            return value
        case bytes():
            return _decoded(value)
        case Timestamp():
            return timestamp_text(value)
        case Duration():
            return duration_text(value)
        case TypeValue():
            return value.name
    elements = elements_of(value)
    if elements is not None:
        return f"[{', '.join(map(_literal, elements))}]"
    keys = keys_of(value)
    if keys is None:
        raise refused("s", type_name(value))
    entries = []
    for key in keys:
        found = found_in(value, key)
        if not isinstance(key, str | int):
            raise FormatError(f"error during formatting: no formatting function for map key of type {type_name(key)}")
        entries.append((text_of(key), key, found[1] if found else None))
    entries.sort(key=lambda entry: entry[0])
    return f"{{{', '.join(f'{_literal(key)}:{_literal(item)}' for _, key, item in entries)}}}"


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        message = 'could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string'
        raise FormatError(f"error during formatting: {message}") from None


_QUOTED: Final = str.maketrans(ESCAPES)


def quoted(text: str) -> str:
    """Text as a literal of CEL."""
    return f'"{text.translate(_QUOTED)}"'


def _literal(value: object) -> str:
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(_decoded(value))}"
        case float():
            return f"{value:.{_PRECISION}f}"
        case Timestamp():
            return f'timestamp("{timestamp_text(value)}")'
        case Duration():
            return f'duration("{duration_text(value)}")'
        case _:
            return text_of(value)


def _fixed(value: object, clause: Clause) -> str:
    return _special(value, clause) or f"{_number(value, clause):,.{clause.precision}f}"


def _scientific(value: object, clause: Clause) -> str:
    special = _special(value, clause)
    if special:
        return special
    # The precision is taken for a width, and powers of ten are written as such: both as cel-go has it.
    mantissa, exponent = f"{_number(value, clause):.{_PRECISION}e}".split("e")
    power = f"{'-' if exponent[0] == '-' else ''}{exponent[1:]}".translate(_SUPERSCRIPT)
    return f"{mantissa}×10{power}"  # noqa: RUF001 (the multiplication sign is meant)


_SUPERSCRIPT: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _special(value: object, clause: Clause) -> str:
    number = _number(value, clause)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return ""


def _number(value: object, clause: Clause) -> float:
    if isinstance(value, float):
        return value
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(str(value))
    raise refused(clause.letter, type_name(value))


def _binary(value: object, _clause: Clause) -> str:
    if isinstance(value, int):
        return f"{int(value):b}"
    raise refused("b", type_name(value))


def _hexadecimal(value: object, clause: Clause) -> str:
    match value:
        case bool():
            raise refused("x", "bool")
        case int():
            shown = f"{int(value):x}"
        case str():
            shown = value.encode().hex()
        case bytes():
            shown = value.hex()
        case _:
            raise refused("x", type_name(value))
    return shown.upper() if clause.upper else shown


def _octal(value: object, _clause: Clause) -> str:
    if type(value) is int or type(value) is Uint:
        return f"{int(value):o}"
    raise refused("o", type_name(value))


_PRINTERS: Final[dict[str, Callable[[object, Clause], str]]] = {
    "s": _text,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "o": _octal,
}
