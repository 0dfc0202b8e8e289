"""Discovery and OpenAPI of every control plane agree with our catalog of built-in kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import cast

import msgspec
import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import Client
from kubewright.client.errors import APIError, NotAcceptable, NotFound
from kubewright.client.http.transport import Response
from kubewright.client.wait import deleted, established
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.builtins.registry import built_in_resources
from kubewright.controlplane.embedded.endpoints.discovery import discovery_response
from kubewright.controlplane.embedded.http.exchange import HTTPRequest
from kubewright.controlplane.embedded.http.negotiation import MediaTypeOptions
from kubewright.controlplane.embedded.openapi import openapi_response
from kubewright.controlplane.embedded.registry.catalog import Catalog

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
WANTED = MediaTypeOptions(group="apidiscovery.k8s.io", version="v2", kind="APIGroupDiscoveryList")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog(built_in_resources())


async def get(client: Client, path: str, accept: str = "application/json", **headers: str) -> Response:
    return await client._operations.session.request(
        "GET", path, request=path, headers=[("Accept", accept), *headers.items()]
    )


async def announced(client: Client, path: str) -> Response:
    """The document of a group that is new: the real server serves its objects a moment before it announces them."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await get(client, path)
            except NotFound:
                await asyncio.sleep(0.02)


def decoded(body: bytes) -> JSONObject:
    return cast(JSONObject, msgspec.json.decode(body))


def ours(path: str, catalog: Catalog, wanted: MediaTypeOptions | None = None) -> bytes:
    response = discovery_response(path, wanted or MediaTypeOptions(), catalog)
    assert response is not None
    return response.body


def built_in(groups: list[JSONValue], *name: str) -> list[JSONValue]:
    """Without the groups of other tests: those of custom resources have a dot, and Kubernetes' own end in k8s.io."""
    return [group for group in groups if "." not in text(group, *name) or text(group, *name).endswith(".k8s.io")]


async def test_groups_and_their_versions_come_in_the_same_order(admin: Client, catalog: Catalog) -> None:
    listed = decoded((await get(admin, "/apis")).body)
    expected = decoded(ours("/apis", catalog))
    assert built_in(items(listed, "groups"), "name") == items(expected, "groups")


async def test_every_group_and_version_is_the_same_to_the_byte(admin: Client, catalog: Catalog) -> None:
    groups = items(decoded(ours("/apis", catalog)), "groups")
    paths = ["/api/v1"]
    for group in groups:
        paths.append(f"/apis/{text(group, 'name')}")
        paths += [f"/apis/{text(version, 'groupVersion')}" for version in items(group, "versions")]
    for path in paths:
        assert (await get(admin, path)).body == ours(path, catalog), path


async def test_the_core_group_is_the_same_in_the_aggregated_form(admin: Client, catalog: Catalog) -> None:
    response = await get(admin, "/api", AGGREGATED)
    assert response.headers.get("Content-Type") == AGGREGATED
    assert response.body == ours("/api", catalog, WANTED)


async def test_all_groups_are_the_same_in_the_aggregated_form(admin: Client, catalog: Catalog) -> None:
    listed = decoded((await get(admin, "/apis", AGGREGATED)).body)
    expected = decoded(ours("/apis", catalog, WANTED))
    assert built_in(items(listed, "items"), "metadata", "name") == items(expected, "items")


async def test_an_aggregated_document_is_not_sent_twice(admin: Client) -> None:
    tag = (await get(admin, "/api", AGGREGATED)).headers.get("ETag") or ""
    assert tag.startswith('"')
    with pytest.raises(APIError) as raised:
        await get(admin, "/api", AGGREGATED, **{"If-None-Match": tag})
    assert raised.value.code == 304


async def test_the_beta_of_the_aggregated_form_is_gone(admin: Client) -> None:
    beta = AGGREGATED.replace("v=v2", "v=v2beta1")
    with pytest.raises(NotAcceptable):
        await get(admin, "/apis", beta)
    response = await get(admin, "/apis", f"{beta},application/json")
    assert text(decoded(response.body), "kind") == "APIGroupList"


@pytest.mark.parametrize(
    "path", ["/apis/nobody.example.org", "/apis/apps/v9", "/api/v9", "/apis/nobody.example.org/v1"]
)
async def test_paths_that_are_not_served_are_not_found(admin: Client, path: str) -> None:
    with pytest.raises(NotFound):
        await get(admin, path)


