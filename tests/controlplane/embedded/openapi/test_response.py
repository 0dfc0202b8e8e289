from __future__ import annotations

from dataclasses import replace
from typing import cast

import msgspec
import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.builtins.registry import built_in_resources
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse
from kubewright.controlplane.embedded.openapi import openapi_response
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.resources import ResourceType

WIDGETS = ResourceType(
    gvk=GroupVersionKind("example.com", "v1", "Widget"),
    plural="widgets",
    singular="widget",
    namespaced=True,
    list_kind="WidgetList",
    custom=True,
    schema={"type": "object", "properties": {"spec": {"type": "object"}}},
)


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(built_in_resources())


def ask(catalog: Catalog, target: str, **headers: str) -> HTTPResponse:
    path, _, query = target.partition("?")
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    response = openapi_response(HTTPRequest("GET", path, query, sent), catalog)
    assert response is not None
    return response


def decoded(response: HTTPResponse) -> JSONObject:
    assert response.status == 200
    return cast(JSONObject, msgspec.json.decode(response.body))


def address(catalog: Catalog, path: str) -> str:
    return text(decoded(ask(catalog, "/openapi/v3")), "paths", path, "serverRelativeURL")


def test_the_index_leads_to_every_group_and_version(catalog: Catalog) -> None:
    catalog.define("widgets", [WIDGETS])
    paths = list(mapping(decoded(ask(catalog, "/openapi/v3")), "paths"))
    assert paths[:3] == ["api/v1", "apis/apiregistration.k8s.io/v1", "apis/apps/v1"]
    assert paths[-1] == "apis/example.com/v1"
    for path in paths:
        assert ask(catalog, address(catalog, path)).status == 200


def test_a_document_with_its_hash_may_be_kept_for_ever(catalog: Catalog) -> None:
    headers = dict(ask(catalog, address(catalog, "apis/apps/v1")).headers)
    assert headers["Cache-Control"] == "public, immutable"
    assert "Expires" in headers
    assert "Cache-Control" not in dict(ask(catalog, "/openapi/v3/apis/apps/v1").headers)


def test_an_old_hash_leads_to_the_new_one(catalog: Catalog) -> None:
    response = ask(catalog, "/openapi/v3/apis/apps/v1?hash=OLD")
    assert response.status == 301
    assert dict(response.headers)["Location"] == address(catalog, "apis/apps/v1")


def test_the_hash_follows_the_schema(catalog: Catalog) -> None:
    catalog.define("widgets", [WIDGETS])
    before, apps = address(catalog, "apis/example.com/v1"), address(catalog, "apis/apps/v1")
    catalog.define("widgets", [replace(WIDGETS, schema={"type": "object"})])
    assert address(catalog, "apis/example.com/v1") != before
    assert address(catalog, "apis/apps/v1") == apps
    catalog.withdraw("widgets")
    assert ask(catalog, "/openapi/v3/apis/example.com/v1").status == 404


@pytest.mark.parametrize("path", ["/openapi/v3/apis/apps/v1", "/openapi/v2"])
def test_a_client_that_has_a_document_gets_304(catalog: Catalog, path: str) -> None:
    tag = dict(ask(catalog, path).headers)["ETag"]
    response = ask(catalog, path, if_none_match=tag)
    assert (response.status, response.body) == (304, b"")


@pytest.mark.parametrize("path", ["/openapi/v3/apis/apps/v1", "/openapi/v2"])
def test_an_unknown_form_is_refused(catalog: Catalog, path: str) -> None:
    assert ask(catalog, path, accept="application/xml").status == 406
    assert ask(catalog, path, accept="application/json, */*").status == 200
    assert ask(catalog, path, accept="*/*").content_type == "application/json"
    assert ask(catalog, path).content_type == "application/json"


def test_only_version_2_is_served_as_protobuf(catalog: Catalog) -> None:
    form = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    for accepted in (form, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", f"{form}, application/json"):
        response = ask(catalog, "/openapi/v2", accept=accepted)
        assert (response.status, response.content_type) == (200, form)
        assert response.body.startswith(b"\x0a\x032.0")
        assert ask(catalog, "/openapi/v3/apis/apps/v1", accept=form).status == 406
    assert ask(catalog, "/openapi/v2", accept=f"application/json, {form}").content_type == "application/json"


def test_version_2_has_the_definitions_of_all_groups(catalog: Catalog) -> None:
    catalog.define("widgets", [WIDGETS])
    document = decoded(ask(catalog, "/openapi/v2"))
    definitions = mapping(document, "definitions")
    for name in ("io.k8s.api.core.v1.Pod", "io.k8s.api.apps.v1.Deployment", "com.example.v1.Widget"):
        assert name in definitions
    options = mapping(definitions, "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
    kinds = [text(kind, "group") for kind in items(options, "x-kubernetes-group-version-kind")]
    assert {"", "apps", "example.com"} <= set(kinds)
    assert "/api/v1/namespaces/{namespace}/pods/{name}" in mapping(document, "paths")


def test_kinds_returned_by_subresources_are_in_the_document(catalog: Catalog) -> None:
    schemas = mapping(decoded(ask(catalog, "/openapi/v3/api/v1")), "components", "schemas")
    for name in ("policy.v1.Eviction", "autoscaling.v1.Scale", "authentication.v1.TokenRequest", "core.v1.Binding"):
        assert f"io.k8s.api.{name}" in schemas


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v4", "/apis"])
def test_other_paths_are_not_answered_here(catalog: Catalog, path: str) -> None:
    assert openapi_response(HTTPRequest("GET", path), catalog) is None
