"""Kubernetes quantities in rules: `quantity('1Gi').isLessThan(quantity(self.memory))`."""

from __future__ import annotations

import re
from typing import Final

from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.types import BOOL, DOUBLE, INT, STRING, CelType
from kubewright.controlplane.embedded.cel.values import MAX_INT, MIN_INT, EvaluationError

QUANTITY: Final = CelType("struct", "kubernetes.Quantity")

_SIGNS: Final = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")
_WRITTEN: Final = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]+)")
_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SAFE_DIGITS: Final = 18
_COMPLAINT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _quantity(text: str) -> Quantity:
    try:
        return Quantity(text)
    except ValueError:
        right_signs = _SIGNS.fullmatch(text) is not None
        raise EvaluationError("unable to parse quantity's suffix" if right_signs else _COMPLAINT) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity(text)
    except ValueError:
        return False
    return True


def _compare(left: Quantity, right: Quantity) -> int:
    return (left > right) - (left < right)


def _is_integer(quantity: Quantity) -> bool:
    """As Go's `AsInt64`: besides an integer that fits, it must be written so that Go needs no big numbers for it."""
    amount = quantity.as_decimal()
    if amount != amount.to_integral_value() or not MIN_INT <= amount <= MAX_INT:
        return False
    written = _WRITTEN.fullmatch(quantity.text)
    if written is None:
        return True
    digits, fraction, suffix = written[1], written[2] or "", written[3]
    if suffix.endswith("i"):
        exponent = 10 * (1 + "KMGTPE".index(suffix[0]))
        return not fraction and 14 - len(digits) - int(exponent * 0.3) >= 0
    exponent = bounded_integer(suffix[1:]) if suffix[1:] else _POWERS[suffix]
    return exponent >= len(fraction) and len(digits) + len(fraction) <= _SAFE_DIGITS


def _integer(quantity: Quantity) -> int:
    if _is_integer(quantity):
        return int(quantity)
    raise EvaluationError("cannot convert value to integer")


QUANTITY_FUNCTIONS: Final[list[Overload]] = [
    function("quantity", [STRING], QUANTITY, _quantity),
    function("isQuantity", [STRING], BOOL, _is_quantity),
    function("sign", [QUANTITY], INT, lambda quantity: (quantity > 0) - (quantity < 0)),
    method("isGreaterThan", [QUANTITY, QUANTITY], BOOL, lambda left, right: left > right),
    method("isLessThan", [QUANTITY, QUANTITY], BOOL, lambda left, right: left < right),
    method("compareTo", [QUANTITY, QUANTITY], INT, _compare),
    method("asApproximateFloat", [QUANTITY], DOUBLE, lambda quantity: float(quantity.as_decimal())),
    method("asInteger", [QUANTITY], INT, _integer),
    method("isInteger", [QUANTITY], BOOL, _is_integer),
    method("add", [QUANTITY, QUANTITY], QUANTITY, lambda left, right: left + right),
    method("add", [QUANTITY, INT], QUANTITY, lambda left, right: left + right),
    method("sub", [QUANTITY, QUANTITY], QUANTITY, lambda left, right: left - right),
    method("sub", [QUANTITY, INT], QUANTITY, lambda left, right: left - right),
]
