"""Tables: what the server shows of an object is what our printers make of the same object, on every control plane."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec
import pytest
import yaml
from tests.conformance.asking import Ask, Fetch, decoded

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, resource_info
from kubewright.api.scheme import Scheme
from kubewright.client import Client, MergePatch
from kubewright.client.errors import BadRequest, NotFound
from kubewright.client.wait import established
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.tables.table import printer_for

TABLE = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")

# Kinds whose objects are there, or are computed, without anybody creating them here.
OTHERS = (
    "v1 Namespace",
    "apiextensions.k8s.io/v1 CustomResourceDefinition",
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration",
    "certificates.k8s.io/v1 CertificateSigningRequest",
    "networking.k8s.io/v1 ServiceCIDR",
    "resource.k8s.io/v1 DeviceClass",
    "resource.k8s.io/v1 ResourceClaim",
    "resource.k8s.io/v1 ResourceSlice",
    "storage.k8s.io/v1 CSIStorageCapacity",
    "storage.k8s.io/v1 VolumeAttributesClass",
)


def type_of(kind: str) -> type[Object]:
    return Scheme().type_for(*kind.split(" "))


async def create(client: Client, document: JSONObject) -> Object:
    status = document.pop("status", None)
    cls = type_of(f"{document['apiVersion']} {document['kind']}")
    created = await client.create(from_json(cls, document))
    if status is not None:
        created = await client.status.patch(created, MergePatch({"status": status}))
    return created


async def fetched(client: Client, cls: type[Object], query: str = "includeObject=Object") -> JSONObject:
    """The table of all objects of a kind, with the objects: one answer, so that they fit each other."""
    endpoint = await client._operations.collection(cls, None)
    response = await client._operations.session.request(
        "GET", f"{endpoint.path}?{query}", request=endpoint.request("list"), headers=[TABLE]
    )
    return cast(JSONObject, msgspec.json.decode(response.body))


def resource_type(cls: type[Object], definition: JSONObject | None = None) -> ResourceType:
    info = resource_info(cls)
    return ResourceType(
        gvk=info.gvk,
        plural=info.plural,
        singular=info.singular,
        namespaced=info.namespaced is not False,
        list_kind=f"{info.gvk.kind}List",
        custom=definition is not None,
        definition=definition,
    )


def assert_same(table: JSONObject, resource: ResourceType, began: float) -> None:
    printer, now = printer_for(resource), time.time()
    columns = [(column.name, column.type, column.format, column.priority) for column in printer.columns]
    shown = [
        tuple(mapping(column)[key] for key in ("name", "type", "format", "priority"))
        for column in items(table, "columnDefinitions")
    ]
    assert shown == columns
    for row in items(table, "rows"):
        obj = mapping(row, "object")
        # Ages grow while we compare.
        possible = [printer.cells(obj, moment) for moment in (began, (began + now) / 2, now)]
        assert items(row, "cells") in possible, text(obj, "metadata", "name")
        conditions = printer.conditions(obj) if printer.conditions else []
        assert items(row, "conditions") == conditions


def documents(file: str, name: str) -> list[JSONObject]:
    return list(yaml.safe_load_all(Path(__file__).with_name(file).read_text().replace("NAME", name)))


async def test_rows_of_namespaced_kinds(client: Client) -> None:
    kinds: set[str] = set()
    for document in documents("table_rows.yaml", client.namespace):
        kinds.add(f"{document['apiVersion']} {document['kind']}")
        await create(client, document)
    for kind in sorted(kinds):
        cls, began = type_of(kind), time.time()
        table = await fetched(client, cls)
        assert items(table, "rows"), kind
        assert_same(table, resource_type(cls), began)


@pytest.fixture
async def cluster_wide(admin: Client, namespace: str) -> AsyncIterator[list[type[Object]]]:
    made = []
    try:
        for document in documents("table_rows_cluster_wide.yaml", namespace):
            made.append(await create(admin, document))
        yield [type(obj) for obj in made]
    finally:
        for obj in made:
            with suppress(NotFound):
                await admin.delete(obj)


async def test_rows_of_cluster_wide_kinds(admin: Client, cluster_wide: list[type[Object]]) -> None:
    for cls in dict.fromkeys([*cluster_wide, *map(type_of, OTHERS)]):
        began = time.time()
        assert_same(await fetched(admin, cls), resource_type(cls), began)


DEFINITION: JSONObject = {
    "metadata": {"name": "gizmos.tables.example.com"},
    "spec": {
        "group": "tables.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
                "additionalPrinterColumns": [
                    {"name": "Kind", "type": "string", "jsonPath": ".kind"},
                    {"name": "Integer", "type": "integer", "jsonPath": ".spec.value"},
                    {"name": "Number", "type": "number", "jsonPath": ".spec.value"},
                    {"name": "Boolean", "type": "boolean", "jsonPath": ".spec.value", "priority": 1},
                    {"name": "Date", "type": "date", "jsonPath": ".spec.value", "description": "whenever"},
                    {"name": "String", "type": "string", "jsonPath": ".spec.value"},
                    {"name": "First", "type": "string", "jsonPath": ".spec.list[0]"},
                    {"name": "Last", "type": "string", "jsonPath": ".spec.list[-1:]"},
                    {"name": "Some", "type": "string", "jsonPath": ".spec.list[1:3]"},
                    {"name": "Each", "type": "string", "jsonPath": ".spec.list[*].name"},
                    {"name": "Either", "type": "string", "jsonPath": ".spec['none','value']"},
                    {"name": "Ready", "type": "string", "jsonPath": '.spec.list[?(@.type=="Ready")].status'},
                    {"name": "Large", "type": "integer", "jsonPath": ".spec.list[?(@.size>=5)].size"},
                    {"name": "Named", "type": "string", "jsonPath": ".spec.list[?(@.name)].name"},
                    {"name": "Label", "type": "string", "jsonPath": ".metadata.labels.example\\.com/a"},
                    {"name": "Quoted", "type": "string", "jsonPath": ".metadata.labels['example\\.com/a']"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            },
            {
                "name": "v1alpha1",
                "served": True,
                "storage": False,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            },
        ],
    },
}
SPECS: list[JSONObject] = [
    {},
    {"value": 5, "list": []},
    {"value": 5.5, "list": ["a", 2, 3.5]},
    {"value": 3.0, "list": [{"type": "Ready", "status": "True", "name": "x"}, {"type": "Other", "name": "y"}]},
    {"value": 1234567.5, "list": [{"size": 4}, {"size": 6}, {"name": "z"}]},
    {"value": 0.00001, "list": [{"size": 5.5}]},
    {"value": 1.5e30, "list": [None]},
    {"value": 123456789012345.5, "list": {"name": "not a list"}},
    {"value": "2026-01-01T00:00:00Z", "list": [{"size": "6"}]},
    {"value": "2026-01-01T00:00:00.123+02:00"},
    {"value": "2126-01-01T00:00:00Z"},
    {"value": "2026-01-01"},
    {"value": ""},
    {"value": True},
    {"value": None},
    {"value": {"b": "<&>", "a": [1, 2.5, None]}},
    {"value": ["é", "\u2028"]},
]


@pytest.fixture
async def gizmos(admin: Client) -> None:
    await admin.wait_for(await admin.apply(from_json(CustomResourceDefinition, DEFINITION)), established)


@pytest.mark.usefixtures("gizmos")
async def test_rows_of_custom_resources(client: Client) -> None:
    gizmo = Dynamic.of("tables.example.com/v1", "Gizmo", plural="gizmos", namespaced=True)
    for index, spec in enumerate(SPECS):
        made = gizmo(metadata=ObjectMeta(name=f"g{index}", labels={"example.com/a": "b"} if index else {}))
        made["spec"] = spec
        await client.create(made)
    resource = resource_type(gizmo, {"spec": DEFINITION["spec"]})
    began = time.time()
    table = await fetched(client, gizmo)
    assert len(items(table, "rows")) == len(SPECS)
    assert_same(table, resource, began)
    descriptions = [text(column, "description") for column in items(table, "columnDefinitions")]
    assert descriptions[1:] == [column.description for column in printer_for(resource).columns[1:]]


@pytest.mark.usefixtures("gizmos")
async def test_custom_resources_without_columns_show_their_age(client: Client) -> None:
    gizmo = Dynamic.of("tables.example.com/v1alpha1", "Gizmo", plural="gizmos", namespaced=True)
    await client.create(gizmo(metadata=ObjectMeta(name="g")))
    began = time.time()
    assert_same(await fetched(client, gizmo), resource_type(gizmo, {"spec": DEFINITION["spec"]}), began)


@pytest.mark.parametrize(
    ("query", "expected"),
    [("", "PartialObjectMetadata"), ("includeObject=Metadata", "PartialObjectMetadata"), ("includeObject=None", "")],
)
async def test_what_is_included_of_the_object(client: Client, query: str, expected: str) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name="c"), data={"a": "b"}))
    table = await fetched(client, ConfigMap, query)
    row = next(row for row in items(table, "rows") if items(row, "cells")[0] == "c")
    assert text(row, "object", "kind") == expected
    assert "data" not in mapping(row, "object")
    assert list(mapping(row)) == ["cells", "object"]


async def test_a_wish_for_an_unknown_part_of_the_object_is_refused(client: Client) -> None:
    with pytest.raises(BadRequest, match="includeObject: Invalid value: \"Some\": must be 'Metadata', 'Object'"):
        await fetched(client, ConfigMap, "includeObject=Some")


async def test_pages_of_a_table_continue(client: Client) -> None:
    for name in ("a", "b", "c"):
        await client.create(ConfigMap(metadata=ObjectMeta(name=name)))
    first = await fetched(client, ConfigMap, "limit=1")
    rest = await fetched(client, ConfigMap, f"continue={text(first, 'metadata', 'continue')}")
    assert mapping(first, "metadata")["remainingItemCount"] == len(items(rest, "rows"))
    assert text(first, "metadata", "resourceVersion") == text(rest, "metadata", "resourceVersion")
    names: list[JSONValue] = [items(row, "cells")[0] for row in (*items(first, "rows"), *items(rest, "rows"))]
    assert [name for name in names if name in ("a", "b", "c")] == ["a", "b", "c"]


async def test_a_watch_reports_the_columns_once(client: Client) -> None:
    for name in ("a", "b"):
        await client.create(ConfigMap(metadata=ObjectMeta(name=name), data={"x": "y"}))
    endpoint = await client._operations.collection(ConfigMap, None)
    response = await client._operations.session.request(
        "GET",
        f"{endpoint.path}?watch=true&timeoutSeconds=1&includeObject=None&fieldSelector=metadata.name!=kube-root-ca.crt",
        request="watch",
        headers=[TABLE],
    )
    events = [msgspec.json.decode(line)["object"] for line in response.body.splitlines()]
    assert [event["kind"] for event in events] == ["Table", "Table"]
    assert [column["name"] for column in events[0]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert events[1]["columnDefinitions"] is None
    assert [event["rows"][0]["cells"][:2] for event in events] == [["a", 1], ["b", 1]]


async def test_a_scale_has_columns_of_its_own(ask: Ask, fetch: Fetch, namespace: str) -> None:
    labels: JSONObject = {"app": "a"}
    spec: JSONObject = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "a"}]}},
    }
    sets = "/apis/apps/v1/namespaces/NAMESPACE/replicasets"
    made = await ask("POST", sets, {"metadata": {"name": "a"}, "spec": spec})
    assert made.code == 201, made.body
    table = decoded(await fetch(f"{sets.replace('NAMESPACE', namespace)}/a/scale", headers=[TABLE]))

    columns = [(text(column, "name"), text(column, "type")) for column in items(table, "columnDefinitions")]
    assert columns == [("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string")]
    (row,) = items(table, "rows")
    assert items(row, "cells")[:3] == ["a", 0, 0]
    assert at(row, "object", "metadata", "name") == "a"
