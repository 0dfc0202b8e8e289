from __future__ import annotations

import pytest

from kubewright.api.core.v1 import Service
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.structure import SchemaStructure, structure_of
from kubewright.controlplane.embedded.managedfields.checking import complaint
from kubewright.controlplane.embedded.managedfields.shape import shape_of


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nope": 1}, ".spec.nope: field not declared in schema"),
        ({"map": [1, {"a": 2.5}]}, ".spec.map: expected map, got &{[1 map[a:2.5]]}"),
        ({"set": "x"}, ".spec.set: expected list, got &{x}"),
        ({"set": ["a", "a"]}, '.spec.set: duplicate entries for key [="a"]'),
        ({"set": [{}]}, ".spec.set: element 0: associative list without keys has an element that's a map type"),
        ({"set": [None]}, ".spec.set: element 0: associative list without keys has an element that's an explicit null"),
        ({"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]},
         '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]'),
        ({"parts": [None]}, ".spec.parts: element 0: associative list with keys may not have a null element"),
        ({"parts": ["x"]}, ".spec.parts: element 0: associative list with keys may not have non-map elements"),
        (
            {"parts": [{"value": "x"}]},
            '.spec.parts: element 0: associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
        ({"list": [{"a": True}]},
         '.spec.list[0]: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":true}}'),
        ({"text": [1, None]},
         ".spec.text: expected string, got &value.valueUnstructured{Value:[]interface {}{1, interface {}(nil)}}"),
        ({"number": "1"}, ".spec.number: expected numeric (int or float), got string"),
        ({"number": True}, ".spec.number: expected numeric (int or float), got bool"),
        (
            {"map": 1, "set": 2.0},
            "errors:\n  .spec.map: expected map, got &{1}\n  .spec.set: expected list, got &{2}",
        ),
    ],
)  # fmt: skip
def test_the_complaint_is_worded_as_the_real_servers(things: SchemaStructure, spec: JSONObject, expected: str) -> None:
    assert complaint({"spec": spec}, shape_of(things)) == expected


@pytest.mark.parametrize(
    "spec", [{}, None, {"any": {"whatever": [{"is": None}]}}, {"map": None, "set": [], "text": None}]
)
def test_mergeable_values_have_no_complaint(things: SchemaStructure, spec: JSONValue) -> None:
    assert (
        complaint({"apiVersion": "a/v1", "kind": "T", "metadata": {"name": "x"}, "spec": spec}, shape_of(things)) == ""
    )


def test_metadata_of_custom_resources_is_known_whatever_their_schema_says(things: SchemaStructure) -> None:
    said = complaint({"metadata": {"labels": {"a": "b"}, "finalizers": ["x", "x"]}}, shape_of(things))

    assert said == '.metadata.finalizers: duplicate entries for key [="x"]'


def test_unknown_fields_of_built_in_kinds_are_refused() -> None:
    said = complaint({"spec": {"ports": [{"port": 80, "foo": 1}]}}, shape_of(structure_of(Service)))

    assert said == '.spec.ports[port=80,protocol="TCP"].foo: field not declared in schema'
