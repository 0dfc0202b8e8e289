"""Macros over lists and maps, as loops.

`all` and `exists` absorb errors as `&&` and `||` do: one element that decides is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

from kubewright.controlplane.embedded.cel.syntax import Comprehension, Node
from kubewright.controlplane.embedded.cel.values import (
    EvaluationError,
    NoSuchOverload,
    elements_of,
    found_in,
    keys_of,
    type_name,
)

Frame: TypeAlias = list[object]
"""The variables of a running program, by slot."""
Evaluate: TypeAlias = Callable[[Frame], object]

_GO_TYPES: Final = {
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "bool": "types.Bool",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration",
    "optional_type": "*types.Optional",
}


class Scoped(Protocol):
    """What compiles the parts of a comprehension."""

    def slot(self) -> int:
        """Room for one more variable."""

    def compiled(self, node: Node) -> Evaluate:
        """A node in the present scope."""

    def within(self, variables: dict[str, int], node: Node) -> Evaluate:
        """A node with more variables."""


def compiled_comprehension(node: Comprehension, compiler: Scoped) -> Evaluate:
    """The loop of a macro."""
    range_ = compiler.compiled(node.range)
    variables = {name: compiler.slot() for name in node.variables}
    body = compiler.within(variables, node.body)
    condition = compiler.within(variables, node.condition) if node.condition is not None else None
    steps = _one_variable(range_, *variables.values()) if len(variables) == 1 else _two(range_, *variables.values())
    match node.macro:
        case "all":
            return _quantifier(steps, body, decides=False)
        case "exists":
            return _quantifier(steps, body, decides=True)
        case "exists_one":
            return _exactly_one(steps, body)
        case "map" | "filter" | "transformList":
            return _collected(steps, body, condition)
        case "transformMap":
            return _mapped(steps, body, condition, next(iter(variables.values())))
        case "transformMapEntry":
            return _merged(steps, body, condition)


_Steps: TypeAlias = Callable[[Frame], Iterator[None]]
"""Puts one element after the other into the variables."""


def _iterated(value: object) -> Sequence[object]:
    elements = elements_of(value)
    if elements is None:
        elements = keys_of(value)
    if elements is None:
        name = type_name(value)
        raise EvaluationError(f"got '{_GO_TYPES.get(name, name)}', expected iterable type")
    return elements


def _one_variable(range_: Evaluate, slot: int) -> _Steps:
    def steps(frame: Frame) -> Iterator[None]:
        for element in _iterated(range_(frame)):
            frame[slot] = element
            yield

    return steps


def _two(range_: Evaluate, first: int, second: int) -> _Steps:
    def steps(frame: Frame) -> Iterator[None]:
        value = range_(frame)
        elements = elements_of(value)
        if elements is not None:
            for index, element in enumerate(elements):
                frame[first], frame[second] = index, element
                yield
            return
        for key in _iterated(value):
            found = found_in(value, key)
            frame[first], frame[second] = key, found[1] if found else None
            yield

    return steps


def _quantifier(steps: _Steps, body: Evaluate, *, decides: bool) -> Evaluate:
    def run(frame: Frame) -> object:
        failure: EvaluationError | None = None
        for _ in steps(frame):
            try:
                value = body(frame)
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is decides:
                return decides
            if value is not True and value is not False:
                failure = failure or NoSuchOverload()
        if failure is not None:
            raise failure
        return not decides

    return run


def _holds(condition: Evaluate, frame: Frame) -> bool:
    value = condition(frame)
    if value is True:
        return True
    if value is False:
        return False
    raise NoSuchOverload


def _exactly_one(steps: _Steps, body: Evaluate) -> Evaluate:
    def run(frame: Frame) -> object:
        return sum(_holds(body, frame) for _ in steps(frame)) == 1

    return run


def _collected(steps: _Steps, body: Evaluate, condition: Evaluate | None) -> Evaluate:
    if condition is None:
        return lambda frame: [body(frame) for _ in steps(frame)]
    return lambda frame: [body(frame) for _ in steps(frame) if _holds(condition, frame)]


def _mapped(steps: _Steps, body: Evaluate, condition: Evaluate | None, key: int) -> Evaluate:
    def run(frame: Frame) -> object:
        found: dict[object, object] = {}
        for _ in steps(frame):
            if condition is None or _holds(condition, frame):
                found[frame[key]] = body(frame)
        return found

    return run


def _merged(steps: _Steps, body: Evaluate, condition: Evaluate | None) -> Evaluate:
    def run(frame: Frame) -> object:
        found: dict[object, object] = {}
        for _ in steps(frame):
            if condition is not None and not _holds(condition, frame):
                continue
            entries = body(frame)
            keys = keys_of(entries)
            if keys is None:
                raise NoSuchOverload(f"cel.@mapInsert(map, {type_name(entries)})")
            for key in keys:
                if key in found:
                    raise EvaluationError(f"insert failed: key {key} already exists")
                pair = found_in(entries, key)
                found[key] = pair[1] if pair else None
        return found

    return run
