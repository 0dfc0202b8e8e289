"""The operators, as functions of the functions that evaluate their operands."""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.controlplane.embedded.cel.comprehensions import Evaluate, Frame
from kubewright.controlplane.embedded.cel.library.lists import contains
from kubewright.controlplane.embedded.cel.library.operators import add
from kubewright.controlplane.embedded.cel.syntax import ListLiteral, Literal_, Node
from kubewright.controlplane.embedded.cel.values import (
    MAX_INT,
    MIN_INT,
    EvaluationError,
    Keyed,
    NoSuchOverload,
    Optional,
    compare,
    elements_of,
    equal,
    found_in,
)


def logical(parts: Sequence[Evaluate], *, decides: bool) -> Evaluate:
    """`&&` (False decides) and `||` (True decides): one part that decides makes up for errors in all others."""

    def run(frame: Frame) -> object:
        failure: EvaluationError | None = None
        for part in parts:
            try:
                value = part(frame)
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is decides:
                return decides
            if value is not (not decides):
                failure = failure or NoSuchOverload()
        if failure is not None:
            raise failure
        return not decides

    return run


def conditional(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    """`condition ? then : otherwise`."""

    def run(frame: Frame) -> object:
        value = condition(frame)
        if value is True:
            return then(frame)
        if value is False:
            return otherwise(frame)
        raise NoSuchOverload

    return run


def negation(operand: Evaluate) -> Evaluate:
    """`!operand`."""

    def run(frame: Frame) -> object:
        value = operand(frame)
        if value is True:
            return False
        if value is False:
            return True
        raise NoSuchOverload

    return run


def equality(left: Evaluate, right: Evaluate, *, same: bool) -> Evaluate:
    """`left == right`, or `left != right` when not `same`; values that cannot be compared are not equal."""

    def run(frame: Frame) -> object:
        first, second = left(frame), right(frame)
        if type(first) is str:
            return (first == second) is same
        if same:
            return equal(first, second)
        try:
            return not equal(first, second)
        except EvaluationError:
            return True

    return run


def comparison(left: Evaluate, right: Evaluate, operator: str) -> Evaluate:
    """`left < right` and the like."""
    negative, zero, positive = (
        operator in ("_<_", "_<=_"),
        operator in ("_<=_", "_>=_"),
        operator in ("_>_", "_>=_"),
    )

    def run(frame: Frame) -> object:
        first, second = left(frame), right(frame)
        if type(first) is int and type(second) is int:
            return (first < second and negative) or (first > second and positive) or (first == second and zero)
        order = compare(first, second, operator)
        return negative if order < 0 else positive if order > 0 else zero

    return run


def addition(left: Evaluate, right: Evaluate) -> Evaluate:
    """`left + right`."""

    def run(frame: Frame) -> object:
        first, second = left(frame), right(frame)
        if type(first) is int and type(second) is int:
            total = first + second
            if MIN_INT <= total <= MAX_INT:
                return total
        return add(first, second)

    return run


def membership(node: Node, wanted: Evaluate, container: Evaluate) -> Evaluate:
    """`wanted in container`; `node` is the container, which is often a list of constants."""
    if isinstance(node, ListLiteral) and not node.elements:
        # Nothing is in an empty list: not even what cannot be evaluated.
        return lambda frame: False
    if isinstance(node, ListLiteral) and not node.optional:
        constants = [element.value for element in node.elements if isinstance(element, Literal_)]
        if len(constants) == len(node.elements) and all(type(value) is str for value in constants):
            names = frozenset(constants)

            def is_one_of(frame: Frame) -> object:
                value = wanted(frame)
                return type(value) is str and value in names

            return is_one_of

    def run(frame: Frame) -> object:
        value, found = wanted(frame), container(frame)
        elements = elements_of(found)
        if elements is not None:
            return contains(elements, value)
        if isinstance(found, Keyed | dict):
            pair = found_in(found, value)
            return pair is not None and pair[0]
        raise NoSuchOverload

    return run


def alternative(left: Evaluate, right: Evaluate, *, unwrap: bool) -> Evaluate:
    """`left.or(right)`, or `left.orValue(right)` when `unwrap`: the right is evaluated only when needed."""

    def run(frame: Frame) -> object:
        value = left(frame)
        if not isinstance(value, Optional):
            return value
        if not value.present:
            return right(frame)
        return value.value if unwrap else value

    return run
