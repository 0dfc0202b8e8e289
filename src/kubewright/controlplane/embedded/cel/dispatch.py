"""Calls of functions: selects the overload at run time, by the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubewright.controlplane.embedded.cel.comprehensions import Evaluate, Frame
from kubewright.controlplane.embedded.cel.library.overload import Overload
from kubewright.controlplane.embedded.cel.types import CelType
from kubewright.controlplane.embedded.cel.values import (
    Duration,
    NoSuchOverload,
    Timestamp,
    elements_of,
    keys_of,
    type_name,
)

_PYTHON_TYPES: Final[dict[str, type]] = {"string": str, "int": int, "bool": bool, "double": float, "bytes": bytes}


def function_call(name: str, overloads: Sequence[Overload], parts: Sequence[Evaluate]) -> Evaluate:
    """A call: directly when the types of the arguments are the plain ones expected, by their overload otherwise."""

    def dispatched(values: Sequence[object]) -> object:
        for overload in overloads:
            if all(map(_fits, overload.parameters, values)) or _is_lenient(overload, values):
                return overload.call(*values)
        if name == "size":
            raise NoSuchOverload("" if isinstance(values[0], Timestamp | Duration) else "size")
        if not overloads[0].guarded:
            raise NoSuchOverload
        raise NoSuchOverload(f"{name}({', '.join(map(type_name, values))})")

    expected = [_PYTHON_TYPES.get(parameter.kind) for parameter in overloads[0].parameters]
    if len(overloads) != 1 or None in expected or len(parts) not in (1, 2):
        return lambda frame: dispatched([part(frame) for part in parts])
    call, first = overloads[0].call, parts[0]
    if len(parts) == 1:

        def run(frame: Frame) -> object:
            value = first(frame)
            return call(value) if type(value) is expected[0] else dispatched([value])

        return run
    second = parts[1]

    def run_two(frame: Frame) -> object:
        left, right = first(frame), second(frame)
        if type(left) is expected[0] and type(right) is expected[1]:
            return call(left, right)
        return dispatched([left, right])

    return run_two


def _is_lenient(overload: Overload, values: Sequence[object]) -> bool:
    # An unguarded function of a list takes any list, whatever is in it.
    return (
        not overload.guarded
        and overload.parameters[0].kind == "list"
        and len(values) == len(overload.parameters)
        and elements_of(values[0]) is not None
    )


def _fits(type_: CelType, value: object) -> bool:
    """Whether an argument may be passed: as in cel-go, the first element decides for a whole list or map."""
    if type_.kind in ("dyn", "parameter"):
        return True
    if type_.kind == "list":
        elements = elements_of(value)
        return elements is not None and (not elements or _fits(type_.parameters[0], elements[0]))
    if type_.kind == "map":
        return keys_of(value) is not None
    return type_name(value) == type_.runtime_name
