"""One document and its schema, on which single rules are tried. The results in these tests are those of cel-go."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.cel import compile_rules

_SPEC: JSONObject = {
    "text": {"type": "string", "maxLength": 20},
    "number": {"type": "integer"},
    "double": {"type": "number"},
    "flag": {"type": "boolean"},
    "either": {"x-kubernetes-int-or-string": True},
    "names": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}},
    "counts": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
    "part": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}},
    "parts": {
        "type": "array",
        "maxItems": 10,
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}},
    },
    "unknown": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "time": {"type": "string", "format": "date-time"},
    "period": {"type": "string", "format": "duration"},
}
_VALUE: JSONObject = {
    "text": "abc",
    "number": 3,
    "double": 1.5,
    "flag": True,
    "either": "5%",
    "names": ["p", "q"],
    "counts": {"k": 1},
    "part": {"name": "s"},
    "parts": [{"name": "1", "size": 2}],
    "unknown": {"z": 1},
    "time": "2024-01-02T03:04:05Z",
    "period": "1h",
}


@pytest.fixture
def spec_schema() -> JSONObject:
    """The schema of the document, without rules."""
    return {"type": "object", "properties": _SPEC}


@pytest.fixture
def outcome() -> Callable[[str], str]:
    """The errors of a rule on the document: none when it holds."""

    def of(rule: str) -> str:
        spec: JSONObject = {"type": "object", "properties": _SPEC, "x-kubernetes-validations": [{"rule": rule}]}
        rules = compile_rules({"type": "object", "properties": {"spec": spec}})
        assert rules is not None
        return "; ".join(error.detail for error in rules.validate({"spec": _VALUE}))

    return of
