"""An expression as a tree. The parser makes it; the checker writes into every node what it found out about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kubewright.controlplane.embedded.cel.library.overload import Overload
from kubewright.controlplane.embedded.cel.types import DYN, CelType

Macro: TypeAlias = Literal[
    "all", "exists", "exists_one", "map", "filter", "transformList", "transformMap", "transformMapEntry"
]


@dataclass(slots=True, kw_only=True)
class _Node:
    at: int
    """Where messages about this node point to."""
    type: CelType = DYN


@dataclass(slots=True)
class Literal_(_Node):  # noqa: N801 (typing has the name)
    """A constant: None, bool, int, Uint, float, str or bytes; `type` is set by the parser."""

    value: object


@dataclass(slots=True)
class Ident(_Node):
    """A name; `type_value` is set when it names a type."""

    name: str
    type_value: CelType | None = None


@dataclass(slots=True)
class Select(_Node):
    """`operand.field`, `has(operand.field)` when `test`, `operand.?field` when `optional`.

    `type_value` is set when all of it names a type, such as `net.IP`, `variable` when all of it is the name of a
    variable, such as `authorizer.requestResource`.
    """

    operand: Node
    field: str
    test: bool = False
    optional: bool = False
    type_value: CelType | None = None
    variable: str = ""


@dataclass(slots=True)
class FunctionCall(_Node):
    """A function or operator (`_+_`) on arguments; `overloads` are those that fit their types."""

    function: str
    target: Node | None
    arguments: list[Node]
    overloads: Sequence[Overload] = ()


@dataclass(slots=True)
class ListLiteral(_Node):
    """`[a, ?b]`."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True)
class MapLiteralEntry:
    """`key: value` of a map."""

    key: Node
    value: Node
    optional: bool


@dataclass(slots=True)
class MapLiteral(_Node):
    """`{key: value}`."""

    entries: list[MapLiteralEntry]


@dataclass(slots=True)
class MessageLiteralField:
    """`name: value` of a message; `at` is its colon."""

    name: str
    value: Node
    optional: bool
    at: int


@dataclass(slots=True)
class MessageLiteral(_Node):
    """`Name{field: value}`."""

    name: str
    fields: list[MessageLiteralField]


@dataclass(slots=True)
class Comprehension(_Node):
    """A macro over a list or map: its variables, what must hold of an element, and what is made of it."""

    macro: Macro
    range: Node
    variables: tuple[str, ...]
    body: Node
    condition: Node | None = None


@dataclass(slots=True)
class OptionalMap(_Node):
    """`target.optMap(variable, body)`; the body is an optional itself when `flat`."""

    target: Node
    variable: str
    body: Node
    flat: bool


@dataclass(slots=True)
class SortBy(_Node):
    """`target.sortBy(variable, key)`."""

    target: Node
    variable: str
    key: Node


Node: TypeAlias = (
    Literal_
    | Ident
    | Select
    | FunctionCall
    | ListLiteral
    | MapLiteral
    | MessageLiteral
    | Comprehension
    | OptionalMap
    | SortBy
)


def children(node: Node) -> list[Node]:
    """The nodes directly below, in the order they are written."""
    match node:
        case Select():
            return [node.operand]
        case FunctionCall():
            return ([node.target] if node.target else []) + node.arguments
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case MessageLiteral():
            return [field.value for field in node.fields]
        case Comprehension():
            return [node.range, *([node.condition] if node.condition else []), node.body]
        case OptionalMap():
            return [node.target, node.body]
        case SortBy():
            return [node.target, node.key]
        case _:
            return []
