from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.definition import validate_definition
from kubewright.controlplane.embedded.schema.defaults import Defaulter
from kubewright.controlplane.embedded.schema.depth import MAX_SCHEMA_DEPTH, TooDeep, check_depth
from kubewright.controlplane.embedded.schema.prune import Pruner
from kubewright.controlplane.embedded.schema.validation import Validator


def nested(levels: int) -> JSONObject:
    schema: JSONObject = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def test_a_schema_of_ten_thousand_levels_is_refused_without_recursion() -> None:
    for reads in (check_depth, Pruner, Defaulter, Validator):
        with pytest.raises(TooDeep, match=f"deeper than {MAX_SCHEMA_DEPTH} levels"):
            reads(nested(10_000))


def test_the_deepest_schema_can_be_used() -> None:
    schema = nested(MAX_SCHEMA_DEPTH - 1)
    value: JSONObject = {"x": {}}
    for _ in range(MAX_SCHEMA_DEPTH - 3):
        value = {"x": value}

    assert Validator(schema).validate(value) == []
    assert Pruner(schema).prune(value) == []
    Defaulter(schema).apply(value)


def test_a_definition_with_too_deep_a_schema_gets_an_error_of_its_own() -> None:
    version: JSONObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": nested(10_000)},
    }

    errors = validate_definition({"spec": {"versions": [version]}})

    assert 'spec.validation.openAPIV3Schema: Invalid value: "": must not nest deeper than 100 levels' in map(
        str, errors
    )
