from __future__ import annotations

from typing import cast

import msgspec
import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.builtins.registry import built_in_resources
from kubewright.controlplane.embedded.endpoints.request import Target, parse_query
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.call import Call, Services
from kubewright.controlplane.embedded.rest.reading import Listed
from kubewright.controlplane.embedded.storage.stored_object import StoredObject
from kubewright.controlplane.embedded.tables import table_of, watch_presentation
from kubewright.controlplane.embedded.tables.table import printer_for


class _Clock:
    """The only service that tables use."""

    @staticmethod
    def clock() -> float:
        return 100.0


@pytest.fixture(scope="module")
def resources() -> Catalog:
    return Catalog(built_in_resources())


@pytest.fixture
def config_maps(resources: Catalog) -> ResourceType:
    found = resources.find("", "v1", "configmaps")
    assert found is not None
    return found


def call(resource: ResourceType, query: str = "") -> Call:
    target = Target("/", "list")
    return Call(cast(Services, _Clock()), resource, target, parse_query(query), UserInfo("somebody"))


def entry(name: str, revision: int = 7, **fields: JSONObject) -> StoredObject:
    metadata: JSONObject = {
        "name": name,
        "resourceVersion": str(revision),
        "creationTimestamp": "1970-01-01T00:00:00Z",
    }
    return StoredObject(f"/core/configmaps/n/{name}", {"metadata": metadata, **fields}, revision, revision)


def shown(call: Call, entries: list[StoredObject], listed: Listed | None, version: str) -> JSONObject:
    return msgspec.json.decode(b"".join(table_of(call, entries, listed, version)), type=JSONObject)


def test_a_list_is_shown_with_its_position(config_maps: ResourceType) -> None:
    listed = Listed([entry("a", data={"x": "y"}), entry("b")], 9, "next", 3)
    table = shown(call(config_maps), listed.entries, listed, "v1")
    assert list(table) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert table["metadata"] == {"resourceVersion": "9", "continue": "next", "remainingItemCount": 3}
    assert [items(row, "cells") for row in items(table, "rows")] == [["a", 1, "100s"], ["b", 0, "100s"]]
    assert items(table, "columnDefinitions")[0] == {
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "",
        "priority": 0,
    }


def test_a_single_object_has_its_own_revision(config_maps: ResourceType) -> None:
    assert shown(call(config_maps), [entry("a")], None, "v1")["metadata"] == {"resourceVersion": "7"}


def test_an_empty_list_has_columns_and_no_rows(config_maps: ResourceType) -> None:
    table = shown(call(config_maps), [], Listed([], 5), "v1")
    assert len(items(table, "columnDefinitions")) == 3
    assert table["rows"] == []


def test_rows_carry_metadata_unless_requested_otherwise(config_maps: ResourceType) -> None:
    found = entry("a", data={"x": "y"})

    def included(query: str) -> object:
        return mapping(items(shown(call(config_maps, query), [found], None, "v1"), "rows")[0])["object"]

    partial = {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": found.value["metadata"],
    }
    assert included("") == included("includeObject=Metadata") == partial
    assert included("includeObject=None") is None
    assert included("includeObject=Object") == {"kind": "ConfigMap", "apiVersion": "v1", **found.value}


def test_another_wish_is_a_bad_request(config_maps: ResourceType) -> None:
    with pytest.raises(StatusError) as raised:
        shown(call(config_maps, "includeObject=Some"), [], None, "v1")
    assert raised.value.code == 400
    assert raised.value.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Some": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_a_watch_reports_the_columns_in_the_first_event_only(config_maps: ResourceType) -> None:
    presentation = watch_presentation(call(config_maps, "includeObject=None"), "v1")
    assert presentation.first is not None
    first = msgspec.json.decode(presentation.first(entry("a")))
    second = msgspec.json.decode(presentation.render(entry("b")))
    assert len(first["columnDefinitions"]) == 3
    assert second == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": None,
        "rows": [{"cells": ["b", 0, "100s"], "object": None}],
    }


def test_the_end_of_the_initial_events_is_marked_whatever_is_included(config_maps: ResourceType) -> None:
    metadata: JSONObject = {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}
    mark = StoredObject("", {"metadata": metadata}, 7, 7)
    row = msgspec.json.decode(watch_presentation(call(config_maps, "includeObject=None"), "v1").render(mark))["rows"][0]
    assert row["cells"] == ["", 0, "<unknown>"]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_every_printer_makes_a_row_of_an_empty_object(resources: Catalog) -> None:
    """A mark in a watch, and whatever an older version stored, must not break a table."""
    for resource in resources.all():
        printer = printer_for(resource)
        cells = printer.cells({"metadata": {}}, 0.0)
        # Addresses have an age, and no column for it, on the real server too.
        extra = resource.plural == "ipaddresses"
        assert len(cells) == len(printer.columns) + extra, resource.plural


def test_kinds_without_a_printer_show_when_they_were_created(resources: Catalog) -> None:
    roles = resources.find("rbac.authorization.k8s.io", "v1", "roles")
    assert roles is not None
    table = shown(call(roles), [entry("a")], None, "v1")
    assert [mapping(column)["name"] for column in items(table, "columnDefinitions")] == ["Name", "Created At"]
    assert items(items(table, "rows")[0], "cells") == ["a", "1970-01-01T00:00:00Z"]
