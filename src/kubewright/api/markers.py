"""What Kubernetes knows about a field beyond its type, said in `Annotated[...]`.

    conditions: Annotated[list[Condition], ListMap("type")] = []

Bounds, lengths and patterns are msgspec's own `Meta(ge=1, max_length=63, pattern=...)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
    _T = TypeVar("_T")
    # For type checkers a Choice is its Literal, so that a typing error in a value is found before it is sent.
    Choice = Annotated[_T, "one of"]
else:
    JSONValue = Any

    class Choice:
        """`Choice[Literal["Always", "Never"]]`: one of the values known today.

        Decoding accepts other strings: a newer server may know more values, and one of them must not stop a watch.
        """

        def __class_getitem__(cls, literal):
            return Annotated[str, Values(literal.__args__)]


@dataclass(frozen=True, slots=True)
class Values:
    """The values a `Choice` knows."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, init=False)
class ListMap:
    """A list of structures identified by `keys` (JSON names): merged item by item, each key combination once."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)


@dataclass(frozen=True, slots=True)
class ListSet:
    """A list of scalars without duplicates, merged value by value."""


@dataclass(frozen=True, slots=True)
class Atomic:
    """A list, map or structure that is replaced whole, never merged."""


@dataclass(frozen=True, slots=True)
class StrategicMerge:
    """How a strategic merge patch treats a list or structure: the item key, and whether absent keys are dropped."""

    key: str = ""
    retain_keys: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """The OpenAPI format of a scalar, such as `int32` or `byte`, where the type alone does not say it."""

    name: str


Int32: TypeAlias = Annotated[int, Format("int32")]
Int64: TypeAlias = Annotated[int, Format("int64")]
Double: TypeAlias = Annotated[float, Format("double")]
Base64: TypeAlias = Annotated[str, Format("byte")]
