"""Values that may be missing: `optional.of(x)`, `.orValue(y)` and their like."""

from __future__ import annotations

from typing import Final

from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.types import BOOL, list_of, optional_of, parameter
from kubewright.controlplane.embedded.cel.values import NONE, EvaluationError, Optional, elements_of, is_zero

_V: Final = parameter("V")
_OPTIONAL: Final = optional_of(_V)


def _value(optional: Optional) -> object:
    if optional.present:
        return optional.value
    raise EvaluationError("optional.none() dereference")


def _or(optional: Optional, other: Optional) -> Optional:
    return optional if optional.present else other


def _or_value(optional: Optional, other: object) -> object:
    return optional.value if optional.present else other


def _first(values: object) -> Optional:
    elements = elements_of(values)
    return Optional(True, elements[0]) if elements else NONE


def _last(values: object) -> Optional:
    elements = elements_of(values)
    return Optional(True, elements[-1]) if elements else NONE


def _unwrapped(values: object) -> list[object]:
    return [element.value for element in elements_of(values) or [] if isinstance(element, Optional) and element.present]


OPTIONAL_FUNCTIONS: Final[list[Overload]] = [
    function("optional.of", [_V], _OPTIONAL, lambda value: Optional(True, value)),
    function(
        "optional.ofNonZeroValue", [_V], _OPTIONAL, lambda value: NONE if is_zero(value) else Optional(True, value)
    ),
    function("optional.none", [], _OPTIONAL, lambda: NONE),
    method("value", [_OPTIONAL], _V, _value),
    method("hasValue", [_OPTIONAL], BOOL, lambda optional: optional.present),
    method("or", [_OPTIONAL, _OPTIONAL], _OPTIONAL, _or),
    method("orValue", [_OPTIONAL, _V], _V, _or_value),
    method("first", [list_of(_V)], _OPTIONAL, _first),
    method("last", [list_of(_V)], _OPTIONAL, _last),
    function("optional.unwrap", [list_of(_OPTIONAL)], list_of(_V), _unwrapped),
    method("unwrapOpt", [list_of(_OPTIONAL)], list_of(_V), _unwrapped),
]
