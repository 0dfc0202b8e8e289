"""CEL's own functions: size, type conversions, tests of strings, and the operators with what they do."""

from __future__ import annotations

import math
import re
from typing import Final

from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.cel.library.numbers import double_text
from kubewright.controlplane.embedded.cel.library.overload import Implementation, Overload, function, method
from kubewright.controlplane.embedded.cel.library.times import (
    SECOND,
    checked_timestamp,
    duration_text,
    parsed_duration,
    parsed_timestamp,
    timestamp_text,
)
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
    CelType,
    list_of,
    map_of,
    optional_of,
    parameter,
    type_of_type,
)
from kubewright.controlplane.embedded.cel.values import (
    MAX_INT,
    MIN_INT,
    Duration,
    EvaluationError,
    Keyed,
    NoSuchOverload,
    Timestamp,
    TypeValue,
    Uint,
    elements_of,
    type_name,
)

_A: Final = parameter("A")
_B: Final = parameter("B")
_LIST: Final = list_of(_A)
_MAP: Final = map_of(_A, _B)


def size(value: object) -> int:
    """The number of characters, bytes, elements or entries."""
    if isinstance(value, str | bytes | dict | Keyed):
        return len(value)
    elements = elements_of(value)
    if elements is None:
        raise NoSuchOverload("size")
    return len(elements)


