"""`matchConditions`: expressions that must all hold for a policy or a webhook to be applied to a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.cel.admission import (
    MATCH_BUDGET,
    Compiled,
    EvaluationFailure,
    Evaluator,
    ExpressionScope,
    Inputs,
    OutOfBudget,
    compiled,
)
from kubewright.controlplane.embedded.cel.types import BOOL


class ConditionError(Exception):
    """It cannot be decided whether a request matches."""


class MatchConditions:
    """The compiled conditions of one policy or webhook."""

    def __init__(
        self, conditions: Sequence[JSONValue], scope: ExpressionScope, variables: Mapping[str, Compiled]
    ) -> None:
        self._expressions = [compiled(text(condition, "expression"), scope, (BOOL,)) for condition in conditions]
        self._variables = variables

    def hold(self, inputs: Inputs) -> bool:
        """Whether all hold. One that does not decides, whatever is wrong with the others; else ConditionError."""
        if not self._expressions:
            return True
        evaluator = Evaluator(inputs._replace(namespace_object=None), self._variables, MATCH_BUDGET)
        try:
            results = [evaluator.evaluate(expression) for expression in self._expressions]
        except OutOfBudget as error:
            raise ConditionError(str(error)) from None
        if any(result is False for result in results):
            return False
        failures = [result.message for result in results if isinstance(result, EvaluationFailure)]
        if failures:
            raise ConditionError(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
        return True
