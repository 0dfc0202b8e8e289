"""Label and field selectors as the query of a list or watch has them: parsed once, then asked of many objects.

What cannot be parsed is a StatusError (400) in the words of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, cast

from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request
from kubewright.controlplane.embedded.builtins.names import label_value, qualified_name

LabelOperator: TypeAlias = Literal["in", "notin", "=", "==", "!=", ">", "<", "exists", "!"]

_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on one label; `values` are in order and without duplicates."""

    key: str
    operator: LabelOperator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels fulfil it. A label that is absent is different from every value."""
        match self.operator:
            case "=" | "==" | "in":
                return labels.get(self.key) in self.values
            case "!=" | "notin":
                return labels.get(self.key) not in self.values
            case "exists":
                return self.key in labels
            case "!":
                return self.key not in labels
            case "<" | ">":
                return self._compares(labels.get(self.key, ""))

    def _compares(self, found: str) -> bool:
        number, bound = _integer(found), _integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == ">" else number < bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions that must all hold; without any, everything matches."""

    requirements: tuple[LabelRequirement, ...] = ()

    @property
    def matches_all(self) -> bool:
        """Whether it selects all objects, so that none has to be looked at."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return self.matches_all or all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One field that must, or must not, have a value."""

    field: str
    operator: Literal["=", "!="]
    value: str


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Conditions that must all hold; without any, everything matches. A field that is absent is empty."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def matches_all(self) -> bool:
        """Whether it selects all objects, so that none has to be looked at."""
        return not self.requirements

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these fields is selected."""
        for requirement in self.requirements:
            if (fields.get(requirement.field, "") == requirement.value) != (requirement.operator == "="):
                return False
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """The fields it asks for, in the order in which they are checked."""
        return tuple(requirement.field for requirement in self.requirements)

    def exact(self, field: str) -> str | None:
        """The value a field must have; None when it may have several."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.operator == "=":
                return requirement.value
        return None


@lru_cache(maxsize=256)
def parse_label_selector(selector: str) -> LabelSelector:
    """A label selector, as in `app=web,tier in (front,back),!canary`. Raises StatusError (400)."""
    return LabelSelector(_LabelParser(selector).parse()) if selector else LabelSelector()


@lru_cache(maxsize=256)
def parse_field_selector(selector: str) -> FieldSelector:
    r"""A field selector, as in `metadata.name=web,status.phase!=Running`; `\,` `\=` `\\` are values' own characters.

    Raises StatusError (400). Which fields a kind knows is for the caller to check.
    """
    requirements: list[FieldRequirement] = []
    for term in sorted(_TERM.findall(selector)):
        found = _CONDITION.fullmatch(term)
        if found is None:
            raise bad_request(f"invalid selector: '{selector}'; can't understand '{term}'")
        field, operator, value = found.groups()
        # As in Go, a condition on nothing is none.
        if field or value:
            requirements.append(FieldRequirement(field, "!=" if operator == "!=" else "=", _unescaped(value)))
    return FieldSelector(tuple(requirements))


# A comma ends a term unless a backslash is before it.
_TERM = re.compile(r"(?:\\.|[^\\,]|\\$)+", re.DOTALL)
_CONDITION = re.compile(r"(.*?)(!=|==?)(.*)", re.DOTALL)
_SPECIAL = re.compile(r"\\.?|[,=]", re.DOTALL)


def _unescaped(value: str) -> str:
    def literal(found: re.Match[str]) -> str:
        sequence = found[0]
        if sequence in (",", "="):
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(sequence)}")
        if sequence not in ("\\\\", "\\,", "\\="):
            raise bad_request(f"invalid field selector: invalid escape sequence: {sequence}")
        return sequence[1]

    return _SPECIAL.sub(literal, value)


def _integer(text: str) -> int | None:
    """What strconv.ParseInt makes of a text; None when that is an error."""
    if not re.fullmatch(r"[+-]?[0-9]{1,4000}", text):
        return None
    number = int(text)
    return number if number in _INT64 else None


_SYMBOLS = frozenset(("=", "==", "!=", "!", "(", ")", ",", "<", ">"))
# Go's lexer takes a zero byte for the end of a token and swallows it, or for the end of everything between two tokens.
_TOKEN = re.compile(r"[ \t\r\n]*(==?|!=?|[(),<>]|[^=!(),<> \t\r\n\0]+)\0?")
_END = ""


class _LabelParser:
    """The grammar of apimachinery's labels.Parse. `in` and `notin` are words like any other, but for operators."""

    def __init__(self, selector: str) -> None:
        self._tokens: list[str] = []
        position = 0
        while found := _TOKEN.match(selector, position):
            self._tokens.append(found[1])
            position = found.end()
        self._tokens.append(_END)
        self._position = 0

    def parse(self) -> tuple[LabelRequirement, ...]:
        requirements: list[LabelRequirement] = []
        if self._next != _END:
            self._expect_start("!, identifier, or 'end of string'")
        while self._next != _END:
            try:
                requirements.append(self._requirement())
            except StatusError as error:
                raise bad_request(f"unable to parse requirement: {error.message}") from None
            separator = self._take()
            if separator == ",":
                self._expect_start("identifier after ','")
            elif separator != _END:
                raise _unexpected(separator, "',' or 'end of string'")
            else:
                break
        return tuple(sorted(requirements, key=lambda requirement: requirement.key))

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
        if problems := qualified_name(key):
            raise bad_request(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(problems)}")
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
        return _checked(LabelRequirement(key, cast(LabelOperator, operator), tuple(sorted(values))))

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
            raise bad_request(f"found '{opening}' expected: '('")
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


def _unexpected(token: str, expected: str) -> StatusError:
    return bad_request(f"found '{token}', expected: {expected}")


def _checked(requirement: LabelRequirement) -> LabelRequirement:
    problems: list[str] = []
    for index, value in enumerate(requirement.values):
        if requirement.operator in ("<", ">") and _integer(value) is None:
            problems.append(
                f"values[{index}]: Invalid value: {quoted(value)}:"
                " for 'Gt', 'Lt' operators, the value must be an integer"
            )
        if wrong := label_value(value):
            problems.append(f"values[{index}][{requirement.key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}")
    if problems:
        raise bad_request(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return requirement
