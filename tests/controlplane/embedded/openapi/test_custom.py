from __future__ import annotations

import copy

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping
from kubewright.controlplane.embedded.openapi.custom import custom_schemas, published
from kubewright.controlplane.embedded.registry.resources import ResourceType

METADATA = {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]}
CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"


def without_descriptions(properties: JSONObject) -> JSONObject:
    """The fields of a schema; those that every kind has must be described."""
    found: JSONObject = {}
    for name, schema in properties.items():
        description = mapping(schema).get("description")
        assert (CONVENTIONS in str(description)) == (name in ("apiVersion", "kind", "metadata")), name
        found[name] = {key: value for key, value in mapping(schema).items() if key != "description"}
    return found


def widgets(schema: JSONObject | None) -> ResourceType:
    return ResourceType(
        gvk=GroupVersionKind("zoo.example.com", "v1", "Widget"),
        plural="widgets",
        singular="widget",
        namespaced=True,
        list_kind="Widgets",
        custom=True,
        schema=schema,
    )


def test_a_custom_resource_is_published_with_what_every_object_has() -> None:
    schema: JSONObject = {
        "type": "object",
        "description": "A thing.",
        "required": ["spec"],
        "properties": {"spec": {"type": "object"}, "metadata": {"type": "object"}},
    }
    before = copy.deepcopy(schema)
    made = custom_schemas(widgets(schema))["com.example.zoo.v1.Widget"]
    assert {**made, "properties": without_descriptions(mapping(made, "properties"))} == {
        "type": "object",
        "description": "A thing.",
        "required": ["spec"],
        "properties": {
            "spec": {"type": "object"},
            "metadata": METADATA,
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
        },
        "x-kubernetes-group-version-kind": [{"group": "zoo.example.com", "kind": "Widget", "version": "v1"}],
    }
    assert schema == before


def test_a_list_refers_to_its_items() -> None:
    listed = custom_schemas(widgets(None))["com.example.zoo.v1.Widgets"]
    items = mapping(listed, "properties", "items")
    assert items == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/com.example.zoo.v1.Widget"},
        "description": f"List of widgets. More info: {CONVENTIONS}",
    }
    assert listed["required"] == ["items"]


def test_an_integer_or_a_string_is_one_of_both() -> None:
    schema: JSONObject = {"type": "array", "items": {"x-kubernetes-int-or-string": True}}
    assert mapping(published(schema), "items") == {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }


def test_an_embedded_resource_has_what_every_object_has() -> None:
    embedded: JSONObject = {"type": "object", "x-kubernetes-embedded-resource": True, "required": ["kind", "spec"]}
    found = mapping(published({"properties": {"inner": embedded}}), "properties", "inner")
    assert found["required"] == ["kind", "spec", "apiVersion"]
    assert without_descriptions(mapping(found, "properties")) == {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": METADATA,
    }


def test_fields_called_like_keywords_are_fields() -> None:
    schema: JSONObject = {
        "properties": {"items": {"type": "string"}, "properties": {"type": "object"}, "not": {"type": "string"}}
    }
    assert published(schema) == schema
