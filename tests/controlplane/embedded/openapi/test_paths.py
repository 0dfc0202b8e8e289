from __future__ import annotations

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.openapi.paths import Described, paths_of
from kubewright.controlplane.embedded.registry.resources import ResourceType

SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
ROLES = ResourceType(
    gvk=GroupVersionKind("rbac.authorization.k8s.io", "v1", "Role"),
    plural="roles",
    singular="role",
    namespaced=True,
    list_kind="RoleList",
)
WIDGETS = ResourceType(
    gvk=GroupVersionKind("zoo.example.com", "v1", "Widget"),
    plural="widgets",
    singular="widget",
    namespaced=False,
    list_kind="WidgetList",
    subresources=frozenset(("status", "scale")),
    custom=True,
)
REVIEWS = ResourceType(
    gvk=GroupVersionKind("authorization.k8s.io", "v1", "SubjectAccessReview"),
    plural="subjectaccessreviews",
    singular="subjectaccessreview",
    namespaced=False,
    list_kind="",
    verbs=frozenset(("create",)),
)


def paths(resource: ResourceType) -> JSONObject:
    return dict(paths_of(Described(resource, "Thing", "ThingList"), {SCALE: "Scale"}))


def test_namespaced_objects_are_listed_everywhere_too() -> None:
    found = paths(ROLES)
    root = "/apis/rbac.authorization.k8s.io/v1"
    assert list(found) == [
        f"{root}/roles",
        f"{root}/namespaces/{{namespace}}/roles",
        f"{root}/namespaces/{{namespace}}/roles/{{name}}",
    ]
    assert list(mapping(found, f"{root}/roles")) == ["get", "parameters"]
    single = mapping(found, f"{root}/namespaces/{{namespace}}/roles/{{name}}")
    assert [text(parameter, "name") for parameter in items(single, "parameters")] == ["name", "namespace", "pretty"]


def test_operations_are_named_as_kubernetes_names_them() -> None:
    found = paths(ROLES)
    names = {
        text(operation, "operationId"): text(operation, "x-kubernetes-action")
        for item in found.values()
        for method, operation in mapping(item).items()
        if method != "parameters"
    }
    assert names == {
        "listRbacAuthorizationV1RoleForAllNamespaces": "list",
        "listRbacAuthorizationV1NamespacedRole": "list",
        "createRbacAuthorizationV1NamespacedRole": "post",
        "deleteRbacAuthorizationV1CollectionNamespacedRole": "deletecollection",
        "readRbacAuthorizationV1NamespacedRole": "get",
        "replaceRbacAuthorizationV1NamespacedRole": "put",
        "patchRbacAuthorizationV1NamespacedRole": "patch",
        "deleteRbacAuthorizationV1NamespacedRole": "delete",
    }


def test_a_patch_can_be_validated_and_tried_without_effect() -> None:
    """What kubectl looks for before it relies on the server for either."""
    patch = mapping(paths(ROLES), "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/{name}", "patch")
    names = [text(parameter, "name") for parameter in items(patch, "parameters")]
    assert names == ["dryRun", "fieldManager", "fieldValidation", "force"]
    kind = {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "Role"}
    assert patch["x-kubernetes-group-version-kind"] == kind


def test_custom_resources_know_no_strategic_merge() -> None:
    path = "/apis/zoo.example.com/v1/widgets/{name}"
    types = mapping(paths(WIDGETS), path, "patch", "requestBody", "content")
    assert list(types) == [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ]


def test_subresources_are_answered_as_their_own_kind() -> None:
    found = paths(WIDGETS)
    path = "/apis/zoo.example.com/v1/widgets/{name}"
    scale, status = mapping(found, f"{path}/scale", "get"), mapping(found, f"{path}/status", "get")
    assert text(scale, "operationId") == "readZooExampleComV1WidgetScale"
    assert text(scale, "x-kubernetes-group-version-kind", "kind") == "Scale"
    assert text(status, "x-kubernetes-group-version-kind", "kind") == "Widget"
    content = mapping(scale, "responses", "200", "content", "application/json")
    assert content == {"schema": {"$ref": "#/components/schemas/Scale"}}


def test_what_can_only_be_created_is_only_created() -> None:
    found = paths(REVIEWS)
    assert {path: list(mapping(item)) for path, item in found.items()} == {
        "/apis/authorization.k8s.io/v1/subjectaccessreviews": ["post", "parameters"]
    }
