"""What expressions cost when they run. The limits at which they are stopped are compared with cel-go in conformance."""

from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.cel import compile_rules
from kubewright.controlplane.embedded.cel.cost import metering, spending
from kubewright.controlplane.embedded.cel.cost.metering import CostExceeded, Meter
from kubewright.controlplane.embedded.cel.expressions import checked
from kubewright.controlplane.embedded.cel.types import INT, STRING, list_of


@pytest.mark.parametrize(
    ("source", "cost"),
    [
        ("1 == 1", 1),
        ("self.all(x, x >= 0)", 1 + 3 * (3 + 2) + 1),
        ("self.exists(x, x < 0)", 1 + 3 * (4 + 2) + 1),
        ("self.exists(x, x > 0)", 1 + 1 * (4 + 2) + 1),
        ("size(self) == 3 || self.all(x, x > 0)", 1 + 1 + 1),
        ("self[0] in [1, 2]", 1 + 1),
        ("true ? true : self.all(x, x > 0)", 0),
    ],
)
def test_an_expression_is_charged_for_what_it_evaluated(source: str, cost: int) -> None:
    meter = Meter()
    program = checked(source, {"self": list_of(INT)}).metered(meter)

    program.run([1, 2, 3])

    assert meter.spent == cost


def test_texts_cost_by_their_length() -> None:
    meter = Meter()
    program = checked("self.contains('ab') || self == self", {"self": STRING}).metered(meter)

    program.run("x" * 95)

    assert meter.spent == (1 + 10 * 1) + (2 + 10)


def test_an_expression_that_costs_too_much_is_stopped_even_where_errors_are_absorbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metering, "CALL_LIMIT", 1000)
    meter = Meter()
    program = checked("self.all(x, self.all(y, x == y)) || true", {"self": list_of(INT)}).metered(meter)

    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        program.run([1] * 100)

    assert 1000 < meter.spent <= 1010


def test_all_rules_together_have_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending, "_BUDGET", 10_000)
    rule: JSONObject = {"rule": "self.all(x, self.all(y, x <= y))"}
    numbers: JSONObject = {"type": "array", "maxItems": 400, "items": {"type": "integer"}}
    part: JSONObject = {**numbers, "x-kubernetes-validations": [rule]}
    rules = compile_rules({"type": "object", "properties": {"parts": {"type": "array", "maxItems": 20, "items": part}}})
    assert rules is not None
    dear: JSONValue = [1] * 18

    assert rules.validate({"parts": [dear] * 4}) == []
    errors = rules.validate({"parts": [dear] * 20})

    assert [(error.field, error.detail) for error in errors] == [
        (
            "parts[4]",
            "validation failed due to running out of cost budget, no further validation rules will be run",
        )
    ]
