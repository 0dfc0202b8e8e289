"""The OpenAPI v3 document of one group and version: its paths, and every schema they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubewright.api.autoscaling.v1 import Scale
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import DeleteOptions, ListMeta, ObjectMeta
from kubewright.api.resources import Object, resource_info
from kubewright.api.scheme import Scheme
from kubewright.controlplane.embedded.endpoints.discovery import announced_subresources
from kubewright.controlplane.embedded.openapi.custom import custom_name, custom_schemas, list_name
from kubewright.controlplane.embedded.openapi.descriptions import with_descriptions
from kubewright.controlplane.embedded.openapi.paths import Described, paths_of
from kubewright.controlplane.embedded.openapi.types import (
    META,
    STATUS_PARTS,
    SchemaReference,
    closure,
    name_of,
    reference,
    schema_of_type,
)
from kubewright.controlplane.embedded.registry.resources import ResourceType

INFO: Final[JSONObject] = {"title": "Kubernetes", "version": "1.36"}
SECURITY: Final[JSONObject] = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}
_DELETE_OPTIONS: Final = f"{META}.DeleteOptions"


def document_of(group: str, version: str, served: Sequence[ResourceType]) -> JSONObject:
    """The document of one group and version. Equal input gives equal bytes."""
    schemas: dict[str, JSONObject] = {}
    paths: dict[str, JSONValue] = {}
    parts: list[SchemaReference] = [*STATUS_PARTS, f"{META}.Patch", DeleteOptions, ListMeta, ObjectMeta]
    for resource in served:
        names, needed = _answered_as(resource)
        parts += needed
        if resource.custom:
            schemas |= custom_schemas(resource)
            described = Described(resource, custom_name(resource), list_name(resource))
        else:
            cls = Scheme().type_for(resource.gvk.api_version, resource.gvk.kind)
            described = Described(resource, name_of(cls), f"{name_of(cls).rpartition('.')[0]}.{resource.list_kind}")
            parts.append(cls)
            if "list" in resource.verbs:
                schemas[described.list_schema] = _list_schema(described)
        paths |= paths_of(described, names)
    schemas |= closure(parts)
    schemas[_DELETE_OPTIONS] = _delete_options(group, version)
    return {
        "openapi": "3.0.0",
        "info": INFO,
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {name: with_descriptions(name, schema) for name, schema in sorted(schemas.items())},
            "securitySchemes": SECURITY,
        },
    }


def _answered_as(resource: ResourceType) -> tuple[dict[GroupVersionKind, str], list[SchemaReference]]:
    """The kinds, other than its own, that the subresources of a resource are answered as."""
    names: dict[GroupVersionKind, str] = {}
    needed: list[SchemaReference] = []
    for subresource in announced_subresources(resource):
        if not subresource.kind or subresource.kind.endswith("Options"):
            continue
        cls: type[Object] = Scale
        if subresource.kind != "Scale":
            gvk = GroupVersionKind(subresource.group, subresource.version or resource.gvk.version, subresource.kind)
            cls = Scheme().type_for(gvk.api_version, gvk.kind)
        names[resource_info(cls).gvk] = name_of(cls)
        needed.append(cls)
    return names, needed


def _list_schema(described: Described) -> JSONObject:
    group, version, _ = described.resource.gvk
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"default": {}, "allOf": [reference(described.schema)]}},
            "kind": {"type": "string"},
            "metadata": {"default": {}, "allOf": [reference(f"{META}.ListMeta")]},
        },
        "x-kubernetes-group-version-kind": [{"group": group, "kind": described.resource.list_kind, "version": version}],
    }


def _delete_options(group: str, version: str) -> JSONObject:
    versions = dict.fromkeys((("", "v1"), (group, version)))
    kinds: list[JSONValue] = [
        {"group": group, "kind": "DeleteOptions", "version": version} for group, version in versions
    ]
    return {**schema_of_type(DeleteOptions).schema, "x-kubernetes-group-version-kind": kinds}
