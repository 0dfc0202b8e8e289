from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping
from kubewright.controlplane.embedded.openapi.version2 import document_v2


def definition(schema: JSONObject) -> JSONObject:
    found = document_v2([{"paths": {}, "components": {"schemas": {"It": schema}}}])
    return mapping(found, "definitions", "It")


def test_references_are_not_wrapped() -> None:
    wrapped: JSONObject = {
        "default": {},
        "allOf": [{"$ref": "#/components/schemas/Part"}],
        "x-kubernetes-patch-strategy": "retainKeys",
    }
    listed: JSONObject = {"type": "array", "items": {"$ref": "#/components/schemas/Part"}}
    found = definition({"type": "object", "properties": {"one": wrapped, "many": listed}})
    assert found["properties"] == {
        "one": {"$ref": "#/definitions/Part", "x-kubernetes-patch-strategy": "retainKeys"},
        "many": {"type": "array", "items": {"$ref": "#/definitions/Part"}},
    }


def test_keywords_unknown_to_version_2_are_left_out() -> None:
    schema: JSONObject = {
        "type": "string",
        "default": "x",
        "anyOf": [{"minLength": 1}],
        "maxLength": 5,
    }
    assert definition(schema) == {"type": "string", "maxLength": 5}


def test_fields_called_like_what_is_left_out_stay() -> None:
    properties: JSONObject = {"default": {"type": "string"}, "not": {"type": "string"}}
    assert definition({"type": "object", "properties": properties})["properties"] == properties


def test_one_of_two_types_is_a_string() -> None:
    either: JSONObject = {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
    assert definition(either) == {"type": "string", "format": "int-or-string"}
    assert definition({"oneOf": [{"type": "string"}, {"type": "number"}]}) == {"type": "string"}


def test_what_may_be_null_has_no_type_and_need_not_be_there() -> None:
    null: JSONObject = {"type": "array", "items": {"type": "string"}, "nullable": True, "maxItems": 3}
    properties: JSONObject = {"a": null, "b": {"type": "string"}}
    found = definition({"type": "object", "required": ["a", "b"], "properties": properties})
    assert found["properties"] == {"a": {"maxItems": 3}, "b": {"type": "string"}}
    assert found["required"] == ["b"]


def test_where_unknown_fields_are_kept_nothing_is_reported() -> None:
    open_: JSONObject = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert definition(open_) == {"x-kubernetes-preserve-unknown-fields": True}
    kinds: JSONObject = {"x-kubernetes-group-version-kind": [{"group": "", "kind": "It", "version": "v1"}]}
    assert definition({**open_, **kinds}) == {"type": "object", **kinds}


def test_kinds_of_a_shared_structure_are_gathered() -> None:
    def document(*groups: str) -> JSONObject:
        shared: JSONObject = {"x-kubernetes-group-version-kind": [{"group": group} for group in groups]}
        return {"paths": {}, "components": {"schemas": {"Options": shared}}}

    found = document_v2([document("", "a"), document("", "b")])
    kinds = mapping(found, "definitions", "Options")["x-kubernetes-group-version-kind"]
    assert kinds == [{"group": ""}, {"group": "a"}, {"group": "b"}]


def test_bodies_become_parameters() -> None:
    schema: JSONObject = {"schema": {"$ref": "#/components/schemas/It"}}
    operation: JSONObject = {
        "operationId": "createIt",
        "parameters": [{"name": "dryRun", "in": "query", "schema": {"type": "string", "uniqueItems": True}}],
        "requestBody": {"content": {"*/*": schema}, "required": True},
        "responses": {"200": {"description": "OK", "content": {"application/json": schema}}},
    }
    document: JSONObject = {"paths": {"/its": {"post": operation}}, "components": {"schemas": {}}}
    assert mapping(document_v2([document]), "paths", "/its", "post") == {
        "consumes": ["*/*"],
        "produces": ["application/json", "application/yaml"],
        "schemes": ["https"],
        "operationId": "createIt",
        "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/It"}}},
        "parameters": [
            {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/It"}},
            {"type": "string", "uniqueItems": True, "name": "dryRun", "in": "query"},
        ],
    }
