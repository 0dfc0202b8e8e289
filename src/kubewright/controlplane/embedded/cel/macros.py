"""Calls that are no calls: `has(a.b)`, `list.all(x, ...)` and their like get nodes of their own."""

from __future__ import annotations

from typing import Final

from kubewright.controlplane.embedded.cel.syntax import (
    Comprehension,
    FunctionCall,
    Ident,
    ListLiteral,
    Macro,
    Node,
    OptionalMap,
    Select,
    SortBy,
)

_QUANTIFIERS: Final[dict[str, Macro]] = {
    "all": "all",
    "exists": "exists",
    "exists_one": "exists_one",
    "existsOne": "exists_one",
}
_TRANSFORMS: Final[dict[str, Macro]] = {
    "transformList": "transformList",
    "transformMap": "transformMap",
    "transformMapEntry": "transformMapEntry",
}
_ACCUMULATORS: Final = ("@result", "__result__")


class MacroError(Exception):
    """A macro whose arguments are not what it needs."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def expanded(name: str, target: Node | None, arguments: list[Node], at: int) -> Node | None:
    """The node of a macro; None when this is an ordinary call."""
    if target is None:
        return _presence(arguments[0], at) if name == "has" and len(arguments) == 1 else None
    match name, len(arguments):
        case (("all" | "exists" | "exists_one" | "existsOne"), 2):
            variables = (_variable(arguments[0], "argument must be a simple name"),)
            return Comprehension(_QUANTIFIERS[name], target, variables, arguments[1], at=at)
        case (("all" | "exists" | "exists_one" | "existsOne"), 3):
            return Comprehension(_QUANTIFIERS[name], target, _two_variables(arguments), arguments[2], at=at)
        case (("map" | "filter"), 2):
            variables = (_variable(arguments[0], "argument is not an identifier"),)
            if name == "map":
                return Comprehension("map", target, variables, arguments[1], at=at)
            kept = Ident(variables[0], at=arguments[0].at)
            return Comprehension("filter", target, variables, kept, arguments[1], at=at)
        case "map", 3:
            variables = (_variable(arguments[0], "argument is not an identifier"),)
            return Comprehension("map", target, variables, arguments[2], arguments[1], at=at)
        case (("transformList" | "transformMap" | "transformMapEntry"), 3 | 4):
            condition = arguments[2] if len(arguments) == 4 else None
            return Comprehension(_TRANSFORMS[name], target, _two_variables(arguments), arguments[-1], condition, at=at)
        case (("optMap" | "optFlatMap"), 2):
            variable = arguments[0]
            if not isinstance(variable, Ident):
                raise MacroError(variable.at, f"{name}() variable name must be a simple identifier")
            return OptionalMap(target, variable.name, arguments[1], name == "optFlatMap", at=at)
        case "sortBy", 2:
            if not isinstance(
                target, ListLiteral | Select | Ident | Comprehension | FunctionCall | OptionalMap | SortBy
            ):
                allowed = "a list, identifier, comprehension, call or select expression"
                raise MacroError(target.at, f"sortBy can only be applied to {allowed}")
            return SortBy(target, _variable(arguments[0], "argument is not an identifier"), arguments[1], at=at)
        case _:
            return None


def _presence(argument: Node, at: int) -> Node:
    if isinstance(argument, Select) and not argument.optional:
        return Select(argument.operand, argument.field, test=True, at=at)
    raise MacroError(argument.at, "invalid argument to has() macro")


def _variable(node: Node, complaint: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.at, complaint)
    if node.name in _ACCUMULATORS:
        raise MacroError(node.at, "iteration variable overwrites accumulator variable")
    return node.name


def _two_variables(arguments: list[Node]) -> tuple[str, str]:
    first = _variable(arguments[0], "argument must be a simple name")
    second = _variable(arguments[1], "argument must be a simple name")
    if first == second:
        raise MacroError(arguments[1].at, f"duplicate variable name: {first}")
    return first, second
