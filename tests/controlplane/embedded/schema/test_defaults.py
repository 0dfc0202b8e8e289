from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.schema.defaults import Defaulter

SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "port": {"type": "integer", "default": 80},
        "plain": {"type": "string"},
        "nullable": {"type": "string", "nullable": True, "default": "x"},
        "nested": {
            "type": "object",
            "default": {"a": 1},
            "properties": {"a": {"type": "integer", "default": 7}, "b": {"type": "string", "default": "why"}},
        },
        "optional": {"type": "object", "properties": {"a": {"type": "integer", "default": 7}}},
        "list": {
            "type": "array",
            "items": {
                "type": "object",
                "default": {"n": 1},
                "properties": {"n": {"type": "integer"}, "p": {"type": "string", "default": "TCP"}},
            },
        },
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"q": {"default": True}}}},
    },
}
FILLED: JSONObject = {"port": 80, "nullable": "x", "nested": {"a": 1, "b": "why"}}


CASES: list[tuple[JSONObject, JSONObject]] = [
    ({}, {}),
    ({"port": 1, "nested": {}}, {"port": 1, "nested": {"a": 7, "b": "why"}}),
    ({"optional": {}}, {"optional": {"a": 7}}),
    ({"port": None, "plain": None, "nullable": None}, {"nullable": None}),
    ({"list": [{}, {"p": "UDP"}, None]}, {"list": [{"p": "TCP"}, {"p": "UDP"}, {"n": 1, "p": "TCP"}]}),
    ({"map": {"a": {}, "b": None}}, {"map": {"a": {"q": True}}}),
    ({"unknown": None}, {"unknown": None}),
    ({"nested": "not an object"}, {"nested": "not an object"}),
]


@pytest.mark.parametrize(("given", "changed"), CASES)
def test_defaults_fill_absent_fields_and_replace_nulls(given: JSONObject, changed: JSONObject) -> None:
    defaulter = Defaulter(SCHEMA)
    expected = {**FILLED, **changed}

    defaulter.apply(given)

    assert given == expected
    defaulter.apply(given)
    assert given == expected


def test_objects_do_not_share_their_defaults() -> None:
    defaulter = Defaulter(SCHEMA)
    first: JSONObject = {}
    second: JSONObject = {}
    defaulter.apply(first)
    nested = first["nested"]
    assert isinstance(nested, dict)
    nested["a"] = "changed"

    defaulter.apply(second)

    assert second == FILLED
