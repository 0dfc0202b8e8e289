"""The way of an object through the rules of its kind, as the handlers of the server take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, invalid
from kubewright.controlplane.embedded.builtins.metadata import validate_metadata, validate_metadata_update
from kubewright.controlplane.embedded.builtins.registry import built_in_resources
from kubewright.controlplane.embedded.registry.resources import ResourceType

Create: TypeAlias = Callable[[JSONObject], JSONObject]
Update: TypeAlias = Callable[[JSONObject, JSONObject], JSONObject]

UID = "00000000-0000-4000-8000-000000000000"
RESOURCES = {f"{resource.gvk.api_version} {resource.gvk.kind}": resource for resource in built_in_resources()}


def resource_of(obj: JSONObject) -> ResourceType:
    return RESOURCES[f"{text(obj, 'apiVersion')} {text(obj, 'kind')}"]


def refuse(resource: ResourceType, obj: JSONObject, errors: list[FieldError]) -> None:
    if errors:
        stored = resource.storage or resource.gvk
        raise invalid(stored.kind, stored.group, text(obj, "metadata", "name"), errors)


@pytest.fixture
def create() -> Create:
    """An object as it would be stored; StatusError when it is refused. The original is not changed."""

    def create(obj: JSONObject) -> JSONObject:
        new = copied_object(obj)
        resource = resource_of(new)
        strategy = resource.strategy
        strategy.default(new)
        metadata = inside(new, "metadata")
        metadata.update(uid=UID, creationTimestamp="2026-01-01T00:00:00Z")
        metadata.pop("generation", None)
        if resource.namespaced:
            metadata.setdefault("namespace", "default")
        if "generateName" in metadata:
            metadata.setdefault("name", f"{text(metadata, 'generateName')}xxxxx")
        if strategy.has_generation:
            metadata["generation"] = 1
        strategy.begin_create(new)
        strategy.prepare_create(new)
        wrong = validate_metadata(new, namespaced=resource.namespaced, validate_name=strategy.validate_name)
        refuse(resource, new, [*wrong, *strategy.validate(new)])
        return new

    return create


@pytest.fixture
def update() -> Update:
    """An object as it would replace an old one, which is not changed."""

    def update(old: JSONObject, obj: JSONObject) -> JSONObject:
        before = copied_object(old)
        new = copied_object(obj)
        resource = resource_of(new)
        strategy = resource.strategy
        strategy.default(new)
        metadata, kept = inside(new, "metadata"), mapping(old, "metadata")
        metadata.update({name: kept[name] for name in ("creationTimestamp", "generation", "uid") if name in kept})
        strategy.begin_update(new, old)
        strategy.prepare_update(new, old)
        refuse(resource, new, [*validate_metadata_update(new, old), *strategy.validate_update(new, old)])
        if strategy.has_generation and _is_new_generation(resource, new, old):
            generation: JSONValue = metadata["generation"]
            assert isinstance(generation, int)
            metadata["generation"] = generation + 1
        assert old == before
        return new

    return update


def _is_new_generation(resource: ResourceType, new: JSONObject, old: JSONObject) -> bool:
    changes = resource.strategy.changes_generation
    return changes(new, old) if changes is not None else new.get("spec") != old.get("spec")
