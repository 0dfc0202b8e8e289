"""Lists and sets: sorting, cutting, adding up, and comparing them without order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from kubewright.controlplane.embedded.cel.library.operators import add
from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    parameter,
)
from kubewright.controlplane.embedded.cel.values import (
    Duration,
    EvaluationError,
    NoSuchOverload,
    Uint,
    compare,
    elements_of,
    equal,
    is_ordered,
    type_name,
)

_A: Final = parameter("A")
_LIST: Final = list_of(_A)
COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)


def _elements(value: object) -> Sequence[object]:
    elements = elements_of(value)
    if elements is None:
        raise NoSuchOverload
    return elements


def _is_sorted(values: object) -> bool:
    elements = _elements(values)
    return all(compare(left, right, "isSorted") <= 0 for left, right in pairwise(elements))


def _sum_from(zero: object) -> Callable[[object], object]:
    def total(values: object) -> object:
        result = zero
        for element in _elements(values):
            result = add(result, element)
        return result

    return total


def _best(name: str, wanted: int) -> Callable[[object], object]:
    def best(values: object) -> object:
        elements = _elements(values)
        if not elements:
            raise EvaluationError(f"{name} called on empty list")
        result = elements[0]
        for element in elements[1:]:
            if compare(element, result, name) == wanted:
                result = element
        return result

    return best


def _index_of(values: object, wanted: object) -> int:
    return next((index for index, element in enumerate(_elements(values)) if _same(element, wanted)), -1)


def _last_index_of(values: object, wanted: object) -> int:
    elements = _elements(values)
    return next((index for index in range(len(elements) - 1, -1, -1) if _same(elements[index], wanted)), -1)


def _same(left: object, right: object) -> bool:
    try:
        return equal(left, right)
    except EvaluationError:
        return False


def contains(values: Sequence[object], wanted: object) -> bool:
    """Whether an element equals `wanted`; an element that cannot be compared is an error unless another one does."""
    failure: EvaluationError | None = None
    for element in values:
        try:
            if equal(element, wanted):
                return True
        except EvaluationError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return False


def _slice(values: object, start: int, end: int) -> list[object]:
    elements = _elements(values)
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(elements) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return list(elements[start:end])


def _flatten(values: object, depth: int = 1) -> list[object]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    return list(_flat(_elements(values), depth))


def _flat(elements: Sequence[object], depth: int) -> Iterator[object]:
    for element in elements:
        nested = elements_of(element) if depth else None
        if nested is None:
            yield element
        else:
            yield from _flat(nested, depth - 1)


def sorted_by(values: Sequence[object], keys: Sequence[object]) -> list[object]:
    """The values in the order of their keys, which must all be of one type that has an order."""
    if keys and not is_ordered(keys[0]):
        raise EvaluationError("list elements must be comparable")
    if any(type_name(key) != type_name(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")
    return [value for _, value in sorted(zip(keys, values, strict=True), key=cmp_to_key(_by_key))]


def _by_key(left: tuple[object, object], right: tuple[object, object]) -> int:
    return compare(left[0], right[0], "sort")


def _sort(values: object) -> list[object]:
    elements = _elements(values)
    return sorted_by(elements, elements)


def _range(count: int) -> list[object]:
    return list(range(count))


def _distinct(values: object) -> list[object]:
    found: list[object] = []
    for element in _elements(values):
        if not any(_same(element, other) for other in found):
            found.append(element)
    return found


def _contains_all(values: object, others: object) -> bool:
    elements = _elements(values)
    return all(contains(elements, other) for other in _elements(others))


def _equivalent(left: object, right: object) -> bool:
    return _contains_all(left, right) and _contains_all(right, left)


def _intersects(left: object, right: object) -> bool:
    others = _elements(right)
    return any(_contained(others, element) for element in _elements(left))


def _contained(values: Sequence[object], wanted: object) -> bool:
    try:
        return contains(values, wanted)
    except EvaluationError:
        return False


LIST_FUNCTIONS: Final[list[Overload]] = [
    *(method("isSorted", [list_of(type_)], BOOL, _is_sorted) for type_ in COMPARABLE),
    method("sum", [list_of(INT)], INT, _sum_from(0)),
    method("sum", [list_of(UINT)], UINT, _sum_from(Uint(0))),
    method("sum", [list_of(DOUBLE)], DOUBLE, _sum_from(0.0)),
    method("sum", [list_of(DURATION)], DURATION, _sum_from(Duration(0))),
    *(method("max", [list_of(type_)], type_, _best("max", 1)) for type_ in COMPARABLE),
    *(method("min", [list_of(type_)], type_, _best("min", -1)) for type_ in COMPARABLE),
    method("indexOf", [_LIST, _A], INT, _index_of),
    method("lastIndexOf", [_LIST, _A], INT, _last_index_of),
    method("slice", [_LIST, INT, INT], _LIST, _slice),
    method("flatten", [list_of(_LIST)], _LIST, _flatten, guarded=False),
    method("flatten", [list_of(DYN), INT], list_of(DYN), _flatten, guarded=False),
    *(method("sort", [list_of(type_)], list_of(type_), _sort) for type_ in COMPARABLE),
    function("lists.range", [INT], list_of(INT), _range),
    method("reverse", [_LIST], _LIST, lambda values: list(reversed(_elements(values)))),
    method("distinct", [_LIST], _LIST, _distinct),
    function("sets.contains", [_LIST, _LIST], BOOL, _contains_all),
    function("sets.equivalent", [_LIST, _LIST], BOOL, _equivalent),
    function("sets.intersects", [_LIST, _LIST], BOOL, _intersects),
]
