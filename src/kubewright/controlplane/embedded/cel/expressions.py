"""From the text of an expression to a program: parse, check, compile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kubewright.controlplane.embedded.cel.checker import Checker
from kubewright.controlplane.embedded.cel.cost.metering import Meter
from kubewright.controlplane.embedded.cel.environment import RULES, Environment
from kubewright.controlplane.embedded.cel.literals import literal_issues
from kubewright.controlplane.embedded.cel.parser import parsed
from kubewright.controlplane.embedded.cel.program import Program
from kubewright.controlplane.embedded.cel.source import NOWHERE, ExpressionError, Issue
from kubewright.controlplane.embedded.cel.syntax import FunctionCall, Node, Select, children
from kubewright.controlplane.embedded.cel.types import CelType

_DEEPEST: Final = 250


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that makes sense: its tree and the type of its result."""

    tree: Node
    type: CelType
    variables: tuple[str, ...]

    def program(self) -> Program:
        """The expression ready to run; InstantiationError when a constant in it can never be converted."""
        return Program(self.tree, self.variables)

    def metered(self, meter: Meter) -> Program:
        """The expression ready to run, at the charge of a meter."""
        return Program(self.tree, self.variables, meter)


def checked(text: str, variables: Mapping[str, CelType], environment: Environment = RULES) -> Expression:
    """The expression that a text stands for; ExpressionError with all that is wrong with it."""
    tree = parsed(text)
    checker = Checker(variables, environment)
    try:
        type_ = checker.run(tree) if _depth(tree) <= _DEEPEST else None
        issues = checker.issues or literal_issues(tree)
    except RecursionError:
        type_, issues = None, []
    if type_ is None:
        issues = [Issue(NOWHERE, "max recursion depth exceeded")]
    if type_ is None or issues:
        raise ExpressionError(text, issues)
    return Expression(tree, type_, tuple(variables))


def _depth(tree: Node) -> int:
    """How deeply calls and selections are nested, found without recursion."""
    deepest = 0
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        depth += isinstance(node, FunctionCall | Select)
        deepest = max(deepest, depth)
        waiting += [(child, depth) for child in children(node)]
    return deepest
