"""The schemas of custom resources, as their definitions publish them."""

from __future__ import annotations

from typing import Final

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.openapi.descriptions import with_descriptions
from kubewright.controlplane.embedded.openapi.types import META, reference
from kubewright.controlplane.embedded.registry.resources import ResourceType

_ANY_KIND: Final = "io.k8s.api.core.v1.Pod"
_OF_EVERY_KIND: Final = ("apiVersion", "kind", "metadata")
"""Fields that are described in the same words for all kinds."""
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_TEXT: Final[JSONObject] = {"type": "string"}
_NESTED: Final = ("items", "additionalProperties", "not")
_NESTED_LISTS: Final = ("allOf", "anyOf", "oneOf")


def custom_name(resource: ResourceType) -> str:
    """The name of a custom resource in OpenAPI documents, such as `com.example.v1.Widget`."""
    reversed_group = ".".join(reversed(resource.gvk.group.split(".")))
    return f"{reversed_group}.{resource.gvk.version}.{resource.gvk.kind}"


def custom_schemas(resource: ResourceType) -> dict[str, JSONObject]:
    """The schemas of a custom resource and of its list."""
    name = custom_name(resource)
    metadata: JSONObject = {"allOf": [reference(f"{META}.ObjectMeta")]}
    schema = published(resource.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    properties = schema.get("properties")
    schema["type"] = "object"
    schema["properties"] = {
        **(properties if isinstance(properties, dict) else {}),
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": metadata,
    }
    schema["x-kubernetes-group-version-kind"] = [_kind(resource, resource.gvk.kind)]
    listed: JSONObject = {
        "description": f"{resource.list_kind} is a list of {resource.gvk.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _TEXT,
            "items": {
                "type": "array",
                "items": reference(name),
                "description": f"List of {resource.plural}. More info: {_CONVENTIONS}",
            },
            "kind": _TEXT,
            "metadata": {"allOf": [reference(f"{META}.ListMeta")]},
        },
        "x-kubernetes-group-version-kind": [_kind(resource, resource.list_kind)],
    }
    return {
        name: with_descriptions(_ANY_KIND, schema, only=_OF_EVERY_KIND),
        list_name(resource): with_descriptions(f"{_ANY_KIND}List", listed, only=_OF_EVERY_KIND),
    }


def list_name(resource: ResourceType) -> str:
    """The name of the list of a custom resource."""
    return custom_name(resource).rpartition(".")[0] + f".{resource.list_kind}"


def _kind(resource: ResourceType, kind: str) -> JSONObject:
    return {"group": resource.gvk.group, "kind": kind, "version": resource.gvk.version}


def published(schema: JSONObject) -> JSONObject:
    """A structural schema with its extensions expressed in plain OpenAPI. The original is not changed."""
    result: JSONObject = {name: _published(name, value) for name, value in schema.items()}
    if result.get("x-kubernetes-int-or-string") is True and "anyOf" not in result:
        result = {"anyOf": [{"type": "integer"}, {"type": "string"}], **result}
    if result.get("x-kubernetes-embedded-resource") is True:
        properties = result.get("properties")
        result["properties"] = {
            **(properties if isinstance(properties, dict) else {}),
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "metadata": {"allOf": [reference(f"{META}.ObjectMeta")]},
        }
        result = with_descriptions(_ANY_KIND, result, only=_OF_EVERY_KIND)
        required = result.get("required")
        missing = [name for name in ("kind", "apiVersion") if not isinstance(required, list) or name not in required]
        result["required"] = [*(required if isinstance(required, list) else []), *missing]
    return result


def _published(name: str, value: JSONValue) -> JSONValue:
    if name == "properties" and isinstance(value, dict):
        return {key: published(item) if isinstance(item, dict) else item for key, item in value.items()}
    if name in _NESTED and isinstance(value, dict):
        return published(value)
    if name in _NESTED_LISTS and isinstance(value, list):
        return [published(item) if isinstance(item, dict) else item for item in value]
    return value
