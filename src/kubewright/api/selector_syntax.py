"""The text of selectors, parsed by the grammar of apimachinery's `labels.Parse` and `fields.ParseSelector`.

What cannot be parsed is a `SelectorError` whose `reason` is Kubernetes' own text, to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias, cast

from kubewright.api.selectors import (
    FieldMatcher,
    FieldRequirement,
    LabelMatcher,
    LabelOperator,
    LabelRequirement,
    SelectorError,
    integer,
)

Check: TypeAlias = Callable[[LabelRequirement], str]
"""What is wrong with the key or the values of a requirement; empty when nothing is."""


@lru_cache(maxsize=256)
def parse_labels(selector: str) -> LabelMatcher:
    """A label selector, as in `app=web,tier in (front,back),!canary`."""
    try:
        return LabelMatcher(label_requirements(selector, _unreadable))
    except SelectorError as error:
        raise SelectorError(
            error.reason,
            f'"{selector}" is not a label selector: {error.reason}; expected requirements such as '
            "app=web, tier in (front,back), !canary",
        ) from None


@lru_cache(maxsize=256)
def parse_fields(selector: str) -> FieldMatcher:
    r"""A field selector, as in `metadata.name=web,status.phase!=Running`; `\,` `\=` `\\` are values' own characters.

    The caller checks which fields a kind can be selected by.
    """
    try:
        return FieldMatcher(tuple(_field_requirements(selector)))
    except SelectorError as error:
        raise SelectorError(
            error.reason,
            f'"{selector}" is not a field selector: {error.reason}; expected requirements such as '
            "spec.nodeName=node-1, status.phase!=Failed, separated by commas",
        ) from None


def label_requirements(selector: str, check: Check) -> list[LabelRequirement]:
    """The requirements of a label selector by key; `check` is called for each key alone, then with its values."""
    return sorted(_LabelParser(selector, check).parse(), key=lambda requirement: requirement.key)


def _unreadable(requirement: LabelRequirement) -> str:
    if not re.fullmatch(r"[-A-Za-z0-9_./]+", requirement.key):
        return f'the key "{requirement.key}" has characters other than letters, digits and - _ . /'
    for value in requirement.values:
        if not re.fullmatch(r"[-A-Za-z0-9_.]*", value):
            return f'the value "{value}" has characters other than letters, digits and - _ .'
    if requirement.operator in ("<", ">") and integer(requirement.values[0]) is None:
        return f'"{requirement.values[0]}" is not an integer'
    return ""


# A comma ends a term unless a backslash is before it.
_TERM = r"(?:\\.|[^\\,]|\\$)+"
_CONDITION = r"(.*?)(!=|==?)(.*)"
_SPECIAL = r"\\.?|[,=]"


def _field_requirements(selector: str) -> list[FieldRequirement]:
    requirements: list[FieldRequirement] = []
    for term in sorted(re.findall(_TERM, selector, re.DOTALL)):
        found = re.fullmatch(_CONDITION, term, re.DOTALL)
        if found is None:
            raise SelectorError(f"invalid selector: '{selector}'; can't understand '{term}'")
        field, operator, value = found.groups()
        # As in Go, a condition on nothing is none.
        if field or value:
            requirements.append(FieldRequirement(field, "!=" if operator == "!=" else "=", _unescaped(value)))
    return requirements


def _unescaped(value: str) -> str:
    def literal(found: re.Match[str]) -> str:
        sequence = found[0]
        if sequence in (",", "="):
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(sequence)}")
        if sequence not in ("\\\\", "\\,", "\\="):
            raise SelectorError(f"invalid field selector: invalid escape sequence: {sequence}")
        return sequence[1]

    return re.sub(_SPECIAL, literal, value, flags=re.DOTALL)


_SYMBOLS = frozenset(("=", "==", "!=", "!", "(", ")", ",", "<", ">"))
# Go's lexer takes a zero byte for the end of a token and swallows it, or for the end of everything between two tokens.
_TOKEN = re.compile(r"[ \t\r\n]*(==?|!=?|[(),<>]|[^=!(),<> \t\r\n\0]+)\0?")
_END = ""


class _LabelParser:
    """The grammar of label selectors. `in` and `notin` are words like any other, except as operators."""

    def __init__(self, selector: str, check: Check) -> None:
        self._check = check
        self._tokens: list[str] = []
        position = 0
        while found := _TOKEN.match(selector, position):
            self._tokens.append(found[1])
            position = found.end()
        self._tokens.append(_END)
        self._position = 0

    def parse(self) -> list[LabelRequirement]:
        requirements: list[LabelRequirement] = []
        if self._next != _END:
            self._expect_start("!, identifier, or 'end of string'")
        while self._next != _END:
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error.reason}") from None
            separator = self._take()
            if separator == ",":
                self._expect_start("identifier after ','")
            elif separator != _END:
                raise _unexpected(separator, "',' or 'end of string'")
            else:
                break
        return requirements

    @property
    def _next(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        self._position += 1
        return self._tokens[self._position - 1]

    def _expect_start(self, expected: str) -> None:
        if self._next != "!" and not _is_word(self._next):
            raise _unexpected(self._next, expected)

    def _requirement(self) -> LabelRequirement:
        key = self._take()
        negated = key == "!"
        if negated:
            key = self._take()
        if not _is_word(key):
            raise _unexpected(key, "identifier")
        self._checked(LabelRequirement(key, "exists"))
        if negated:
            return LabelRequirement(key, "!")
        if self._next in (_END, ","):
            return LabelRequirement(key, "exists")
        operator = self._take()
        if operator in ("in", "notin"):
            values = self._values()
        elif operator in ("=", "==", "!=", "<", ">"):
            values = {self._value()}
        else:
            raise _unexpected(operator, "in, notin, =, ==, !=, gt, lt")
        return self._checked(LabelRequirement(key, cast(LabelOperator, operator), tuple(sorted(values))))

    def _checked(self, requirement: LabelRequirement) -> LabelRequirement:
        if reason := self._check(requirement):
            raise SelectorError(reason)
        return requirement

    def _value(self) -> str:
        if self._next in (_END, ","):
            return ""
        value = self._take()
        if not _is_word(value):
            raise _unexpected(value, "identifier")
        return value

    def _values(self) -> set[str]:
        opening = self._take()
        if opening != "(":
            raise SelectorError(f"found '{opening}' expected: '('")
        if self._next not in (")", ",") and not _is_word(self._next):
            raise _unexpected(self._next, "',', ')' or identifier")
        values: set[str] = set()
        value = ""
        while (found := self._take()) != ")":
            if found == ",":
                values.add(value)
                value = ""
            elif not _is_word(found):
                raise _unexpected(found, "',', or identifier")
            else:
                value = found
                if self._next not in (",", ")"):
                    raise _unexpected(self._next, "',' or ')'")
        return values | {value}


def _is_word(token: str) -> bool:
    return token != _END and token not in _SYMBOLS


def _unexpected(token: str, expected: str) -> SelectorError:
    return SelectorError(f"found '{token}', expected: {expected}")
