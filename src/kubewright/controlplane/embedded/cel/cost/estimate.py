"""The worst case of a checked expression, part by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubewright.controlplane.embedded.cel.cost.calls import call_cost, sort_cost
from kubewright.controlplane.embedded.cel.cost.extent import Extent
from kubewright.controlplane.embedded.cel.cost.size import ONE, UNKNOWN, Size, exactly, limited
from kubewright.controlplane.embedded.cel.syntax import (
    Comprehension,
    FunctionCall,
    Ident,
    ListLiteral,
    Literal_,
    MapLiteral,
    MessageLiteral,
    Node,
    OptionalMap,
    Select,
    SortBy,
)
from kubewright.controlplane.embedded.cel.types import CelType

_NEW_LIST: Final = 10
_NEW_MAP: Final = 30
_NEW_MESSAGE: Final = 40
_SCALARS: Final = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


def worst_cost(tree: Node, extent: Extent) -> int:
    """The most an expression over `self` can cost, in units of cel-go; `extent` has the limits of `self`."""
    return _Coster(extent).cost(tree)


@dataclass(frozen=True, slots=True)
class _Entries:
    """The sizes of what is in a list or map that an expression makes."""

    in_list: bool
    key: Size
    value: Size

    def union(self, other: _Entries | None) -> _Entries | None:
        if other is None:
            return None
        return _Entries(self.in_list, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Variable:
    path: tuple[str, ...]
    size: Size | None
    entries: _Entries | None = None


class _Coster:
    def __init__(self, extent: Extent) -> None:
        self._extent = extent
        self._variables: dict[str, _Variable] = {}
        self._paths: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entries] = {}

    def cost(self, node: Node) -> int:
        """The most a part costs; its sizes are known afterwards."""
        match node:
            case Literal_():
                return 0
            case Ident():
                variable = self._variables.get(node.name)
                self._paths[id(node)] = variable.path if variable else (node.name,)
                return 1
            case Select():
                return limited(self._select(node))
            case FunctionCall():
                return limited(self._call(node))
            case ListLiteral():
                return limited(self._list(node))
            case MapLiteral():
                return limited(self._map(node))
            case MessageLiteral():
                return _NEW_MESSAGE
            case Comprehension():
                return limited(self._comprehension(node))
            case OptionalMap():
                return limited(self._optional_map(node))
            case SortBy():
                return limited(self._sort_by(node))

    def size(self, node: Node) -> Size:
        """The size of a part; unknown where nothing limits it."""
        found = self._size(node)
        return UNKNOWN if found is None else found

    def element_size(self, node: Node) -> Size:
        """The size of the elements of a list, by the limits of the schema."""
        path = self._path(node)
        found = self._extent_at((*path, "@items")) if path else None
        return UNKNOWN if found is None else found

    def _path(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, Ident) and node.name in self._variables:
            return self._variables[node.name].path
        return self._paths.get(id(node), ())

    def _extent_at(self, path: tuple[str, ...]) -> Size | None:
        if not path:
            return None
        # The first name is taken for `self`, whatever it is: so it is in Kubernetes.
        found = self._extent.at(path[1:])
        if found is None:
            return None
        return Size(0, found if isinstance(found, int) else found.maximum)

    def _size(self, node: Node) -> Size | None:
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        match node:
            case Literal_():
                return exactly(len(node.value)) if isinstance(node.value, str | bytes) else ONE
            case ListLiteral():
                return exactly(len(node.elements))
            case MapLiteral():
                return exactly(len(node.entries))
        found = self._extent_at(self._path(node))
        if found is not None:
            self._sizes[id(node)] = found
            return found
        if _is_scalar(node.type):
            return ONE
        if isinstance(node, Ident) and node.name in self._variables:
            return self._variables[node.name].size
        return None

    def _entry_sizes(self, node: Node) -> _Entries | None:
        known = self._entries.get(id(node))
        if known is None and isinstance(node, Ident) and node.name in self._variables:
            return self._variables[node.name].entries
        return known

    def _select(self, node: Select) -> int:
        if node.type_value is not None:
            self._paths[id(node)] = (node.type_value.name,)
            return 1
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.optional:
            return cost + 1
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return cost + (node.operand.type.kind in ("map", "struct", "parameter"))

    def _call(self, node: FunctionCall) -> int:
        if node.function == "dyn" and node.target is None:
            cost = self.cost(node.arguments[0])
            self._copy(node, node.arguments[0])
            return cost + 1
        arguments = [self.cost(argument) for argument in node.arguments]
        own = self.cost(node.target) if node.target is not None else 0
        if node.function in ("_&&_", "_||_"):
            self._keep_size(node, self._size(node))
            return sum(arguments)
        if node.function == "_?_:_":
            return self._conditional(node, arguments)
        parts = [node.target, *node.arguments] if node.target is not None else node.arguments
        maximum, result = 0, None
        for overload in node.overloads:
            found = call_cost(self, node.function, parts, overload)
            maximum = max(maximum, found.maximum)
            if found.result is not None:
                result = found.result if result is None else result.union(found.result)
            if node.function == "_[_]" and overload.parameters[0].kind in ("list", "map"):
                container = node.arguments[0]
                entries = self._entry_sizes(container)
                result = entries.value if entries else None
                step = "@items" if overload.parameters[0].kind == "list" else "@values"
                self._paths[id(node)] = (*self._path(container), step)
            if result is None:
                result = self._size(node)
        if node.function == "_+_":
            self._join_entries(node)
        self._keep_size(node, result)
        return own + sum(arguments) + maximum

    def _conditional(self, node: FunctionCall, arguments: list[int]) -> int:
        _, then, otherwise = node.arguments
        first = self._entry_sizes(then)
        self._keep_entries(node, first.union(self._entry_sizes(otherwise)) if first else None)
        self._keep_size(node, self.size(then).union(self.size(otherwise)))
        return arguments[0] + max(arguments[1], arguments[2])

    def _join_entries(self, node: FunctionCall) -> None:
        first = self._entry_sizes(node.arguments[0])
        self._keep_entries(node, first.union(self._entry_sizes(node.arguments[1])) if first else None)

    def _keep_size(self, node: Node, size: Size | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size

    def _keep_entries(self, node: Node, entries: _Entries | None) -> None:
        if entries is not None:
            self._entries[id(node)] = entries

    def _copy(self, node: Node, source: Node) -> None:
        self._keep_size(node, self._size(source))
        self._keep_entries(node, self._entry_sizes(source))

    def _list(self, node: ListLiteral) -> int:
        cost = sum(self.cost(element) for element in node.elements)
        sizes = [self.size(element) for element in node.elements]
        self._entries[id(node)] = _Entries(True, ONE, _united(sizes))
        return cost + _NEW_LIST

    def _map(self, node: MapLiteral) -> int:
        cost = sum(self.cost(entry.key) + self.cost(entry.value) for entry in node.entries)
        keys = _united([self.size(entry.key) for entry in node.entries])
        values = _united([self.size(entry.value) for entry in node.entries])
        self._entries[id(node)] = _Entries(False, keys, values)
        return cost + _NEW_MAP

    def _iterated(self, range_: Node, names: tuple[str, ...]) -> dict[str, _Variable]:
        entries = self._entry_sizes(range_)
        in_list = entries.in_list if entries else range_.type.kind == "list"
        path = self._path(range_)
        if len(names) == 2:
            keys = (*path, "@indices" if in_list else "@keys")
            values = (*path, "@items" if in_list else "@values")
            return {
                names[0]: _Variable(keys, entries.key if entries else None),
                names[1]: _Variable(values, entries.value if entries else None),
            }
        if in_list:
            return {names[0]: _Variable((*path, "@items"), entries.value if entries else None)}
        return {names[0]: _Variable((*path, "@keys"), entries.key if entries else None)}

    def _comprehension(self, node: Comprehension) -> int:
        cost = self.cost(node.range)
        before = self._variables
        self._variables = before | self._iterated(node.range, node.variables)
        condition = self.cost(node.condition) if node.condition is not None else 0
        body = self.cost(node.body)
        made = self.size(node.body)
        self._variables = before
        count = self.size(node.range)
        # Each macro is a loop over an accumulator: what it starts with, what one round costs, and how it ends.
        match node.macro:
            case "all":
                start, each, end = 0, 2 + 1 + body, 1
            case "exists":
                start, each, end = 0, 3 + 1 + body, 1
            case "exists_one":
                start, each, end = 0, body + 2, 2
            case "map" | "filter" | "transformList":
                start, each, end = _NEW_LIST, condition + body + 2 + _NEW_LIST, 1
                self._entries[id(node)] = _Entries(True, ONE, Size(0, made.maximum))
            case "transformMap":
                start, each, end = _NEW_MAP, condition + body + 3, 1
            case "transformMapEntry":
                start, each, end = _NEW_MAP, condition + body + 2, 1
        self._sizes[id(node)] = count if start else ONE
        return cost + start + end + limited(count.maximum * limited(each))

    def _optional_map(self, node: OptionalMap) -> int:
        target = self.cost(node.target)
        before = self._variables
        self._variables = before | {node.variable: _Variable((), self._inner_size(node))}
        body = self.cost(node.body)
        self._variables = before
        bound = _NEW_LIST + target + 1 + body
        if node.flat:
            self._keep_size(node, self.size(node.body).union(UNKNOWN))
            return target + 1 + max(bound, 1)
        return target + 1 + max(bound + 1, 1)

    def _inner_size(self, node: OptionalMap) -> Size | None:
        parameters = node.target.type.parameters
        return ONE if parameters and _is_scalar(parameters[0]) else None

    def _sort_by(self, node: SortBy) -> int:
        target = self.cost(node.target)
        before = self._variables
        self._variables = before | self._iterated(node.target, (node.variable,))
        key = self.cost(node.key)
        self._variables = before
        count = self.size(node.target)
        # A list of keys is made first, of the list under a name of its own.
        keys = 1 + _NEW_LIST + 1 + limited(count.maximum * limited(key + 2 + _NEW_LIST))
        sorting = sort_cost(count, node.key.type)
        self._keep_size(node, sorting.result)
        return _NEW_LIST + target + 1 + keys + sorting.maximum


def _united(sizes: list[Size]) -> Size:
    if not sizes:
        return Size(0, 0)
    return Size(min(size.minimum for size in sizes), max(size.maximum for size in sizes))


def _is_scalar(type_: CelType) -> bool:
    if type_.kind == "opaque" and type_.name == "optional_type":
        return _is_scalar(type_.parameters[0])
    return type_.kind in _SCALARS
