from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.schema.emptied import emptied_objects

TEXTS: JSONObject = {"type": "object", "additionalProperties": {"type": "string"}}
SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "texts": TEXTS,
                "nullable": {**TEXTS, "nullable": True},
                "filled": {**TEXTS, "default": {"a": "1"}},
                "by": {"type": "object", "additionalProperties": TEXTS},
                "list": {"type": "array", "items": {"type": "string"}},
            },
        }
    },
}


@pytest.mark.parametrize(
    ("applied", "result", "expected"),
    [
        ({"texts": {}}, {"texts": None}, ["spec.texts"]),
        ({"by": {"x": {}}}, {"by": {"x": None}}, ["spec.by.x"]),
        ({"texts": {}}, {"texts": {}}, []),
        ({}, {"texts": None}, []),
        ({"texts": None}, {"texts": None}, []),
        ({"nullable": {}, "filled": {}}, {"nullable": None, "filled": None}, []),
        ({"list": []}, {"list": None}, []),
    ],
)
def test_an_object_that_lost_its_last_field_by_an_apply_is_null(
    applied: JSONObject, result: JSONObject, expected: list[str]
) -> None:
    errors = emptied_objects({"metadata": {"labels": {}}, "spec": applied}, {"spec": result}, SCHEMA)

    assert [str(error) for error in errors] == [
        f'{where}: Invalid value: "null": {where} in body must be of type object: "null"' for where in expected
    ]
