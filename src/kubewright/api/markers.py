"""What Kubernetes knows about a field beyond its type, written in `Annotated[...]`.

    conditions: Annotated[list[Condition], ListMap("type")] = []

Bounds, lengths and patterns are msgspec's own `Meta(ge=1, max_length=63, pattern=...)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
    # What is only read: lists and dicts of JSONValue are invariant, and `labels = {"app": "web"}` is a dict[str, str].
    # The parts with `object` are for mypy, to which a dict with values of different types is a dict[str, object].
    JSONInput: TypeAlias = (
        "JSONValue | Sequence[JSONInput] | Mapping[str, JSONInput] | Sequence[object] | Mapping[str, object]"
    )
    _T = TypeVar("_T")
    # For type checkers a Choice is its Literal, so that a misspelt value is found before it is sent.
    Choice = Annotated[_T, "one of"]
else:
    JSONValue = JSONInput = Any

    class Choice:
        """`Choice[Literal["Always", "Never"]]`: one of the values known today.

        Decoding accepts other strings: a newer server may know more values, and one of them must not stop a watch.
        """

        def __class_getitem__(cls, literal):
            return Annotated[str, Values(literal.__args__)]


JSONObject: TypeAlias = dict[str, JSONValue]


class Values(Struct, frozen=True):
    """The values a `Choice` knows."""

    values: tuple[str, ...]


class _Fields:
    """A marker that names fields."""

    # Not a Struct, whose constructor takes one argument per field.
    __slots__ = ("_names",)

    def __init__(self, *names: str) -> None:
        self._names: Final = names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fields) and type(self) is type(other) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._names))})"


class ListMap(_Fields):
    """A list of structures identified by `keys` (JSON names): merged item by item, each key combination once."""

    __slots__ = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The JSON names of the fields that identify an item."""
        return self._names


class ListSet(Struct, frozen=True):
    """A list of scalars without duplicates, merged value by value."""


class Atomic(Struct, frozen=True):
    """A list, map or structure that is replaced whole, never merged."""


class StrategicMerge(Struct, frozen=True):
    """How a strategic merge patch treats a list or structure: the item key, and whether absent keys are dropped."""

    key: str = ""
    retain_keys: bool = False


class Format(Struct, frozen=True):
    """The OpenAPI format of a scalar, such as `int32` or `byte`, where the type does not imply it."""

    name: str


class Rule(Struct, frozen=True):
    """A rule in CEL that the API server enforces: `x-kubernetes-validations` of a definition.

        class Range(Model, rules=[Rule("self.min <= self.max", message="min must not exceed max")]): ...
        @resource("example.com/v1", rules=[Rule("self.metadata.name.size() <= 20")])
        name: Annotated[str, Rule("self != 'admin'", message="this name is reserved")]

    `self` is the structure, the object or the field, with its JSON names; `oldSelf` is its previous value, and makes it
    a rule about changes. The rest is as in Kubernetes: `message_expression` computes the message, `reason` is one of
    FieldValueInvalid, FieldValueForbidden, FieldValueRequired and FieldValueDuplicate, `field_path` the field that is
    blamed (".spec.max"), and with `optional_old_self` a rule about changes also sees creations.
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None


class FieldUnion(_Fields):
    """A rule about how many of some optional fields (JSON names) are set, written among the `rules` of a structure."""

    __slots__ = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The JSON names of the fields that are alternatives."""
        return self._names


class ExactlyOneOf(FieldUnion):
    """One of the fields is set, and no other: `class Source(Model, rules=[ExactlyOneOf("file", "url")])`."""

    __slots__ = ()


class AtMostOneOf(FieldUnion):
    """None or one of the fields is set."""

    __slots__ = ()


class AtLeastOneOf(FieldUnion):
    """One or more of the fields are set."""

    __slots__ = ()


class Immutable(Struct, frozen=True):
    """A field whose value cannot be changed once it is set: the API server refuses it.

    An optional field may be set later than at creation, and cannot be removed from then on. Fields of an
    optional structure are only guarded while that structure exists: mark the structure instead.
    """


Int32: TypeAlias = Annotated[int, Format("int32")]
Int64: TypeAlias = Annotated[int, Format("int64")]
Double: TypeAlias = Annotated[float, Format("double")]
Base64: TypeAlias = Annotated[str, Format("byte")]