def _not_convertible(source: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_FLOAT: Final = re.compile(
    r"[+-]?(?:[0-9](?:_?[0-9])*+\.?[0-9]*+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity)|nan", re.I
)


def _text_to_int(text: str) -> int:
    if _INTEGER.fullmatch(text) and MIN_INT <= (number := bounded_integer(text)) <= MAX_INT:
        return number
    raise _not_convertible("string", "int")


def _text_to_uint(text: str) -> Uint:
    if text.isascii() and text.isdigit() and (number := bounded_integer(text)) < 2**64:
        return Uint(number)
    raise _not_convertible("string", "uint")


def _text_to_double(text: str) -> float:
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isinf(number) or "inf" in text.lower():
            return number
    raise _not_convertible("string", "double")


def _text_to_bool(text: str) -> bool:
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise _not_convertible("string", "bool")


def _text_to_duration(text: str) -> Duration:
    try:
        return parsed_duration(text)
    except ValueError:
        raise _not_convertible("string", "google.protobuf.Duration") from None


def _text_to_timestamp(text: str) -> Timestamp:
    try:
        return checked_timestamp(parsed_timestamp(text))
    except ValueError:
        raise _not_convertible("string", "google.protobuf.Timestamp") from None


def _double_to_int(number: float) -> int:
    if not math.isfinite(number) or not -(2.0**63) < number < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(number)


def _double_to_uint(number: float) -> Uint:
    if not math.isfinite(number) or not 0 <= number < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


def _uint_to_int(number: Uint) -> int:
    if number > MAX_INT:
        raise EvaluationError("integer overflow")
    return int(number)


def _int_to_uint(number: int) -> Uint:
    if number < 0:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


def _bytes_to_text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _same(value: object) -> object:
    return value


def _converts(name: str, source: CelType, target: CelType, call: Implementation = _same) -> Overload:
    return function(name, [source], target, call)


CONVERSIONS: Final = frozenset(("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"))
"""Functions whose result is known before anything runs when their argument is."""

STANDARD_FUNCTIONS: Final[list[Overload]] = [
    *(function("size", [type_], INT, size) for type_ in (BYTES, _LIST, _MAP, STRING)),
    *(method("size", [type_], INT, size) for type_ in (BYTES, _LIST, _MAP, STRING)),
    function("type", [_A], type_of_type(_A), lambda value: TypeValue(type_name(value))),
    function("dyn", [_A], DYN, _same),
    _converts("bool", BOOL, BOOL),
    _converts("bool", STRING, BOOL, _text_to_bool),
    _converts("bytes", BYTES, BYTES),
    _converts("bytes", STRING, BYTES, str.encode),
    _converts("double", DOUBLE, DOUBLE),
    _converts("double", INT, DOUBLE, float),
    _converts("double", STRING, DOUBLE, _text_to_double),
    _converts("double", UINT, DOUBLE, float),
    _converts("duration", DURATION, DURATION),
    _converts("duration", INT, DURATION, Duration),
    _converts("duration", STRING, DURATION, _text_to_duration),
    _converts("int", INT, INT),
    _converts("int", DOUBLE, INT, _double_to_int),
    _converts("int", DURATION, INT, lambda duration: duration.nanoseconds),
    _converts("int", STRING, INT, _text_to_int),
    _converts("int", TIMESTAMP, INT, lambda timestamp: timestamp.nanoseconds // SECOND),
    _converts("int", UINT, INT, _uint_to_int),
    _converts("string", STRING, STRING),
    _converts("string", BOOL, STRING, lambda value: "true" if value else "false"),
    _converts("string", BYTES, STRING, _bytes_to_text),
    _converts("string", DOUBLE, STRING, double_text),
    _converts("string", DURATION, STRING, duration_text),
    _converts("string", INT, STRING, str),
    _converts("string", TIMESTAMP, STRING, timestamp_text),
    _converts("string", UINT, STRING, lambda number: str(int(number))),
    _converts("timestamp", TIMESTAMP, TIMESTAMP),
    _converts("timestamp", INT, TIMESTAMP, lambda seconds: checked_timestamp(Timestamp(seconds * SECOND))),
    _converts("timestamp", STRING, TIMESTAMP, _text_to_timestamp),
    _converts("uint", UINT, UINT),
    _converts("uint", DOUBLE, UINT, _double_to_uint),
    _converts("uint", INT, UINT, _int_to_uint),
    _converts("uint", STRING, UINT, _text_to_uint),
    method("contains", [STRING, STRING], BOOL, lambda text, part: part in text, guarded=False),
    method("endsWith", [STRING, STRING], BOOL, str.endswith, guarded=False),
    method("startsWith", [STRING, STRING], BOOL, str.startswith, guarded=False),
]


def _not_called(*_: object) -> object:
    raise AssertionError("operators are compiled, not called")


def _operator(name: str, *signatures: tuple[tuple[CelType, ...], CelType]) -> list[Overload]:
    return [function(name, parameters, result, _not_called) for parameters, result in signatures]


_ORDERED: Final = [
    ((left, right), BOOL)
    for left, right in (
        *((type_, type_) for type_ in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION)),
        *((left, right) for left in (INT, UINT, DOUBLE) for right in (INT, UINT, DOUBLE) if left != right),
    )
]
_NUMBERS: Final = [((type_, type_), type_) for type_ in (DOUBLE, INT, UINT)]

OPERATORS: Final[list[Overload]] = [
    *_operator("_?_:_", ((BOOL, _A, _A), _A)),
    *_operator("_&&_", ((BOOL, BOOL), BOOL)),
    *_operator("_||_", ((BOOL, BOOL), BOOL)),
    *_operator("!_", ((BOOL,), BOOL)),
    *_operator("_==_", ((_A, _A), BOOL)),
    *_operator("_!=_", ((_A, _A), BOOL)),
    *_operator("_<_", *_ORDERED),
    *_operator("_<=_", *_ORDERED),
    *_operator("_>_", *_ORDERED),
    *_operator("_>=_", *_ORDERED),
    *_operator(
        "_+_",
        *_NUMBERS,
        ((BYTES, BYTES), BYTES),
        ((STRING, STRING), STRING),
        ((_LIST, _LIST), _LIST),
        ((DURATION, DURATION), DURATION),
        ((DURATION, TIMESTAMP), TIMESTAMP),
        ((TIMESTAMP, DURATION), TIMESTAMP),
    ),
    *_operator(
        "_-_",
        *_NUMBERS,
        ((DURATION, DURATION), DURATION),
        ((TIMESTAMP, DURATION), TIMESTAMP),
        ((TIMESTAMP, TIMESTAMP), DURATION),
    ),
    *_operator("_*_", *_NUMBERS),
    *_operator("_/_", *_NUMBERS),
    *_operator("_%_", ((INT, INT), INT), ((UINT, UINT), UINT)),
    *_operator("-_", ((DOUBLE,), DOUBLE), ((INT,), INT)),
    *_operator(
        "_[_]",
        ((_LIST, INT), _A),
        ((_MAP, _A), _B),
        ((optional_of(_LIST), INT), optional_of(_A)),
        ((optional_of(_MAP), _A), optional_of(_B)),
    ),
    *_operator(
        "_[?_]",
        ((_LIST, INT), optional_of(_A)),
        ((optional_of(_LIST), INT), optional_of(_A)),
        ((_MAP, _A), optional_of(_B)),
        ((optional_of(_MAP), _A), optional_of(_B)),
    ),
    *_operator("@in", ((_A, _LIST), BOOL), ((_A, _MAP), BOOL)),
]
