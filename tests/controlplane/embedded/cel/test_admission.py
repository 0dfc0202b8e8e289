"""The budget of expressions of admission. What they result in is compared with a real server."""

from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.cel.admission import (
    EvaluationFailure,
    Evaluator,
    ExpressionScope,
    Inputs,
    OutOfBudget,
    Variables,
    compiled,
)
from kubewright.controlplane.embedded.cel.types import BOOL

INPUTS = Inputs({"data": {"a": "b"}}, None, None, {})
SCOPE = ExpressionScope(params=False)


def test_expressions_are_charged_to_one_budget_until_nothing_is_left() -> None:
    expression = compiled("lists.range(9).all(n, n >= 0)", SCOPE, (BOOL,))
    first = Evaluator(INPUTS, {}, 1_000)
    assert first.evaluate(expression) is True
    cost = 1_000 - first.left

    twice = Evaluator(INPUTS, {}, 2 * cost)
    assert [twice.evaluate(expression), twice.evaluate(expression), twice.left] == [True, True, 0]
    with pytest.raises(OutOfBudget):
        twice.evaluate(expression)


def test_a_variable_is_charged_when_it_is_first_read_and_only_then() -> None:
    variables = Variables()
    variables.add("large", "lists.range(99).map(n, n * 2)", SCOPE)
    expression = compiled("variables.large.size() == 99", SCOPE._replace(variables=variables.types), (BOOL,))
    evaluator = Evaluator(INPUTS, variables.expressions, 10_000)

    assert evaluator.evaluate(expression) is True
    left = evaluator.left
    assert evaluator.evaluate(expression) is True

    assert left < 9_000
    assert left - evaluator.left < 20


def test_an_expression_beyond_the_limit_of_one_run_fails_alone() -> None:
    expensive = compiled("lists.range(999999).all(n, lists.range(999999).size() > 0)", SCOPE, (BOOL,))
    evaluator = Evaluator(INPUTS, {}, 10_000_000)

    result = evaluator.evaluate(expensive)

    assert isinstance(result, EvaluationFailure)
    assert result.message.endswith("resulted in error: operation cancelled: actual cost limit exceeded")
    assert evaluator.evaluate(compiled("true", SCOPE, (BOOL,))) is True
