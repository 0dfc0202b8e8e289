"""JSONPath as kubectl and printer columns speak it.

Fields, quoted fields, indexes, slices, unions, wildcards, recursive descent and filters; no templates. A path is parsed
once and applied to many objects; a field that is missing is no error, an index out of bounds is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.apimachinery.remembered import remembered

JSONValues: TypeAlias = list[JSONValue]
Step: TypeAlias = Callable[[JSONValues], JSONValues]


class JSONPathError(ValueError):
    """A path that cannot be read, or that does not fit the value it is applied to."""


class JSONPath:
    """A path, ready to be applied."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps

    def find(self, value: JSONValue) -> JSONValues:
        """All it leads to, in order; raises PathError where client-go's evaluation fails."""
        return _sequence(self._steps)([value])


@remembered(1024)
def compile_path(path: str) -> JSONPath:
    """Read a path such as `.status.conditions[?(@.type=="Ready")].status`."""
    return JSONPath(_parse(path))


_FIELD = re.compile(r"(?:\\.|[^\\\s.,\[\]$@{}])+")
_FEW = 64
_QUOTED_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_FILTER = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[\d.]+")
_WORD = re.compile(r"\w[^\s.,\[\]$@{}]*")
# The outcomes that fulfil an operator: -1 for less, 0 for equal, 1 for greater.
_OPERATORS = {"==": {0}, "!=": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}


def _parse(path: str) -> list[Step]:
    steps: list[Step] = []
    position = 0
    while position < len(path):
        rest = path[position:]
        if rest.startswith("[?("):
            inner, length = _filter_text(rest)
            steps.append(_filter(inner))
        elif rest.startswith(".."):
            steps.append(_descend)
            length = 2
            if (found := _FIELD.match(rest, 2)) and rest[2] != "*":
                steps.append(_field(_unescaped(found[0])))
                length = found.end()
        elif rest[0] == "[":
            end = rest.find("]")
            if end < 0:
                raise JSONPathError("unterminated array")
            steps.append(_bracket(rest[1:end]))
            length = end + 1
        elif rest[0] == ".":
            found = _FIELD.match(rest, 1)
            name = found[0] if found else ""
            steps.append(_wildcard if name == "*" else _field(_unescaped(name)))
            length = 1 + len(name)
        elif rest[0] in " @$":
            length = 1
        elif (word := _WORD.match(rest)) and word[0] not in ("true", "false") and not rest[0].isdigit():
            steps.append(_unrecognized(word[0]))
            length = word.end()
        else:
            literal, length = _literal(rest)
            steps.append(_constant(literal))
        position += length
    return steps


def _unescaped(name: str) -> str:
    return name.replace("\\", "")


def _literal(rest: str) -> tuple[JSONValue, int]:
    """A string, number or truth value, as filters compare with."""
    if rest[0] in "\"'":
        found = re.match(r"""(["'])((?:\\.|(?!\1).)*)\1""", rest, re.DOTALL)
        if found is None:
            raise JSONPathError("unterminated quoted string")
        return re.sub(r"\\(.)", r"\1", found[2]), found.end()
    if number := _NUMBER.match(rest):
        try:
            return (float(number[0]) if "." in number[0] else bounded_integer(number[0])), number.end()
        except ValueError:
            raise JSONPathError(f"cannot parse number {number[0]}") from None
    if (word := _WORD.match(rest)) and word[0] in ("true", "false"):
        return word[0] == "true", word.end()
    raise JSONPathError(f"unrecognized character in action: {rest[0]!r}")


def _unrecognized(word: str) -> Step:
    """A bare word can be read, and is an error as soon as it is applied."""

    def apply(values: JSONValues) -> JSONValues:
        raise JSONPathError(f"unrecognized identifier {word}")

    return apply


def _constant(literal: JSONValue) -> Step:
    return lambda values: [literal] * len(values)


