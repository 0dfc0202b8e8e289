"""Values while a rule runs, and what is true of every one of them: its type, equality and order.

null is None, bool, int, double, string, list and map are Python's own; everything else has a class. Lists and objects
of the validated document are views (`views.py`) that convert their content when it is read.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import total_ordering
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Final

from kubewright.api.quantity import Quantity

_YEAR_ONE: Final = -62135596800 * 10**9
MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1


class EvaluationError(Exception):
    """A rule that could not be evaluated; the text is the one of cel-go."""


class NoSuchOverload(EvaluationError):
    """A function or operator met values of types it is not made for."""

    def __init__(self, what: str = "") -> None:
        super().__init__(f"no such overload: {what}" if what else "no such overload")


class Uint(int):
    """An unsigned integer: another type than int, the same number."""

    __slots__ = ()


@total_ordering
@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time in nanoseconds."""

    nanoseconds: int

    def __lt__(self, other: Duration) -> bool:
        return self.nanoseconds < other.nanoseconds


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Timestamp:
    """A point in time; `offset` (seconds east of UTC) is only how it is printed."""

    nanoseconds: int
    offset: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanoseconds < other.nanoseconds


@dataclass(frozen=True, slots=True)
class TypeValue:
    """What `type(x)` gives: the name of a type."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """A value that may be missing."""

    present: bool
    value: object = None


NONE: Final = Optional(False)


class Opaque:
    """A value of a library's own type: equality with any other type is an error."""

    __slots__ = ()
    type_name: str = ""


# No ABCs: type checkers find what is not implemented without that, and `isinstance`, which rules need all the time,
# takes several times as long for them.
class Sequenced:
    """A list of the validated document."""

    __slots__ = ()

    @property
    @abstractmethod
    def elements(self) -> Sequence[object]:
        """Its elements as values."""

    @abstractmethod
    def equals(self, other: object) -> bool:
        """Equality by the rules of its kind of list."""

    @abstractmethod
    def plus(self, other: object) -> object:
        """Concatenation by the rules of its kind of list."""


class Keyed:
    """An object or map of the validated document."""

    __slots__ = ()

    @property
    @abstractmethod
    def keys(self) -> Sequence[str]:
        """The keys it shows."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def find(self, key: object) -> tuple[bool, object]:
        """Whether a key is there, and its value."""

    @abstractmethod
    def equals(self, other: object) -> bool:
        """Equality of what both have."""


_NAMES: Final[dict[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
    IPv4Address: "net.IP",
    IPv6Address: "net.IP",
    IPv4Interface: "net.CIDR",
    IPv6Interface: "net.CIDR",
    Quantity: "kubernetes.Quantity",
}
_NUMBERS: Final = frozenset((int, float, Uint))
_ORDERED: Final = frozenset((bool, int, float, Uint, str, bytes, Timestamp, Duration))
_STRICT: Final = frozenset((IPv4Address, IPv6Address, IPv4Interface, IPv6Interface, Quantity))


def type_name(value: object) -> str:
    """The name of the type of a value."""
    name = _NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, Opaque):
        return value.type_name
    return "list" if isinstance(value, Sequenced) else "map"


def elements_of(value: object) -> Sequence[object] | None:
    """The elements of a list; None when the value is no list."""
    if type(value) is list:
        return value
    if isinstance(value, Sequenced):
        return value.elements
    return None


def found_in(container: object, key: object) -> tuple[bool, object] | None:
    """Whether a map has a key, and its value; None when the container is no map."""
    if isinstance(container, Keyed):
        return container.find(key)
    if isinstance(container, dict):
        if isinstance(key, bool | int | float | str) and key in container:
            return True, container[key]
        return False, None
    return None


def keys_of(container: object) -> Sequence[object] | None:
    """The keys of a map; None when the value is no map."""
    if isinstance(container, Keyed):
        return container.keys
    return list(container) if isinstance(container, dict) else None


def equal(left: object, right: object) -> bool:
    """Whether two values are equal: numbers by their amount, everything else only to its own type."""
    if left is None or right is None:
        return left is right
    kind = type(left)
    if kind is str or kind is bytes:
        return left == right
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and left == right
    if kind is bool:
        return left is right
    if isinstance(left, list):
        others = elements_of(right)
        return others is not None and all_equal(left, others)
    if isinstance(left, Sequenced | Keyed):
        return left.equals(right)
    if isinstance(left, dict):
        return _equal_maps(left, right)
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present is not right.present:
            return False
        return not left.present or equal(left.value, right.value)
    if (kind in _STRICT or isinstance(left, Opaque)) and type_name(left) != type_name(right):
        raise NoSuchOverload
    return left == right


def all_equal(left: Sequence[object], right: Sequence[object]) -> bool:
    """Whether two lists have equal elements in the same order."""
    return len(left) == len(right) and all(map(equal, left, right))


def _equal_maps(left: Mapping[object, object], right: object) -> bool:
    if not isinstance(right, dict | Keyed) or len(left) != len(right):
        return False
    for key, value in left.items():
        found = found_in(right, key)
        if found is None or not found[0] or not equal(value, found[1]):
            return False
    return True


def is_ordered(value: object) -> bool:
    """Whether values of its type have an order."""
    return type(value) in _ORDERED


def compare(left: object, right: object, operator: str) -> int:
    """-1, 0 or 1; NoSuchOverload for values that have no order, among themselves or at all."""
    kind, other = type(left), type(right)
    if kind not in _ORDERED:
        raise NoSuchOverload(operator)
    if kind is not other and not (kind in _NUMBERS and other in _NUMBERS):
        raise NoSuchOverload
    if (isinstance(left, float) and math.isnan(left)) or (isinstance(right, float) and math.isnan(right)):
        raise EvaluationError("NaN values cannot be ordered")
    if left == right:
        return 0
    return -1 if _less(left, right) else 1


def _less(left: object, right: object) -> bool:
    match left, right:
        case (bool() | int() | float(), bool() | int() | float()):
            return left < right
        case str(), str():
            return left < right
        case bytes(), bytes():
            return left < right
        case Timestamp(), Timestamp():
            return left < right
        case Duration(), Duration():
            return left < right
        case _:
            raise NoSuchOverload


def is_zero(value: object) -> bool:
    """Whether a value is the empty one of its type, as `optional.ofNonZeroValue` tests."""
    match value:
        case None | False | "" | b"":
            return True
        case bool():
            return False
        case int() | float():
            return value == 0
        case Duration():
            return value.nanoseconds == 0
        case Timestamp():
            return value.nanoseconds == _YEAR_ONE
        case Optional():
            return not value.present
        case _:
            elements = elements_of(value)
            if elements is not None:
                return not elements
            return isinstance(value, dict | Keyed) and len(value) == 0
