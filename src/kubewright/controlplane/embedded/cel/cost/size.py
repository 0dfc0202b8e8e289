"""Arithmetic of estimates: unsigned 64 bits that stay at their largest value instead of overflowing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

UNLIMITED: Final = 2**64 - 1


def limited(number: int) -> int:
    """The number, or the largest one."""
    return min(number, UNLIMITED)


def scaled(number: int, factor: float) -> int:
    """`number * factor`, rounded up."""
    product = math.ceil(float(number) * factor)
    return limited(product)


@dataclass(frozen=True, slots=True)
class Size:
    """How many elements or characters a value has: at least and at most."""

    minimum: int
    maximum: int

    def plus(self, other: Size) -> Size:
        """The size of both together."""
        return Size(limited(self.minimum + other.minimum), limited(self.maximum + other.maximum))

    def times(self, other: Size) -> Size:
        """So many times the other."""
        return Size(limited(self.minimum * other.minimum), limited(self.maximum * other.maximum))

    def union(self, other: Size) -> Size:
        """One or the other."""
        return Size(min(self.minimum, other.minimum), max(self.maximum, other.maximum))


UNKNOWN: Final = Size(0, UNLIMITED)
ONE: Final = Size(1, 1)


def exactly(number: int) -> Size:
    """A size that is known."""
    return Size(number, number)
