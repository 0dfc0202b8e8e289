"""Turns a checked expression into Python closures.

A program is compiled once and run often: everything that is known before is decided here. Variables are slots of a
list, so that running needs no dictionaries; the common operators on the common types take a shortcut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from kubewright.controlplane.embedded.cel.comprehensions import (
    Evaluate,
    Frame,
    compiled_comprehension,
)
from kubewright.controlplane.embedded.cel.cost.metering import Meter, MeteredScope, own_cost
from kubewright.controlplane.embedded.cel.dispatch import function_call
from kubewright.controlplane.embedded.cel.library.lists import sorted_by
from kubewright.controlplane.embedded.cel.library.operators import (
    divide,
    index,
    modulo,
    multiply,
    negate,
    optional_index,
    subtract,
)
from kubewright.controlplane.embedded.cel.library.patches import new_message
from kubewright.controlplane.embedded.cel.library.standard import CONVERSIONS
from kubewright.controlplane.embedded.cel.operations import (
    addition,
    alternative,
    comparison,
    conditional,
    equality,
    logical,
    membership,
    negation,
)
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
from kubewright.controlplane.embedded.cel.values import (
    NONE,
    EvaluationError,
    NoSuchOverload,
    Optional,
    TypeValue,
    elements_of,
    found_in,
    keys_of,
    type_name,
)
from kubewright.controlplane.embedded.cel.views import ObjectView
from kubewright.controlplane.embedded.schema.patterns import InvalidPattern, go_pattern

_Binary: TypeAlias = Callable[[object, object], object]

_ARITHMETIC: Final[dict[str, _Binary]] = {
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "_[_]": index,
    "_[?_]": optional_index,
}


class InstantiationError(Exception):
    """An expression that is well typed and yet can never run."""


class Program:
    """A compiled expression over some variables. With a meter, each run is charged to it."""

    def __init__(self, node: Node, variables: Sequence[str], meter: Meter | None = None) -> None:
        compiler = _Compiler(variables, meter)
        self._evaluate = compiler.compiled(node)
        self._slots = compiler.slots
        self.uses = frozenset(compiler.used)
        """The names of the variables that are read."""

    def run(self, *values: object) -> object:
        """The result for the values of the variables; EvaluationError when there is none."""
        frame: Frame = [None] * self._slots
        frame[: len(values)] = values
        try:
            return self._evaluate(frame)
        except RecursionError:
            raise EvaluationError("the value is nested too deeply") from None


class _Compiler:
    def __init__(self, variables: Sequence[str], meter: Meter | None) -> None:
        self._meter = meter
        self._scope = {name: slot for slot, name in enumerate(variables)}
        self._outer = frozenset(variables)
        self.slots = len(variables)
        self.used: set[str] = set()

    def slot(self) -> int:
        """Room for one more variable."""
        self.slots += 1
        return self.slots - 1

    def within(self, variables: dict[str, int], node: Node) -> Evaluate:
        """`node` compiled with more variables."""
        before = self._scope
        self._scope = before | variables
        try:
            return self.compiled(node)
        finally:
            self._scope = before

    def compiled(self, node: Node) -> Evaluate:
        """The function that evaluates a node."""
        evaluate = self._evaluated(node)
        return evaluate if self._meter is None else self._meter.charged(evaluate, own_cost(node))

    def _evaluated(self, node: Node) -> Evaluate:
        match node:
            case Literal_():
                return _constant(node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case FunctionCall():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                scope = self if self._meter is None else MeteredScope(self, node, self._meter)
                return compiled_comprehension(node, scope)
            case OptionalMap():
                return self._optional_map(node)
            case SortBy():
                return self._sort_by(node)
            case MessageLiteral():
                return self._message(node)

    def _ident(self, node: Ident) -> Evaluate:
        if node.type_value is not None:
            return _constant(TypeValue(node.type_value.runtime_name))
        name = node.name.removeprefix(".")
        slot = self._scope[name]
        if name in self._outer and slot < len(self._outer):
            self.used.add(name)
        return lambda frame: frame[slot]

    def _select(self, node: Select) -> Evaluate:
        if node.type_value is not None:
            return _constant(TypeValue(node.type_value.runtime_name))
        if node.variable:
            slot = self._scope[node.variable]
            return lambda frame: frame[slot]
        operand, name = self.compiled(node.operand), node.field
        if node.test:
            return lambda frame: _has(operand(frame), name)
        if node.optional:
            return lambda frame: optional_index(_selectable(operand(frame)), name)

        def select(frame: Frame) -> object:
            target = operand(frame)
            return target.get(name) if type(target) is ObjectView else index(target, name)

        return select

    def _list(self, node: ListLiteral) -> Evaluate:
        parts = [self.compiled(element) for element in node.elements]
        if not node.optional:
            return lambda frame: [part(frame) for part in parts]
        optional = node.optional

        def build(frame: Frame) -> object:
            found: list[object] = []
            for position, part in enumerate(parts):
                value = part(frame)
                if position not in optional:
                    found.append(value)
                elif not isinstance(value, Optional):
                    raise EvaluationError(f"cannot initialize optional list element from non-optional value {value}")
                elif value.present:
                    found.append(value.value)
            return found

        return build

    def _map(self, node: MapLiteral) -> Evaluate:
        parts = [(self.compiled(entry.key), self.compiled(entry.value), entry.optional) for entry in node.entries]

        def build(frame: Frame) -> object:
            found: dict[object, object] = {}
            for key, value, optional in parts:
                name, item = key(frame), value(frame)
                if optional:
                    if not isinstance(item, Optional):
                        raise EvaluationError(
                            f"cannot initialize optional entry '{name}' from non-optional value {item}"
                        )
                    if not item.present:
                        continue
                    item = item.value
                if not isinstance(name, bool | int | float | str):
                    raise EvaluationError(f"unsupported key type: {type_name(name)}")
                found[name] = item
            return found

        return build

    def _message(self, node: MessageLiteral) -> Evaluate:
        name = node.name.removeprefix(".")
        parts = [(field.name, self.compiled(field.value), field.optional) for field in node.fields]

        def build(frame: Frame) -> object:
            fields: dict[str, object] = {}
            for field, part, optional in parts:
                value = part(frame)
                if not optional:
                    fields[field] = value
                elif not isinstance(value, Optional):
                    raise EvaluationError(f"cannot initialize optional entry '{field}' from non-optional value {value}")
                elif value.present:
                    fields[field] = value.value
            return new_message(name, fields)

        return build

    def _optional_map(self, node: OptionalMap) -> Evaluate:
        target, slot, flat = self.compiled(node.target), self.slot(), node.flat
        body = self.within({node.variable: slot}, node.body)

        def transform(frame: Frame) -> object:
            optional = target(frame)
            if not isinstance(optional, Optional):
                raise NoSuchOverload(f"hasValue({type_name(optional)})")
            if not optional.present:
                return NONE
            frame[slot] = optional.value
            return body(frame) if flat else Optional(True, body(frame))

        return transform

    def _sort_by(self, node: SortBy) -> Evaluate:
        target, slot = self.compiled(node.target), self.slot()
        key = self.within({node.variable: slot}, node.key)

        def sort(frame: Frame) -> object:
            elements = elements_of(target(frame))
            if elements is None:
                raise NoSuchOverload("@sortByAssociatedKeys")
            keys: list[object] = []
            for element in elements:
                frame[slot] = element
                keys.append(key(frame))
            return sorted_by(elements, keys)

        return sort

    def _call(self, node: FunctionCall) -> Evaluate:
        parts = [self.compiled(part) for part in ([node.target] if node.target else []) + node.arguments]
        if self._meter is None:
            return self._called(node, parts)
        return self._meter.call(node, parts, [self.slot() for _ in parts], partial(self._called, node))

    def _called(self, node: FunctionCall, parts: Sequence[Evaluate]) -> Evaluate:
        match node.function:
            case "_&&_":
                return logical(parts, decides=False)
            case "_||_":
                return logical(parts, decides=True)
            case "_?_:_":
                return conditional(*parts)
            case "!_":
                return negation(parts[0])
            case "-_":
                operand = parts[0]
                return lambda frame: negate(operand(frame))
            case "_==_" | "_!=_":
                return equality(*parts, same=node.function == "_==_")
            case "_<_" | "_<=_" | "_>_" | "_>=_":
                return comparison(parts[0], parts[1], node.function)
            case "@in":
                return membership(node.arguments[1], *parts)
            case "or" | "orValue" if node.target is not None:
                return alternative(*parts, unwrap=node.function == "orValue")
            case "_+_":
                return addition(*parts)
        if node.function in _ARITHMETIC:
            left, right = parts
            operate = _ARITHMETIC[node.function]
            return lambda frame: operate(left(frame), right(frame))
        if node.function in ("find", "findAll") and isinstance(node.arguments[0], Literal_):
            _check_pattern(str(node.arguments[0].value))
        evaluate = function_call(node.function, node.overloads, parts)
        if self._meter is None and node.function in CONVERSIONS and node.target is None:
            return _folded(evaluate) if _is_constant(node.arguments[0]) else evaluate
        return evaluate


def _check_pattern(pattern: str) -> None:
    try:
        go_pattern(pattern)
    except InvalidPattern as error:
        raise InstantiationError(str(error)) from None


def _is_constant(node: Node) -> bool:
    if isinstance(node, FunctionCall) and node.target is None and node.function in CONVERSIONS | {"dyn"}:
        return _is_constant(node.arguments[0])
    return isinstance(node, Literal_) or (isinstance(node, ListLiteral) and all(map(_is_constant, node.elements)))


def _folded(evaluate: Evaluate) -> Evaluate:
    try:
        value = evaluate([])
    except EvaluationError as error:
        raise InstantiationError(str(error)) from None
    return _constant(value)


def _constant(value: object) -> Evaluate:
    return lambda frame: value


def _selectable(target: object) -> object:
    if isinstance(target, Optional) or keys_of(target) is not None:
        return target
    return {}


def _has(target: object, name: str) -> bool:
    if type(target) is ObjectView:
        return target.has(name)
    if isinstance(target, Optional):
        return target.present and _has(target.value, name)
    found = found_in(target, name)
    return found is not None and found[0]
