"""What operators do with values whose types are known only when the rule runs."""

from __future__ import annotations

import math

from kubewright.controlplane.embedded.cel.library.numbers import checked_integer, checked_unsigned
from kubewright.controlplane.embedded.cel.library.times import checked_duration, checked_timestamp
from kubewright.controlplane.embedded.cel.values import (
    NONE,
    Duration,
    EvaluationError,
    NoSuchOverload,
    Optional,
    Sequenced,
    Timestamp,
    Uint,
    elements_of,
    found_in,
    type_name,
)

# The types that have an operator at all: with any other on the left, the message names the operator.
_ADDERS = frozenset(
    ("int", "uint", "double", "string", "bytes", "list", "google.protobuf.Timestamp", "google.protobuf.Duration")
)
# A concatenation costs 1 whatever its length, because cel-go copies nothing: twenty variables that each double a list
# would be within every budget, and take all memory here.
_MAX_LIST_LENGTH = 10_000_000
_SUBTRACTORS = _ADDERS - {"string", "bytes", "list"}
_MULTIPLIERS = frozenset(("int", "uint", "double"))
_RECEIVERS = frozenset(("string", "google.protobuf.Timestamp", "google.protobuf.Duration"))


def add(left: object, right: object) -> object:
    """`left + right`."""
    match left, right:
        case (Uint(), Uint()):
            return checked_unsigned(int(left) + int(right))
        case (float(), float()):
            return left + right
        case (str(), str()):
            return left + right
        case (bytes(), bytes()):
            return left + right
        case (Duration(), Duration()):
            return checked_duration(left.nanoseconds + right.nanoseconds)
        case (Timestamp(), Duration()):
            return checked_timestamp(Timestamp(left.nanoseconds + right.nanoseconds, left.offset))
        case (Duration(), Timestamp()):
            return checked_timestamp(Timestamp(left.nanoseconds + right.nanoseconds, right.offset))
    if type(left) is int and type(right) is int:
        return checked_integer(left + right)
    if isinstance(left, Sequenced):
        return left.plus(right)
    others = elements_of(right)
    if isinstance(left, list) and others is not None:
        if len(left) + len(others) > _MAX_LIST_LENGTH:
            raise EvaluationError(f"lists of more than {_MAX_LIST_LENGTH} elements are not available here")
        return [*left, *others]
    raise _refusal("_+_", left, _ADDERS)


def subtract(left: object, right: object) -> object:
    """`left - right`."""
    match left, right:
        case (Uint(), Uint()):
            return checked_unsigned(int(left) - int(right))
        case (float(), float()):
            return left - right
        case (Duration(), Duration()):
            return checked_duration(left.nanoseconds - right.nanoseconds)
        case (Timestamp(), Duration()):
            return checked_timestamp(Timestamp(left.nanoseconds - right.nanoseconds, left.offset))
        case (Timestamp(), Timestamp()):
            return checked_duration(left.nanoseconds - right.nanoseconds)
    if type(left) is int and type(right) is int:
        return checked_integer(left - right)
    raise _refusal("_-_", left, _SUBTRACTORS)


def multiply(left: object, right: object) -> object:
    """`left * right`."""
    if type(left) is int and type(right) is int:
        return checked_integer(left * right)
    if isinstance(left, Uint) and isinstance(right, Uint):
        return checked_unsigned(int(left) * int(right))
    if isinstance(left, float) and isinstance(right, float):
        return left * right
    raise _refusal("_*_", left, _MULTIPLIERS)


def divide(left: object, right: object) -> object:
    """`left / right`; integers are cut towards zero."""
    if isinstance(left, float) and isinstance(right, float):
        return _quotient(left, right)
    first, second, unsigned = _integers("_/_", left, right)
    if second == 0:
        raise EvaluationError("division by zero")
    quotient = abs(first) // abs(second)
    if unsigned:
        return Uint(quotient)
    return checked_integer(quotient if (first < 0) == (second < 0) else -quotient)


def _quotient(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def modulo(left: object, right: object) -> object:
    """`left % right`, with the sign of the left."""
    first, second, unsigned = _integers("_%_", left, right)
    if second == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(first) % abs(second)
    if unsigned:
        return Uint(rest)
    return -rest if first < 0 else rest


def _integers(operator: str, left: object, right: object) -> tuple[int, int, bool]:
    if isinstance(left, Uint) and isinstance(right, Uint):
        return int(left), int(right), True
    if type(left) is int and type(right) is int:
        return left, right, False
    raise _refusal(operator, left, _MULTIPLIERS)


def negate(value: object) -> object:
    """`-value`."""
    if type(value) is int:
        return checked_integer(-value)
    if isinstance(value, float):
        return -value
    raise NoSuchOverload("" if type(value) in (bool, str) else "-_")


def _refusal(operator: str, left: object, types: frozenset[str]) -> NoSuchOverload:
    return NoSuchOverload("" if type_name(left) in types | _RECEIVERS else operator)


def index(container: object, key: object) -> object:
    """`container[key]`."""
    if isinstance(container, Optional):
        return optional_index(container, key)
    found = found_in(container, key)
    if found is None:
        elements = elements_of(container)
        if elements is None:
            raise EvaluationError(f"no such key: {shown(key)}")
        position = _index(key)
        if 0 <= position < len(elements):
            if type(key) is float and isinstance(container, Sequenced):
                raise EvaluationError(f"unsupported index: {shown(key)}")
            return elements[position]
        raise EvaluationError(f"index out of bounds: {position}")
    if found[0]:
        return found[1]
    raise EvaluationError(f"no such key: {shown(key)}")


def _index(key: object) -> int:
    if isinstance(key, float):
        if key.is_integer():
            return int(key)
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    if isinstance(key, int) and not isinstance(key, bool):
        return int(key)
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


def optional_index(container: object, key: object) -> Optional:
    """`container[?key]`."""
    if isinstance(container, Optional):
        return optional_index(container.value, key) if container.present else NONE
    found = found_in(container, key)
    if found is not None:
        return Optional(True, found[1]) if found[0] else NONE
    elements = elements_of(container)
    if elements is None:
        return NONE
    position = _index(key)
    return Optional(True, elements[position]) if 0 <= position < len(elements) else NONE


def shown(value: object) -> str:
    """A key or index as messages print it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
