"""Numbers: how they print, and where they end."""

from __future__ import annotations

import math

from kubewright.controlplane.embedded.apimachinery.gotext import printed_number
from kubewright.controlplane.embedded.cel.values import MAX_INT, MIN_INT, EvaluationError, Uint


def double_text(number: float) -> str:
    """A number as Go's `%g` prints it: the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return printed_number(number)


def checked_integer(number: int) -> int:
    """The number, which must fit in 64 bits."""
    if MIN_INT <= number <= MAX_INT:
        return number
    raise EvaluationError("integer overflow")


def checked_unsigned(number: int) -> Uint:
    """The number, which must fit in 64 bits and be no less than 0."""
    if 0 <= number < 2**64:
        return Uint(number)
    raise EvaluationError("unsigned integer overflow")
