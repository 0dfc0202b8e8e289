from __future__ import annotations

from dataclasses import replace
from typing import cast

import msgspec
import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.endpoints.discovery import discovery_response, version_priority
from kubewright.controlplane.embedded.http.exchange import HTTPResponse
from kubewright.controlplane.embedded.http.negotiation import MediaTypeOptions
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.resources import ResourceType

PODS = ResourceType(
    gvk=GroupVersionKind("", "v1", "Pod"),
    plural="pods",
    singular="pod",
    namespaced=True,
    list_kind="PodList",
    short_names=("po",),
    categories=("all",),
    subresources=frozenset(("status", "eviction", "binding", "log")),
)
DEPLOYMENTS = ResourceType(
    gvk=GroupVersionKind("apps", "v1", "Deployment"),
    plural="deployments",
    singular="deployment",
    namespaced=True,
    list_kind="DeploymentList",
    subresources=frozenset(("status", "scale")),
)
REVIEWS = ResourceType(
    gvk=GroupVersionKind("authorization.k8s.io", "v1", "SubjectAccessReview"),
    plural="subjectaccessreviews",
    singular="subjectaccessreview",
    namespaced=False,
    list_kind="",
    verbs=frozenset(("create",)),
)
WIDGETS = ResourceType(
    gvk=GroupVersionKind("example.com", "v1beta1", "Widget"),
    plural="widgets",
    singular="widget",
    namespaced=False,
    list_kind="WidgetList",
    subresources=frozenset(("scale", "status")),
    custom=True,
    storage=GroupVersionKind("example.com", "v1", "Widget"),
)
AGGREGATED = MediaTypeOptions(group="apidiscovery.k8s.io", version="v2", kind="APIGroupDiscoveryList")


@pytest.fixture
def catalog() -> Catalog:
    return Catalog([PODS, DEPLOYMENTS, REVIEWS])


def answer(path: str, catalog: Catalog, wanted: MediaTypeOptions | None = None) -> HTTPResponse:
    response = discovery_response(path, wanted or MediaTypeOptions(), catalog)
    assert response is not None
    return response


def document(path: str, catalog: Catalog, wanted: MediaTypeOptions | None = None) -> JSONObject:
    response = answer(path, catalog, wanted)
    assert response.status == 200
    return cast(JSONObject, msgspec.json.decode(response.body))


def widget(version: str) -> ResourceType:
    return replace(WIDGETS, gvk=GroupVersionKind("example.com", version, "Widget"))


def test_the_core_group_reports_where_the_server_is(catalog: Catalog) -> None:
    response = discovery_response("/api", MediaTypeOptions(), catalog, address="10.0.0.1:6443")
    assert response is not None
    assert response.body == (
        b'{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":'
        b'[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]}\n'
    )


def test_fields_of_a_resource_come_in_the_order_of_the_real_server(catalog: Catalog) -> None:
    pods = items(document("/api/v1", catalog), "resources")[0]
    keys = ["name", "singularName", "namespaced", "kind", "verbs", "shortNames", "categories", "storageVersionHash"]
    assert list(mapping(pods)) == keys
    assert text(pods, "storageVersionHash") == "xPOwRZ+Yhw8="


def test_subresources_that_are_another_kind_say_so(catalog: Catalog) -> None:
    entries = {text(entry, "name"): mapping(entry) for entry in items(document("/api/v1", catalog), "resources")}
    assert list(entries) == ["pods", "pods/binding", "pods/eviction", "pods/log", "pods/status"]
    assert entries["pods/eviction"] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }
    assert entries["pods/binding"]["kind"] == "Binding"
    assert entries["pods/log"]["verbs"] == ["get"]
    assert entries["pods/status"]["verbs"] == ["get", "patch", "update"]


def test_what_is_not_stored_has_no_storage_version(catalog: Catalog) -> None:
    reviews = items(document("/apis/authorization.k8s.io/v1", catalog), "resources")[0]
    assert "storageVersionHash" not in mapping(reviews)


def test_groups_are_sorted_by_importance_and_custom_ones_by_name_after_them(catalog: Catalog) -> None:
    for group in ("zoo.example.com", "apes.example.com"):
        catalog.define(group, [replace(WIDGETS, gvk=GroupVersionKind(group, "v1", "Widget"))])
    groups = [text(group, "name") for group in items(document("/apis", catalog), "groups")]
    assert groups == ["apps", "authorization.k8s.io", "apes.example.com", "zoo.example.com"]


