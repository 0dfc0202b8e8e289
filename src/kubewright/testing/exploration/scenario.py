"""What is explored: the operator, what its users do, and what has to hold."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from kubewright.api.resources import Object
from kubewright.controlplane.definitions import DefinitionSource
from kubewright.manager import Manager
from kubewright.manager.setup import SetupResult
from kubewright.testing.exploration.faults import FaultKind

if TYPE_CHECKING:
    from kubewright.testing.exploration.world import World

W = TypeVar("W")


@dataclass(frozen=True, kw_only=True)
class Scenario(Generic[W]):
    """The arguments of `explore`."""

    setup: Callable[..., SetupResult]
    outside: Callable[[], W] | None
    kinds: Sequence[DefinitionSource]
    given: Sequence[Object]
    others: Callable[[Manager], SetupResult] | None
    when: Callable[[World[W]], Awaitable[object]]
    until: Callable[[World[W]], Awaitable[object]]
    always: Callable[[World[W]], object] | None
    compare: Callable[[World[W]], object] | None
    ignore: Mapping[type[Object], Collection[str]]
    events: int | None
    faults: Sequence[FaultKind]
    seeds: int
    patience: float
    manager: Callable[..., Manager]
