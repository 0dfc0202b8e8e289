"""What an expression costs when it runs, in units of cel-go: every part is charged for what it did with its values.

The estimates of `calls` hold here too, with the sizes that values have instead of those they may have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubewright.controlplane.embedded.cel.comprehensions import Evaluate, Frame, Scoped
from kubewright.controlplane.embedded.cel.cost.calls import TRAVERSAL, call_cost
from kubewright.controlplane.embedded.cel.cost.size import Size, exactly, scaled
from kubewright.controlplane.embedded.cel.library.overload import Overload
from kubewright.controlplane.embedded.cel.syntax import (
    Comprehension,
    FunctionCall,
    Ident,
    ListLiteral,
    Literal_,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
)
from kubewright.controlplane.embedded.cel.values import Optional, elements_of, found_in, keys_of, type_name

CALL_LIMIT: Final = 1_000_000
"""The most that one run of an expression may cost."""
_NEW_LIST: Final = 10
_NEW_MAP: Final = 30
_NEW_MESSAGE: Final = 40
_FREE: Final = frozenset(("_&&_", "_||_", "_?_:_", "or", "orValue"))
_TRAVERSED: Final = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"))


class CostExceeded(Exception):
    """An expression that costs more than it may. Nothing in it makes up for that, as it might for an error."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Meter:
    """Counts what one run of a program costs."""

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, cost: int) -> None:
        """Charge for one part."""
        self.spent += cost
        if self.spent > CALL_LIMIT:
            raise CostExceeded

    def charged(self, evaluate: Evaluate, cost: int) -> Evaluate:
        """A part with a fixed cost."""
        if not cost:
            return evaluate

        def run(frame: Frame) -> object:
            value = evaluate(frame)
            self.spend(cost)
            return value

        return run

    def call(
        self, node: FunctionCall, parts: Sequence[Evaluate], slots: Sequence[int], compiled: _Compiled
    ) -> Evaluate:
        """A call, charged by its arguments and its result; `slots` are where the arguments are kept meanwhile."""
        if node.function == "_?_:_":
            # A branch that is a mere variable or field is not charged for being looked up once more.
            branches = zip(parts[1:], node.arguments[1:], strict=True)
            parts = [parts[0], *(self.charged(part, -1 if _is_attribute(branch) else 0) for part, branch in branches)]
        if node.function in _FREE or is_constant_membership(node):
            return compiled(parts)
        evaluate = compiled([_kept(part, slot) for part, slot in zip(parts, slots, strict=True)])

        def run(frame: Frame) -> object:
            result = evaluate(frame)
            self.spend(_cost(node, [frame[slot] for slot in slots], result))
            return result

        return run


_Compiled = Callable[[Sequence[Evaluate]], Evaluate]


class MeteredScope:
    """Compiles the parts of a macro, with what its loop costs besides them."""

    def __init__(self, scope: Scoped, node: Comprehension, meter: Meter) -> None:
        self._scope = scope
        self._node = node
        self._meter = meter

    def slot(self) -> int:
        """See `Scoped`."""
        return self._scope.slot()

    def compiled(self, node: Node) -> Evaluate:
        """See `Scoped`."""
        return self._scope.compiled(node)

    def within(self, variables: dict[str, int], node: Node) -> Evaluate:
        """See `Scoped`."""
        evaluate = self._scope.within(variables, node)
        if node is self._node.condition:
            return evaluate
        match self._node.macro:
            case "all":
                return self._meter.charged(evaluate, 3)
            case "exists":
                return self._meter.charged(evaluate, 4)
            case "exists_one":
                return self._counted(evaluate)
            case "transformMap":
                return self._meter.charged(evaluate, 3)
            case "transformMapEntry":
                return self._meter.charged(evaluate, 2)
        return self._meter.charged(evaluate, 2 + _NEW_LIST)

    def _counted(self, evaluate: Evaluate) -> Evaluate:
        def run(frame: Frame) -> object:
            value = evaluate(frame)
            if value is True:
                self._meter.spend(2)
            return value

        return run


def own_cost(node: Node) -> int:
    """What a part costs that is no call, apart from what is in it."""
    match node:
        case Ident():
            return 1
        case Select():
            return 0 if node.test else 1
        case ListLiteral():
            return 0 if all(isinstance(element, Literal_) for element in node.elements) else _NEW_LIST
        case MapLiteral():
            parts = [part for entry in node.entries for part in (entry.key, entry.value)]
            return 0 if all(isinstance(part, Literal_) for part in parts) else _NEW_MAP
        case MessageLiteral():
            return _NEW_MESSAGE
        case Comprehension():
            return 2 if node.macro == "exists_one" else 1
    return 0


def is_constant_membership(node: FunctionCall) -> bool:
    """`x in [1, 2]`, which is looked up and costs nothing."""
    if node.function != "@in":
        return False
    container = node.arguments[1]
    return isinstance(container, ListLiteral) and all(isinstance(element, Literal_) for element in container.elements)


def _is_attribute(node: Node) -> bool:
    """A variable, or what is reached from one by names and indices."""
    match node:
        case Ident():
            return True
        case Select():
            return not node.test and _is_attribute(node.operand)
        case FunctionCall():
            return node.function == "_[_]" and _is_attribute(node.arguments[0])
    return False


def _kept(part: Evaluate, slot: int) -> Evaluate:
    def run(frame: Frame) -> object:
        frame[slot] = value = part(frame)
        return value

    return run


def _cost(node: FunctionCall, values: Sequence[object], result: object) -> int:
    match node.function:
        case "startsWith" | "endsWith":
            return scaled(_size(values[0]), TRAVERSAL)
        case "join":
            return scaled(_size(result), 2 * TRAVERSAL)
        case function if function in _TRAVERSED:
            return _traversal(values[0])
    parts = [node.target, *node.arguments] if node.target is not None else node.arguments
    sizes = _Actual(parts, values)
    return call_cost(sizes, node.function, parts, _overload(node, values)).maximum


def _overload(node: FunctionCall, values: Sequence[object]) -> Overload:
    """The overload that was meant, by the first argument."""
    name = type_name(values[0]) if values else ""
    for overload in node.overloads:
        first = overload.parameters[0] if overload.parameters else None
        if first is not None and (first.kind in ("dyn", "parameter") or first.runtime_name == name):
            return overload
    return node.overloads[0]


class _Actual:
    """The sizes of the arguments of a call."""

    def __init__(self, parts: Sequence[Node], values: Sequence[object]) -> None:
        self._values = {id(part): value for part, value in zip(parts, values, strict=True)}

    def size(self, node: Node) -> Size:
        """See `Sized`."""
        return exactly(_size(self._values[id(node)]))

    def element_size(self, node: Node) -> Size:
        """See `Sized`."""
        elements = elements_of(self._values[id(node)]) or ()
        return exactly(max(map(_size, elements), default=0))


def _size(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Optional):
        return _size(value.value) if value.present else 1
    elements = elements_of(value)
    if elements is None:
        elements = keys_of(value)
    return 1 if elements is None else len(elements)


def _traversal(value: object) -> int:
    """The cost of traversing a whole value."""
    if isinstance(value, str | bytes):
        return scaled(len(value), TRAVERSAL)
    elements = elements_of(value)
    if elements is not None:
        return sum(map(_traversal, elements))
    keys = keys_of(value)
    if keys is None:
        return 1
    return sum(_traversal(key) + _traversal(pair[1] if (pair := found_in(value, key)) else None) for key in keys)
