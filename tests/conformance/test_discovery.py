"""Discovery and OpenAPI: what the server says of itself is what our catalog of built-in kinds says, on every plane."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest

from kubewright.api.markers import JSONValue
from kubewright.client import Client
from kubewright.client.errors import APIError, NotAcceptable, NotFound
from kubewright.client.http.transport import Response
from kubewright.controlplane.embedded.builtins.registry import built_in_resources
from kubewright.controlplane.embedded.catalog import Catalog
from kubewright.controlplane.embedded.discovery import discovery_response
from kubewright.controlplane.embedded.document import JSONObject, items, mapping, text
from kubewright.controlplane.embedded.exchange import Request
from kubewright.controlplane.embedded.negotiation import Wanted
from kubewright.controlplane.embedded.openapi import openapi_response

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
WANTED = Wanted(group="apidiscovery.k8s.io", version="v2", kind="APIGroupDiscoveryList")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog(built_in_resources())


async def get(client: Client, path: str, accept: str = "application/json", **headers: str) -> Response:
    return await client._operations.session.request(
        "GET", path, request=path, headers=[("Accept", accept), *headers.items()]
    )


def decoded(body: bytes) -> JSONObject:
    return cast(JSONObject, msgspec.json.decode(body))


def ours(path: str, catalog: Catalog, wanted: Wanted | None = None) -> bytes:
    response = discovery_response(path, wanted or Wanted(), catalog)
    assert response is not None
    return response.body


def built_in(groups: list[JSONValue], *name: str) -> list[JSONValue]:
    return [group for group in groups if not text(group, *name).endswith(("example.com", "mycompany.com"))]


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
async def test_what_is_not_served_is_not_found(admin: Client, path: str) -> None:
    with pytest.raises(NotFound):
        await get(admin, path)


@pytest.mark.usefixtures("widgets")
async def test_custom_resources_are_announced_with_their_subresources(admin: Client) -> None:
    found = decoded((await get(admin, "/apis/example.com/v1")).body)
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


# What a schema says apart from prose; `default` repeats what Go's zero values are.
_PROSE = ("description", "default", "x-kubernetes-unions")


def essence(schema: JSONValue) -> JSONValue:
    """A schema without prose, its required fields in any order, and single references without their wrapping."""
    if isinstance(schema, list):
        return [essence(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: JSONObject = {
        name: [*sorted(map(str, value))] if name == "required" and isinstance(value, list) else essence(value)
        for name, value in schema.items()
        if name not in _PROSE or (isinstance(value, dict) and ("type" in value or "allOf" in value))
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
    for place in {f"apis/{resource.gvk.api_version}" for resource in catalog.all() if resource.gvk.group} | {"api/v1"}:
        theirs = decoded((await get(admin, text(index, place, "serverRelativeURL"))).body)
        response = openapi_response(Request("GET", f"/openapi/v3/{place}"), catalog)
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
    response = openapi_response(Request("GET", "/openapi/v3/apis/apps/v1"), catalog)
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


async def test_documents_are_json_only_for_those_who_accept_it(admin: Client) -> None:
    with pytest.raises(APIError) as raised:
        await get(admin, "/openapi/v3/api/v1", "application/yaml")
    assert raised.value.code == 406