def test_the_preferred_version_is_the_most_stable_and_newest(catalog: Catalog) -> None:
    catalog.define("widgets", [widget(version) for version in ("v1alpha1", "v1", "v2beta1", "v10", "v2")])
    group = document("/apis/example.com", catalog)
    versions = [text(version, "version") for version in items(group, "versions")]
    assert versions == ["v10", "v2", "v1", "v2beta1", "v1alpha1"]
    assert text(group, "preferredVersion", "groupVersion") == "example.com/v10"


def test_versions_with_other_names_come_last_by_name() -> None:
    assert sorted(["foo", "v1alpha1", "bar", "v01"], key=version_priority) == ["v1alpha1", "bar", "foo", "v01"]


def test_custom_resources_have_their_verbs_and_subresources_in_the_order_of_the_real_server(catalog: Catalog) -> None:
    catalog.define("widgets", [WIDGETS])
    entries = items(document("/apis/example.com/v1beta1", catalog), "resources")
    assert [text(entry, "name") for entry in entries] == ["widgets", "widgets/status", "widgets/scale"]
    assert items(entries[0], "verbs")[0] == "delete"
    # example.com/v1/Widget: the stored version, not this one.
    assert text(entries[0], "storageVersionHash") == "gIwvi5rymmg="


def test_changes_of_the_catalog_are_seen_at_once(catalog: Catalog) -> None:
    assert answer("/apis/example.com", catalog).status == 404
    catalog.define("widgets", [WIDGETS])
    assert answer("/apis/example.com", catalog).status == 200
    tag = dict(answer("/apis", catalog, AGGREGATED).headers)["ETag"]
    catalog.withdraw("widgets")
    assert answer("/apis/example.com", catalog).status == 404
    assert dict(answer("/apis", catalog, AGGREGATED).headers)["ETag"] != tag


def test_the_aggregated_form_has_all_groups_but_core(catalog: Catalog) -> None:
    response = answer("/apis", catalog, AGGREGATED)
    assert response.content_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    found = items(msgspec.json.decode(response.body), "items")
    assert [text(group, "metadata", "name") for group in found] == ["apps", "authorization.k8s.io"]
    deployments = items(items(found[0], "versions")[0], "resources")[0]
    assert mapping(deployments, "responseKind") == {"group": "", "version": "", "kind": "Deployment"}
    scale = items(deployments, "subresources")[0]
    assert mapping(scale, "responseKind") == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_custom_kinds_are_named_in_full_in_the_aggregated_form() -> None:
    catalog = Catalog([])
    catalog.define("widgets", [WIDGETS])
    group = items(document("/apis", catalog, AGGREGATED), "items")[0]
    widgets = items(items(group, "versions")[0], "resources")[0]
    kind = {"group": "example.com", "version": "v1beta1", "kind": "Widget"}
    assert mapping(widgets, "responseKind") == kind
    assert mapping(items(widgets, "subresources")[0], "responseKind") == kind


def test_the_aggregated_core_group_has_no_name(catalog: Catalog) -> None:
    found = items(document("/api", catalog, AGGREGATED), "items")
    assert [mapping(group, "metadata") for group in found] == [{}]


def test_a_client_that_has_the_aggregated_document_gets_304(catalog: Catalog) -> None:
    tag = dict(answer("/apis", catalog, AGGREGATED).headers)["ETag"]
    response = discovery_response("/apis", AGGREGATED, catalog, if_none_match=tag)
    assert response is not None
    assert (response.status, response.body) == (304, b"")


def test_clients_of_the_beta_get_the_legacy_document(catalog: Catalog) -> None:
    beta = MediaTypeOptions(group="apidiscovery.k8s.io", version="v2beta1", kind="APIGroupDiscoveryList")
    assert text(document("/apis", catalog, beta), "kind") == "APIGroupList"


@pytest.mark.parametrize("path", ["/apis/", "/api/v1/", "/apis/apps/", "/apis/apps/v1/"])
def test_a_slash_at_the_end_makes_no_difference(catalog: Catalog, path: str) -> None:
    assert answer(path, catalog).body == answer(path.rstrip("/"), catalog).body


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/pods", "/apis/apps/v1/deployments", "/openapi/v3"])
def test_other_paths_are_not_answered_here(catalog: Catalog, path: str) -> None:
    assert discovery_response(path, MediaTypeOptions(), catalog) is None


def test_an_unknown_version_is_a_status_and_an_unknown_group_is_not_even_that(catalog: Catalog) -> None:
    assert b'"reason":"NotFound"' in answer("/apis/apps/v9", catalog).body
    assert b'"reason":"NotFound"' in answer("/api/v9", catalog).body
    assert answer("/apis/nobody.example.com", catalog).body == b"404 page not found\n"


def test_headers_added_to_one_answer_are_not_in_the_next(catalog: Catalog) -> None:
    answer("/apis", catalog).headers.append(("Warning", "x"))
    assert answer("/apis", catalog).headers == []
