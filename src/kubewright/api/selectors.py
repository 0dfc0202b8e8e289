r"""Label and field selectors: written as Python values or as text, and matched as the API server matches them.

    labels={"app": "web", "tier": ["front", "back"], "canary": False}    app=web,tier in (front,back),!canary
    fields={"spec.nodeName": "node-1"}                                   spec.nodeName=node-1

`label_selector` and `field_selector` make the text that a request carries: a string is sent as it is, a `LabelSelector`
as Deployments have it is translated. `label_matcher` and `field_matcher` evaluate the same selectors locally; text is
parsed by `selector_syntax`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from kubewright.api.meta import LabelSelector

Labels: TypeAlias = str | LabelSelector | Mapping[str, str | bool | Collection[str]]
"""A label selector. In a mapping a list means any of the values, True that the label exists, False that it does not."""

Fields: TypeAlias = str | Mapping[str, str]
"""A field selector. In a mapping every field must have its value."""

LabelOperator: TypeAlias = Literal["in", "notin", "=", "==", "!=", ">", "<", "exists", "!"]
FieldOperator: TypeAlias = Literal["=", "!="]

OPERATORS: Mapping[str, LabelOperator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": ">",
    "Lt": "<",
}
"""Operators as objects write them. The last two exist for nodes only."""

_LABEL_TEXT = r"[-A-Za-z0-9_./]*"
_INT64 = range(-(2**63), 2**63)


class SelectorError(ValueError):
    """Text that is not a selector. `reason` is what Kubernetes itself answers."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason


class LabelRequirement(Struct, frozen=True):
    """One condition on one label; `values` are sorted and without duplicates."""

    key: str
    operator: LabelOperator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


class LabelMatcher:
    """Requirements that must all hold; without any, every object matches. As text it is the selector of a request."""

    __slots__ = ("_tests", "requirements")

    def __init__(self, requirements: Iterable[LabelRequirement] = ()) -> None:
        self.requirements = tuple(requirements)
        self._tests = [_test(requirement) for requirement in self.requirements]

    @property
    def matches_all(self) -> bool:
        """Whether every object is selected, so that none has to be tested."""
        return not self._tests

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected. An absent label differs from every value."""
        return all(test(labels) for test in self._tests)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


class FieldRequirement(Struct, frozen=True):
    """One field that must, or must not, have a value."""

    field: str
    operator: FieldOperator
    value: str

    def matches(self, found: str) -> bool:
        """Whether it holds for a field with this value; an absent field has the empty one."""
        return (found == self.value) is (self.operator == "=")


class FieldMatcher(Struct, frozen=True):
    """Requirements that must all hold; without any, every object matches."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def matches_all(self) -> bool:
        """Whether every object is selected, so that none has to be tested."""
        return not self.requirements

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these fields is selected. An absent field is the empty string."""
        return all(requirement.matches(fields.get(requirement.field, "")) for requirement in self.requirements)

    @property
    def names(self) -> tuple[str, ...]:
        """The fields it selects by, in the order in which they are checked."""
        return tuple(requirement.field for requirement in self.requirements)

    def exact(self, field: str) -> str | None:
        """The one value a field must have; None when it may have several."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.operator == "=":
                return requirement.value
        return None


def label_selector(labels: Labels) -> str:
    """The text of a label selector, as `labelSelector=` of a request carries it. A string is not checked."""
    return labels if isinstance(labels, str) else str(label_matcher(labels))


def field_selector(fields: Fields) -> str:
    """The text of a field selector, as `fieldSelector=` of a request carries it. A string is not checked."""
    if isinstance(fields, str):
        return fields
    return ",".join(f"{path}={_escaped(value)}" for path, value in fields.items())


def label_matcher(labels: Labels) -> LabelMatcher:
    """The selector for local use. Raises `SelectorError` for text and ValueError for values that are no selector."""
    if isinstance(labels, str):
        from kubewright.api.selector_syntax import parse_labels  # most programs never parse one

        return parse_labels(labels)
    if isinstance(labels, LabelSelector):
        return LabelMatcher(
            [_requirement(name, value) for name, value in sorted(labels.match_labels.items())]
            + [_expression(one.key, one.operator, one.values) for one in labels.match_expressions]
        )
    return LabelMatcher(_requirement(name, value) for name, value in labels.items())


def field_matcher(fields: Fields) -> FieldMatcher:
    """The selector for local use. Raises `SelectorError` for text that is no selector."""
    if isinstance(fields, str):
        from kubewright.api.selector_syntax import parse_fields

        return parse_fields(fields)
    return FieldMatcher(tuple(FieldRequirement(path, "=", value) for path, value in fields.items()))


def _requirement(name: str, value: str | bool | Collection[str]) -> LabelRequirement:
    if isinstance(value, bool):
        return LabelRequirement(_plain(name), "exists" if value else "!")
    if isinstance(value, str):
        return LabelRequirement(_plain(name), "=", (_plain(value),))
    return LabelRequirement(_plain(name), "in", _any_of(name, value))


def _expression(key: str, operator: str, values: Collection[str]) -> LabelRequirement:
    match operator:
        case "In" | "NotIn":
            return LabelRequirement(_plain(key), OPERATORS[operator], _any_of(key, values))
        case "Exists" | "DoesNotExist":
            return LabelRequirement(_plain(key), OPERATORS[operator])
    raise ValueError(
        f'matchExpressions: "{operator}" is not an operator of a label selector (In, NotIn, Exists, DoesNotExist)'
    )


def _any_of(name: str, values: Collection[str]) -> tuple[str, ...]:
    if not values:
        raise ValueError(f'the label selector for "{name}" names no value: give at least one')
    return tuple(sorted({_plain(value) for value in values}))


def _plain(text: str) -> str:
    """Label selectors have no escapes, so a comma or a bracket in a value would silently select something else."""
    if not re.fullmatch(_LABEL_TEXT, text):
        raise ValueError(f'"{text}" cannot be in a label selector: expected letters, digits and - _ . / only')
    return text


def _escaped(value: str) -> str:
    """Field selectors take any value, with their own separators escaped."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _test(requirement: LabelRequirement) -> Callable[[Mapping[str, str]], bool]:
    """Made once per selector: the operator is not looked up again for each object."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    match operator:
        case "=" | "==":
            (value,) = values
            return lambda labels: labels.get(key) == value
        case "!=":
            (value,) = values
            return lambda labels: labels.get(key) != value
        case "in":
            return lambda labels: labels.get(key) in values
        case "notin":
            return lambda labels: labels.get(key) not in values
        case "exists":
            return lambda labels: key in labels
        case "!":
            return lambda labels: key not in labels
        case ">" | "<":
            bound = integer(values[0])
            return lambda labels: _compares(integer(labels.get(key, "")), operator, bound)


def integer(text: str) -> int | None:
    """The integer that Go's strconv.ParseInt returns for a text; None when that is an error."""
    if not re.fullmatch(r"[+-]?[0-9]{1,4000}", text):
        return None
    number = int(text)
    return number if number in _INT64 else None


def _compares(number: int | None, operator: str, bound: int | None) -> bool:
    if number is None or bound is None:
        return False
    return number > bound if operator == ">" else number < bound
