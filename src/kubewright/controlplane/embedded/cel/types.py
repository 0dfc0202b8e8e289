"""The types of CEL, and when one may stand for another.

Type parameters (`A` in `list(A)`) are solved as cel-go solves them: a `Substitution` collects what each stands for, and
an attempt that fails leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "dyn", "error", "null", "bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration",
    "list", "map", "struct", "opaque", "type", "parameter",
]  # fmt: skip

_SCALARS = frozenset(
    ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "struct", "null", "dyn")
)
_RUNTIME_NAMES: dict[Kind, str] = {
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "null": "null_type",
}
_NULLABLE = frozenset(("opaque", "struct", "timestamp", "duration"))


@dataclass(frozen=True, slots=True)
class CelType:
    """One type. Two are the same when kind, name and parameters are; `fields` of a struct follow from its name."""

    kind: Kind
    name: str
    parameters: tuple[CelType, ...] = ()
    fields: Mapping[str, CelType] | None = field(default=None, compare=False, repr=False)

    @property
    def runtime_name(self) -> str:
        """What `type(x)` is called for a value of this type."""
        return _RUNTIME_NAMES.get(self.kind, self.name)

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


DYN = CelType("dyn", "dyn")
ERROR = CelType("error", "!error!")
NULL = CelType("null", "null")
BOOL = CelType("bool", "bool")
INT = CelType("int", "int")
UINT = CelType("uint", "uint")
DOUBLE = CelType("double", "double")
STRING = CelType("string", "string")
BYTES = CelType("bytes", "bytes")
TIMESTAMP = CelType("timestamp", "timestamp")
DURATION = CelType("duration", "duration")
TYPE = CelType("type", "type")


def list_of(item: CelType) -> CelType:
    """`list(item)`."""
    return CelType("list", "list", (item,))


def map_of(key: CelType, value: CelType) -> CelType:
    """`map(key, value)`."""
    return CelType("map", "map", (key, value))


def optional_of(value: CelType) -> CelType:
    """`optional_type(value)`."""
    return CelType("opaque", "optional_type", (value,))


def type_of_type(value: CelType) -> CelType:
    """`type(value)`, the type of a type's name."""
    return CelType("type", "type", (value,))


def parameter(name: str) -> CelType:
    """A type that is still to be found."""
    return CelType("parameter", name)


def opaque(name: str) -> CelType:
    """A type without fields, such as `net.IP`."""
    return CelType("opaque", name)


def is_dynamic(type_: CelType) -> bool:
    """Whether anything fits: nothing is known, or a fault was reported already."""
    return type_.kind in ("dyn", "error")


def unwrapped_optional(type_: CelType) -> tuple[CelType, bool]:
    """The type within an optional and whether it was one."""
    if type_.kind == "opaque" and type_.name == "optional_type":
        return type_.parameters[0], True
    return type_, False


def signature(arguments: Sequence[CelType], *, member: bool) -> str:
    """How messages show the types of a call: `string.(int)`, `(int, int)`."""
    target = f"{arguments[0]}." if member else ""
    return f"{target}({', '.join(map(str, arguments[1:] if member else arguments))})"


class Substitution:
    """What type parameters stand for."""

    def __init__(self) -> None:
        self._known: dict[CelType, CelType] = {}
        self._fresh = 0

    def new_parameter(self) -> CelType:
        """A parameter that nothing is known of."""
        self._fresh += 1
        return parameter(f"_var{self._fresh - 1}")

    def instantiated(self, types: Sequence[CelType], names: Sequence[str]) -> list[CelType]:
        """`types` with the named parameters replaced by new ones."""
        if not names:
            return list(types)
        fresh = {name: self.new_parameter() for name in names}
        return [_renamed(type_, fresh) for type_ in types]

    def assign(self, pairs: Sequence[tuple[CelType, CelType]]) -> bool:
        """Whether every first may stand where its second is; what is learned by that is kept only when all may."""
        before = dict(self._known)
        if all(self._assignable(first, second) for first, second in pairs):
            return True
        self._known = before
        return False

    def solved(self, type_: CelType, *, parameters_to_dyn: bool = False) -> CelType:
        """`type_` with all that is known filled in."""
        known = self._known.get(type_)
        if known is not None:
            return self.solved(known, parameters_to_dyn=parameters_to_dyn)
        if type_.kind == "parameter":
            return DYN if parameters_to_dyn else type_
        if not type_.parameters:
            return type_
        parts = tuple(self.solved(part, parameters_to_dyn=parameters_to_dyn) for part in type_.parameters)
        return CelType(type_.kind, type_.name, parts)

    def _assignable(self, first: CelType, second: CelType) -> bool:
        if second.kind == "parameter":
            valid, known = self._substitutable(first, second)
            if valid or known:
                return valid
        if first.kind == "parameter":
            return self._substitutable(second, first)[0]
        if is_dynamic(first) or is_dynamic(second):
            return True
        if first.kind == "null" or second.kind == "null":
            other = second if first.kind == "null" else first
            return other.kind == "null" or other.kind in _NULLABLE
        if first.kind == "type":
            return second.kind == "type"
        if first.kind in _SCALARS:
            return first == second
        return (
            first.kind == second.kind
            and first.name == second.name
            and len(first.parameters) == len(second.parameters)
            and all(map(self._assignable, first.parameters, second.parameters))
        )

    def _substitutable(self, type_: CelType, wanted: CelType) -> tuple[bool, bool]:
        """Whether the parameter `wanted` may be `type_`, and whether it was known before."""
        if type_ == wanted:
            return True, True
        known = self._known.get(wanted)
        if known is not None:
            if type_ == known:
                return True, True
            if self._assignable(type_, known):
                general = most_general(type_, known)
                if not self._refers(wanted, general):
                    self._known[wanted] = general
                return True, True
            return False, True
        if not self._refers(wanted, type_):
            self._known[wanted] = type_
            return True, False
        return False, False

    def _refers(self, wanted: CelType, within: CelType) -> bool:
        if wanted == within:
            return True
        if within.kind == "parameter":
            known = self._known.get(within)
            return known is not None and self._refers(wanted, known)
        return any(self._refers(wanted, part) for part in within.parameters)


def most_general(first: CelType, second: CelType) -> CelType:
    """The more general of two types."""
    return first if _says_no_more(first, second) else second


def _says_no_more(first: CelType, second: CelType) -> bool:
    if first.kind in ("dyn", "parameter"):
        return True
    if second.kind in ("dyn", "parameter") or first.kind != second.kind:
        return False
    if first.kind == "type":
        return True
    if first.kind in ("list", "map", "opaque"):
        return (
            first.name == second.name
            and len(first.parameters) == len(second.parameters)
            and all(map(_says_no_more, first.parameters, second.parameters))
        )
    return first == second


def _renamed(type_: CelType, names: Mapping[str, CelType]) -> CelType:
    if type_.kind == "parameter":
        return names.get(type_.name, type_)
    if not type_.parameters:
        return type_
    return CelType(type_.kind, type_.name, tuple(_renamed(part, names) for part in type_.parameters))


def parameter_names(types: Sequence[CelType]) -> tuple[str, ...]:
    """The names of all parameters within types, each once."""
    found: dict[str, None] = {}
    for type_ in types:
        if type_.kind == "parameter":
            found[type_.name] = None
        found.update(dict.fromkeys(parameter_names(type_.parameters)))
    return tuple(found)
