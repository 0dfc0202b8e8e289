"""Python source that `ruff format` and `black` leave as it is.

An expression is a tree of brackets and unions. What fits on its line is written on it; what does not is broken at its
outermost bracket, one item per line, with a trailing comma. It knows the few forms that type annotations, literals and
calls take, and is no general formatter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

INDENT = "    "


@dataclass(frozen=True, slots=True)
class Bracket:
    """`before(item, item)after`, with any kind of bracket: a call, a subscript, a list, a dict or a keyword argument.

    A subscript of one item must not have a trailing comma, which would make a tuple of it.
    """

    opening: str
    items: tuple[Expression, ...]
    closing: str
    trailing_comma: bool = True


@dataclass(frozen=True, slots=True)
class Prefixed:
    """`name=value` or `"key": value`."""

    prefix: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Union:
    """`one | other`."""

    members: tuple[Expression, ...]


Expression: TypeAlias = "str | Bracket | Prefixed | Union"


def subscript(name: str, *items: Expression) -> Bracket:
    """`name[item, item]`."""
    return Bracket(f"{name}[", items, "]", trailing_comma=len(items) > 1)


def call(function: str, /, *positional: Expression, **named: Expression) -> Bracket:
    """`function(positional, name=value)`."""
    return Bracket(f"{function}(", (*positional, *(Prefixed(f"{key}=", value) for key, value in named.items())), ")")


def literal(value: object) -> Expression:
    """A JSON value as Python writes it."""
    if isinstance(value, list):
        return Bracket("[", tuple(map(literal, value)), "]")
    if isinstance(value, dict):
        return Bracket("{", tuple(Prefixed(f"{text(str(key))}: ", literal(item)) for key, item in value.items()), "}")
    # Formatters write exponents without a plus.
    return text(value) if isinstance(value, str) else repr(value).replace("e+", "e")


def text(value: str) -> str:
    """A string literal: in double quotes unless the other ones need fewer escapes, raw where it has backslashes."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    if "\\" in value and value.isprintable() and quote not in value and not value.endswith("\\"):
        return f"r{quote}{value}{quote}"
    escaped = "".join(_escaped(character, quote) for character in value)
    return f"{quote}{escaped}{quote}"


def _escaped(character: str, quote: str) -> str:
    if character in ("\\", quote):
        return f"\\{character}"
    return character if character.isprintable() else repr(character)[1:-1]


def flat(expression: Expression) -> str:
    """The expression on one line."""
    match expression:
        case Bracket(opening, items, closing):
            return f"{opening}{', '.join(map(flat, items))}{closing}"
        case Prefixed(prefix, value):
            return f"{prefix}{flat(value)}"
        case Union(members):
            return " | ".join(map(flat, members))
        case str():
            return expression


def statement(before: str, expression: Expression, after: str, indent: str, width: int) -> list[str]:
    """The lines of one expression between `before` and `after`, both of which stay on its first and last line."""
    whole = f"{indent}{before}{flat(expression)}{after}"
    if len(whole) <= width:
        return [whole]
    match expression:
        case Bracket(opening, items, closing, trailing_comma) if items:
            lines = [f"{indent}{before}{opening}"]
            for number, item in enumerate(items):
                comma = "," if trailing_comma or number < len(items) - 1 else ""
                lines += statement("", item, comma, indent + INDENT, width)
            return [*lines, f"{indent}{closing}{after}"]
        case Prefixed(prefix, value):
            return statement(f"{before}{prefix}", value, after, indent, width)
        case Union(members) if not before:
            lines = statement("", members[0], "", indent, width)
            for member in members[1:]:
                lines += statement("| ", member, "", indent, width)
            lines[-1] += after
            return lines
    return [whole]


def assignment(name: str, annotation: Expression, value: Expression | None, indent: str, width: int) -> list[str]:
    """`name: annotation = value`, broken where it is too long: around or in the value where that is enough, else in the
    annotation.
    """
    before, after = f"{name}: ", "" if value is None else f" = {flat(value)}"
    opened = f"{before}{flat(annotation)} = "
    if value is None or len(f"{indent}{opened}{flat(value)}") <= width:
        return _annotation(before, annotation, after, indent, width)
    if isinstance(value, Bracket) and len(f"{indent}{opened}{value.opening}") <= width:
        return statement(opened, value, "", indent, width)
    if max(len(f"{indent}{opened}("), len(f"{indent * 2}{flat(value)}")) <= width:
        return [f"{indent}{opened}(", f"{indent}{INDENT}{flat(value)}", f"{indent})"]
    if isinstance(annotation, str) and len(f"{indent}{opened}(") <= width:
        return [f"{indent}{opened}(", *statement("", value, "", indent + INDENT, width), f"{indent})"]
    *lines, last = _annotation(before, annotation, after, indent, width)
    if isinstance(value, Bracket) and len(last) > width:
        *lines, last = _annotation(before, annotation, "", indent, width)
        return [*lines, *statement(f"{last.strip()} = ", value, "", indent, width)]
    return [*lines, last]


def _annotation(before: str, annotation: Expression, after: str, indent: str, width: int) -> list[str]:
    whole = f"{indent}{before}{flat(annotation)}{after}"
    if len(whole) <= width or isinstance(annotation, Bracket):
        return statement(before, annotation, after, indent, width)
    inner = statement("", annotation, "", indent + INDENT, width)
    if isinstance(annotation, str) and len(inner[0]) > width:
        return [f"{indent}{before}{annotation}{after}"]  # nothing is won by parentheses
    return [f"{indent}{before}(", *inner, f"{indent}){after}"]


def joined(blocks: Iterable[list[str]], blank_lines: int) -> list[str]:
    """The lines of several blocks, with blank lines between them."""
    lines: list[str] = []
    for block in blocks:
        lines += [""] * blank_lines * bool(lines) + block
    return lines
