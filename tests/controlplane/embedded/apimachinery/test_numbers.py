from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.numbers import settle_numbers


@pytest.mark.parametrize(
    ("number", "settled"),
    [
        (1.0, 1),
        (-0.0, 0),
        (-(2.0**63), -(2**63)),
        (2.0**63, 2.0**63),
        (2**63, 2.0**63),
        (2**63 - 1, 2**63 - 1),
        (0.5, 0.5),
        (1e21, 1e21),
        (True, True),
    ],
)
def test_a_number_is_settled_wherever_it_is(number: float, settled: float) -> None:
    value: JSONValue = {"a": number, "b": [number, {"c": [[number]]}, "x", None], "d": {}}
    settle_numbers(value)
    assert repr(value) == repr({"a": settled, "b": [settled, {"c": [[settled]]}, "x", None], "d": {}})