def _field(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _children(value: JSONValue) -> JSONValues:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _wildcard(values: JSONValues) -> JSONValues:
    return [child for value in values for child in _children(value)]


def _descend(values: JSONValues) -> JSONValues:
    found: JSONValues = []
    for value in values:
        if children := _children(value):
            found.append(value)
            found += _descend(children)
    return found


def _bracket(inner: str) -> Step:
    if "," in inner:
        # Once is as good as often, and twice as being found more than once.
        parts = Counter(part.strip(" ") for part in inner.split(","))
        return _union([_bracket(part) for part, count in parts.items() for _ in range(min(count, 2))])
    if inner == "*":
        return _slice(0, None, None)
    if quoted := _QUOTED_KEY.fullmatch(inner):
        # What is quoted is read as a path once more: 'a.b' leads through a to b, 'a\.b' to the one field.
        return _sequence(_parse(f".{quoted[1]}"))
    found = _SLICE.fullmatch(inner)
    if found is None:
        raise JSONPathError(f"invalid array index {inner}")
    start = bounded_integer(found[1]) if found[1] not in ("", "-") else 0
    if found[2] is None:
        return _index(start)
    return _slice(start, *(_bound(text) for text in (found[2], found[3])))


def _bound(text: str | None) -> int | None:
    return None if text is None or text in (":", ":-") else bounded_integer(text[1:])


def _union(steps: Sequence[Step]) -> Step:
    return lambda values: [found for step in steps for found in step(values)]


def _sequence(steps: Sequence[Step]) -> Step:
    def apply(values: JSONValues) -> JSONValues:
        for step in steps:
            values = _without_copies(step(values))
        return values

    return apply


def _without_copies(values: JSONValues) -> JSONValues:
    """The same without a third appearance of anything: more would only multiply with the next step.

    Of all that is found, the first counts, and whether it is the only one.
    """
    if len(values) <= _FEW:
        return values
    found: JSONValues = []
    counts: dict[int, int] = {}
    for value in values:
        count = counts[id(value)] = counts.get(id(value), 0) + 1
        if count <= 2:
            found.append(value)
    return found


def _lists(values: JSONValues) -> list[JSONValues]:
    found: list[JSONValues] = []
    for value in values:
        if isinstance(value, list):
            found.append(value)
        elif value is not None:
            raise JSONPathError(f"{type(value).__name__} is not array or slice")
    return found


def _index(index: int) -> Step:
    def apply(values: JSONValues) -> JSONValues:
        found: JSONValues = []
        for value in _lists(values):
            if not -len(value) <= index < len(value):
                raise JSONPathError(f"array index out of bounds: index {index}, length {len(value)}")
            found.append(value[index])
        return found

    return apply


def _slice(start: int, end: int | None, step: int | None) -> Step:
    def apply(values: JSONValues) -> JSONValues:
        found: JSONValues = []
        for value in _lists(values):
            length = len(value)
            first = start + length if start < 0 else start
            last = length if end is None else end + length if end < 0 else end
            if first == last:
                return found
            if not 0 <= first < length or not first <= last <= length:
                raise JSONPathError(f"array index out of bounds: index {first}, length {length}")
            if step is not None and step <= 0:
                raise JSONPathError("step must be > 0")
            found += value[first : last : step or 1]
        return found

    return apply


def _filter_text(rest: str) -> tuple[str, int]:
    """What is between `[?(` and `)]`, and where that ends. Brackets in quotes are text."""
    quote = ""
    for position in range(3, len(rest)):
        character = rest[position]
        if quote:
            if character == quote and rest[position - 1] != "\\":
                quote = ""
        elif character in "\"'":
            quote = character
        elif character == ")":
            if not rest.startswith("]", position + 1):
                raise JSONPathError("unclosed array expect ]")
            return rest[3:position], position + 2
    raise JSONPathError("unterminated filter")


def _filter(inner: str) -> Step:
    comparison = _FILTER.fullmatch(inner)
    if comparison is None:
        exists = _sequence(_parse(inner))
        return lambda values: [item for value in _filtered(values) for item in value if _found(exists, item)]
    left, right = _sequence(_parse(comparison[1].strip())), _sequence(_parse(comparison[3].strip()))
    outcomes = _OPERATORS.get(comparison[2])
    if outcomes is None:
        raise JSONPathError(f"unrecognized filter operator {comparison[2]}")
    return lambda values: [
        item for value in _filtered(values) for item in value if _compared(left([item]), right([item]), outcomes)
    ]


def _filtered(values: JSONValues) -> list[JSONValues]:
    lists = [value for value in values if isinstance(value, list)]
    if len(lists) != len(values):
        raise JSONPathError("not array or slice and cannot be filtered")
    return lists


def _found(exists: Step, item: JSONValue) -> bool:
    try:
        return bool(exists([item]))
    except JSONPathError:
        # On failure, client-go continues with what it had before the failing step: the item itself.
        return True


def _compared(lefts: JSONValues, rights: JSONValues, outcomes: set[int]) -> bool:
    if not lefts or not rights:
        return False
    if len(lefts) > 1 or len(rights) > 1:
        raise JSONPathError("can only compare one element at a time")
    left, right = lefts[0], rights[0]
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right) in outcomes
    # A whole number and a fraction are of different types here.
    if type(left) is type(right) and isinstance(left, (int, float)) and isinstance(right, (int, float)):
        if isinstance(left, bool) and outcomes not in (_OPERATORS["=="], _OPERATORS["!="]):
            raise JSONPathError("invalid type for comparison")
        return (left > right) - (left < right) in outcomes
    raise JSONPathError("incompatible types for comparison")