@pytest.mark.usefixtures("widgets")
async def test_custom_resources_are_announced_with_their_subresources(admin: Client) -> None:
    found = decoded((await announced(admin, "/apis/example.com/v1")).body)
    entries = {text(entry, "name"): entry for entry in items(found, "resources")}
    verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert mapping(entries, "widgets") == {
        "name": "widgets",
        "singularName": "widget",
        "namespaced": True,
        "kind": "Widget",
        "verbs": verbs,
        "storageVersionHash": mapping(entries, "widgets")["storageVersionHash"],
    }
    assert text(entries, "widgets/scale", "group") == "autoscaling"
    assert [name for name in entries if name.startswith("widgets")] == ["widgets", "widgets/status", "widgets/scale"]


# `default` repeats what Go's zero values are.
_LEFT_OUT = ("default", "x-kubernetes-unions")


def essence(schema: JSONValue) -> JSONValue:
    """A schema with its required fields in any order, and single references without their wrapping."""
    if isinstance(schema, list):
        return [essence(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: JSONObject = {
        name: [*sorted(map(str, value))] if name == "required" and isinstance(value, list) else essence(value)
        for name, value in schema.items()
        if name not in _LEFT_OUT or (isinstance(value, dict) and ("type" in value or "allOf" in value))
    }
    wrapped = found.get("allOf")
    if isinstance(wrapped, list) and len(wrapped) == 1 and isinstance(wrapped[0], dict):
        found = {**{name: value for name, value in found.items() if name != "allOf"}, **wrapped[0]}
    return found


# Known differences: alpha fields, and what the Python types do not say.
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_DIFFERENT = frozenset(
    (
        f"{_META}.ListMeta",
        f"{_META}.OwnerReference",
        "io.k8s.api.core.v1.PersistentVolumeClaimStatus",
        "io.k8s.api.core.v1.PersistentVolumeSpec",
        "io.k8s.api.policy.v1.PodDisruptionBudgetSpec",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresources",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec",
    )
)


async def test_schemas_of_built_in_kinds_are_the_same(admin: Client, catalog: Catalog) -> None:
    index = mapping(decoded((await get(admin, "/openapi/v3")).body), "paths")
    compared = 0
    for path in {f"apis/{resource.gvk.api_version}" for resource in catalog.all() if resource.gvk.group} | {"api/v1"}:
        theirs = decoded((await get(admin, text(index, path, "serverRelativeURL"))).body)
        response = openapi_response(HTTPRequest("GET", f"/openapi/v3/{path}"), catalog)
        assert response is not None
        document = decoded(response.body)
        schemas = mapping(theirs, "components", "schemas")
        for name, schema in mapping(document, "components", "schemas").items():
            if name in schemas and name not in _DIFFERENT:
                assert essence(schema) == essence(schemas[name]), name
                compared += 1
    assert compared > 500


async def test_paths_that_kubectl_reads_are_the_same(admin: Client, catalog: Catalog) -> None:
    """kubectl finds out by them whether a kind can be applied, validated and tried without effect."""
    theirs = mapping(decoded((await get(admin, "/openapi/v3/apis/apps/v1")).body), "paths")
    response = openapi_response(HTTPRequest("GET", "/openapi/v3/apis/apps/v1"), catalog)
    assert response is not None
    for path, item in mapping(decoded(response.body), "paths").items():
        for method in ("get", "post", "put", "patch", "delete"):
            assert (method in mapping(item)) == (method in mapping(theirs, path)), f"{method} {path}"
            expected, found = mapping(theirs, path, method), mapping(item, method)
            for key in ("operationId", "tags", "x-kubernetes-action", "x-kubernetes-group-version-kind"):
                assert found.get(key) == expected.get(key), f"{method} {path}"
            assert essence(found.get("requestBody")) == essence(expected.get("requestBody"))
            names = [text(parameter, "name") for parameter in items(expected, "parameters")]
            unknown = {"shardSelector"}
            assert [text(parameter, "name") for parameter in items(found, "parameters")] == [
                name for name in names if name not in unknown
            ]


async def test_a_document_moves_to_its_new_hash(admin: Client) -> None:
    with pytest.raises(APIError) as raised:
        await get(admin, "/openapi/v3/api/v1?hash=OLD")
    assert raised.value.code == 301


async def test_documents_are_json_only_for_clients_that_accept_it(admin: Client) -> None:
    with pytest.raises(APIError) as raised:
        await get(admin, "/openapi/v3/api/v1", "application/yaml")
    assert raised.value.code == 406


GADGETS = "gadgets.discovery.example.com"
GADGET: JSONObject = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["maybe", "name"],
            "properties": {
                "name": {"type": "string", "default": "x", "enum": ["x", "y"], "description": "How it is called."},
                "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9},
                "port": {"x-kubernetes-int-or-string": True},
                "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "maybe": {"type": "string", "nullable": True, "pattern": "^a"},
                "parts": {
                    "type": "array",
                    "items": {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                },
                "checked": {
                    "type": "object",
                    "properties": {"q": {"type": "string"}},
                    "oneOf": [{"required": ["q"]}],
                    "x-kubernetes-validations": [{"rule": "has(self.q)", "message": "no q"}],
                },
            },
        }
    },
}


