"""How functions are declared: what they take, what they give and what they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kubewright.controlplane.embedded.cel.types import CelType, parameter_names

Implementation: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function; for a `member` the first parameter is what it is called on."""

    name: str
    parameters: tuple[CelType, ...]
    result: CelType
    call: Implementation
    member: bool = False
    guarded: bool = True
    """Messages about arguments of the wrong type name the function and the types."""
    type_names: tuple[str, ...] = ()


def function(name: str, parameters: Sequence[CelType], result: CelType, call: Implementation) -> Overload:
    """`name(...)`."""
    return Overload(name, tuple(parameters), result, call, type_names=parameter_names([*parameters, result]))


def method(
    name: str, parameters: Sequence[CelType], result: CelType, call: Implementation, *, guarded: bool = True
) -> Overload:
    """`first.name(...)`."""
    names = parameter_names([*parameters, result])
    return Overload(name, tuple(parameters), result, call, True, guarded, names)
