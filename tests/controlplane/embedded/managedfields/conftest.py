from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.structure import SchemaStructure


@pytest.fixture
def things() -> SchemaStructure:
    """A custom kind with every way to merge."""
    text: JSONObject = {"type": "string"}
    part: JSONObject = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": text, "value": text, "inner": {"type": "object", "properties": {"p": text, "q": text}}},
    }
    port: JSONObject = {
        "type": "object",
        "required": ["port"],
        "properties": {"port": {"type": "integer"}, "protocol": {**text, "default": "TCP"}, "name": text},
    }
    spec: JSONObject = {
        "text": text,
        "number": {"type": "number"},
        "map": {"type": "object", "additionalProperties": text},
        "atomicMap": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "list": {"type": "array", "items": text},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": part,
        },
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": port,
        },
        "nested": {"type": "object", "properties": {"x": text, "y": text}},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
    }
    return SchemaStructure(
        {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": spec},
                "status": {"type": "object", "properties": {"phase": text}},
            },
        }
    )