def gadgets(versions: Sequence[str]) -> CustomResourceDefinition:
    names: JSONObject = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    return from_json(
        CustomResourceDefinition,
        {
            "metadata": {"name": GADGETS},
            "spec": {
                "group": "discovery.example.com",
                "scope": "Namespaced",
                "names": {**names, "shortNames": ["gg"], "categories": ["all"]},
                "versions": [
                    {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": GADGET}}
                    for name in versions
                ],
            },
        },
    )


@pytest.fixture
async def defined(admin: Client) -> AsyncIterator[CustomResourceDefinition]:
    versions = ["v1alpha1", "foo", "v1", "v2beta1", "v10", "v2"]
    created = await admin.wait_for(await admin.create(gadgets(versions)), established)
    assert created is not None
    yield created
    await admin.delete(CustomResourceDefinition, GADGETS, missing_ok=True)
    # A server that fails to delete one, as under load, tries again later and later.
    await admin.wait_for(created, deleted, timeout=300)


async def eventually(admin: Client, path: str, *, gone: bool = False, accept: str = "application/json") -> JSONObject:
    """What is at a path once it is there, or nothing once it is not."""
    async with asyncio.timeout(30):
        while True:
            try:
                # The real server answers with nothing while it puts a document together.
                found = decoded((await get(admin, path, accept)).body or b"{}")
            except NotFound:
                found = {}
            if bool(found) != gone:
                return found
            await asyncio.sleep(0.01)


async def test_the_groups_of_custom_resources_come_and_go(admin: Client, defined: CustomResourceDefinition) -> None:
    group = await eventually(admin, "/apis/discovery.example.com")
    versions = [text(version, "version") for version in items(group, "versions")]
    # Stable before beta before alpha, the higher first, and names that are no versions last.
    assert versions == ["v10", "v2", "v1", "v2beta1", "v1alpha1", "foo"]
    assert text(group, "preferredVersion", "version") == "v10"
    (resource,) = items(await eventually(admin, "/apis/discovery.example.com/v10"), "resources")
    found = mapping(resource)
    assert list(found) == [
        *("name", "singularName", "namespaced", "kind", "verbs", "shortNames", "categories", "storageVersionHash")
    ]
    assert (found["shortNames"], found["categories"]) == (["gg"], ["all"])
    await admin.delete(defined)
    for path in ("/apis/discovery.example.com", "/apis/discovery.example.com/v10"):
        assert await eventually(admin, path, gone=True) == {}
    listed = items(decoded((await get(admin, "/apis", AGGREGATED)).body), "items")
    assert "discovery.example.com" not in [text(group, "metadata", "name") for group in listed]


@pytest.mark.usefixtures("defined")
async def test_the_schemas_of_custom_resources_are_published(admin: Client) -> None:
    document = await eventually(admin, "/openapi/v3/apis/discovery.example.com/v1")
    schema = mapping(document, "components", "schemas", "com.example.discovery.v1.Gadget")
    published = mapping(schema, "properties", "spec")
    properties = mapping(published, "properties")
    # What may be either is said once more, for those who do not know the extension.
    either: list[JSONValue] = [{"type": "integer"}, {"type": "string"}]
    assert mapping(properties, "port").pop("anyOf") == either
    assert published == mapping(GADGET, "properties", "spec")
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "discovery.example.com", "kind": "Gadget", "version": "v1"}
    ]
    (reference,) = items(schema, "properties", "metadata", "allOf")
    assert reference == {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    # By this kubectl knows that the server validates fields itself.
    patch = mapping(document, "paths", "/apis/discovery.example.com/v1/namespaces/{namespace}/gadgets/{name}", "patch")
    assert "fieldValidation" in [text(parameter, "name") for parameter in items(patch, "parameters")]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "discovery.example.com",
        "kind": "Gadget",
        "version": "v1",
    }


@pytest.mark.usefixtures("defined")
async def test_old_clients_find_no_more_than_they_understand(admin: Client) -> None:
    name = "com.example.discovery.v1.Gadget"
    async with asyncio.timeout(30):
        while True:
            definitions = mapping(decoded((await get(admin, "/openapi/v2")).body), "definitions")
            if name in definitions:
                break
            await asyncio.sleep(0.01)
    spec = mapping(definitions, name, "properties", "spec")
    assert spec["required"] == ["name"]
    properties = mapping(spec, "properties")
    assert properties["maybe"] == {"pattern": "^a"}
    assert properties["anything"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert "default" not in mapping(properties, "name")
    assert "oneOf" not in mapping(properties, "checked")
