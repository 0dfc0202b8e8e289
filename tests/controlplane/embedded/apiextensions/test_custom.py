from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions import custom
from kubewright.controlplane.embedded.apiextensions.custom import custom_resources
from kubewright.controlplane.embedded.apiextensions.names import accepted
from kubewright.controlplane.embedded.apimachinery.document import inside, items
from kubewright.controlplane.embedded.apimachinery.status import FieldError, forbidden_field
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.storage.store import MemoryStore

Define = Callable[..., JSONObject]
SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            },
        },
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    },
}
STATUS: JSONObject = {"status": {}}


def served(definition: JSONObject) -> list[ResourceType]:
    return custom_resources(accepted(definition, [definition], "2020-01-01T00:00:00Z"), MemoryStore())


@pytest.fixture
def widgets(define: Define) -> ResourceType:
    (resource,) = served(define(SCHEMA, subresources=STATUS))
    return resource


def test_a_definition_serves_nothing_before_its_names_are_accepted(define: Define) -> None:
    assert custom_resources(define(), MemoryStore()) == []


def test_every_served_version_is_a_resource_that_knows_where_it_is_stored(define: Define) -> None:
    definition = define(
        SCHEMA,
        subresources={"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
    )
    inside(definition, "spec", "names").update(shortNames=["w"], categories=["all"])
    items(definition, "spec", "versions").append({"name": "v2", "served": True, "storage": False})
    items(definition, "spec", "versions").append({"name": "v0", "served": False, "storage": False})

    first, second = served(definition)

    assert (first.gvk.api_version, first.gvk.kind, first.storage) == ("example.com/v1", "Widget", None)
    assert (second.gvk.version, second.storage) == ("v2", first.gvk)
    assert (first.plural, first.singular, first.list_kind, first.namespaced) == (
        "widgets",
        "widget",
        "WidgetList",
        True,
    )
    assert (first.short_names, first.categories) == (("w",), ("all",))
    assert first.subresources == {"status", "scale"}
    assert second.subresources == frozenset()
    assert first.custom
    assert first.strategy.has_generation
    assert not first.strategy.unconditional_update


def test_objects_are_pruned_and_defaulted(widgets: ResourceType) -> None:
    obj: JSONObject = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"x": 1, "color": None}}

    widgets.strategy.default(obj)

    assert obj == {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1}}


def test_the_status_is_written_on_its_own(widgets: ResourceType) -> None:
    stored: JSONObject = {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"size": 1}, "status": {"size": 1}}
    created: JSONObject = {"spec": {}, "status": {"size": 5}}
    updated: JSONObject = {"metadata": {"name": "a"}, "spec": {"size": 2}, "status": {"size": 5}}
    reported: JSONObject = {
        "metadata": {"name": "a", "managedFields": [{}]},
        "spec": {"size": 2},
        "status": {"size": 5},
    }
    withdrawn: JSONObject = {"metadata": {"name": "a"}, "spec": {"size": 2}}

    widgets.strategy.prepare_create(created)
    widgets.strategy.prepare_update(updated, stored)
    widgets.strategy.prepare_status(reported, stored)
    widgets.strategy.prepare_status(withdrawn, stored)

    assert created == {"spec": {}}
    assert updated == {"metadata": {"name": "a"}, "spec": {"size": 2}, "status": {"size": 1}}
    metadata: JSONObject = {"name": "a", "labels": {"a": "b"}, "managedFields": [{}]}
    assert reported == {"metadata": metadata, "spec": {"size": 1}, "status": {"size": 5}}
    assert withdrawn == {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"size": 1}}
    assert stored["metadata"] == {"name": "a", "labels": {"a": "b"}}


@pytest.mark.parametrize(
    ("change", "has_status", "expected"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, True, False),
        ({"spec": {"size": 2}}, True, True),
        ({"status": {"size": 2}}, True, False),
        ({"status": {"size": 2}}, False, True),
        ({"extra": 1}, True, True),
    ],
)
def test_a_generation_is_anything_but_metadata_and_a_status_of_its_own(
    define: Define, change: JSONObject, has_status: bool, expected: bool
) -> None:
    (resource,) = served(define(SCHEMA, subresources=STATUS if has_status else {}))
    changes = resource.strategy.changes_generation
    old: JSONObject = {"metadata": {}, "spec": {"size": 1}, "status": {"size": 1}}

    assert changes is not None
    assert changes({**old, **change}, old) is expected


def test_objects_are_validated_by_schema_lists_and_scale(define: Define) -> None:
    scale: JSONObject = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    (resource,) = served(define(SCHEMA, subresources={"status": {}, "scale": scale}))

    errors = resource.strategy.validate({"spec": {"size": -1, "color": "green", "tags": ["a", "a"]}})

    assert [str(error) for error in errors] == [
        'spec.color: Unsupported value: "green": supported values: "red", "blue"',
        ".spec.size: Invalid value: -1: should be a non-negative integer",
        'spec.tags[1]: Duplicate value: "a"',
    ]


def test_repetitions_that_were_there_before_are_not_held_against_an_update(widgets: ResourceType) -> None:
    old: JSONObject = {"spec": {"tags": ["a", "a"]}}

    assert widgets.strategy.validate_update({"spec": {"tags": ["b", "b"]}}, old) == []
    assert widgets.strategy.validate_update({"spec": {"tags": ["b", "b"]}}, {"spec": {}}) != []


def test_a_status_is_validated_under_its_field(widgets: ResourceType) -> None:
    old: JSONObject = {"spec": {"color": "green"}}

    errors = widgets.strategy.validate_status({**old, "status": {"size": "big"}}, old)

    assert [str(error) for error in errors] == [
        'status.size: Invalid value: "string": size in body must be of type integer: "string"'
    ]
    assert widgets.strategy.validate_status(old, old) == []


def test_selectable_fields_are_printed(define: Define) -> None:
    fields: list[JSONObject] = [{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.color"}]
    (resource,) = served(define(SCHEMA, selectableFields=fields))

    assert resource.strategy.selectable == {"spec.size", "spec.color"}
    assert resource.strategy.selectable_fields({"spec": {"size": 3}}) == {"spec.size": "3", "spec.color": ""}


class NeverBlue:
    """Rules that refuse a change to blue."""

    def validate(self, new: JSONObject, old: JSONObject | None = None) -> list[FieldError]:
        spec = new["spec"]
        assert isinstance(spec, dict)
        was = "new" if old is None else "changed"
        return [forbidden_field("spec.color", f"never {was} blue")] if spec.get("color") == "blue" else []


def test_rules_run_last_and_only_when_types_and_required_fields_hold(
    define: Define, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom, "compiled", lambda schema: NeverBlue())
    (resource,) = served(define(SCHEMA, subresources=STATUS))
    blue: JSONObject = {"spec": {"color": "blue"}}
    broken: JSONObject = {"spec": {"color": "blue", "size": "big"}}

    assert [str(error) for error in resource.strategy.validate(blue)] == ["spec.color: Forbidden: never new blue"]
    assert [error.detail for error in resource.strategy.validate_update(blue, {})] == ["never changed blue"]
    assert [error.detail for error in resource.strategy.validate_status(blue, {})] == ["never changed blue"]
    assert str(resource.strategy.validate(broken)[-1]) == (
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation"
    )
