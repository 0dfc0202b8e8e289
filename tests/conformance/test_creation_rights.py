"""Writes that create although they are no POST: they need the permission to create, too."""

from __future__ import annotations

import pytest
from tests.conformance.asking import AskAs, Grant

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text

APPLY = "application/apply-patch+yaml"
MAPS = "/api/v1/namespaces/NAMESPACE/configmaps"
MAP: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases"
LEASE: JSONObject = {"metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": 5}}
SERVICES = "/api/v1/namespaces/NAMESPACE/services"
# It is warned about.
SERVICE: JSONObject = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "externalIPs": ["1.2.3.4"]}}
WIDGETS = "/apis/example.com/v1/namespaces/NAMESPACE/widgets"
WIDGET: JSONObject = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
EVERYTHING_BUT_CREATE: JSONObject = {
    "verbs": ["get", "update", "patch"],
    "apiGroups": ["*"],
    "resources": ["*"],
}


def refusal(resource: str, group: str, namespace: str) -> str:
    what = f"{resource}.{group}" if group else resource
    return (
        f'{what} "a" is forbidden: User "jane" cannot create resource "{resource}" in API group "{group}" '
        f'in the namespace "{namespace}"'
    )


@pytest.mark.parametrize("query", ["", "&dryRun=All"])
@pytest.mark.parametrize(
    ("resource", "group", "request_"),
    [
        ("configmaps", "", ("PATCH", f"{MAPS}/a?fieldManager=t", MAP, APPLY)),
        ("widgets", "example.com", ("PATCH", f"{WIDGETS}/a?fieldManager=t", WIDGET, APPLY)),
        ("services", "", ("PUT", f"{SERVICES}/a?fieldManager=t", SERVICE, "application/json")),
    ],
    ids=["apply", "apply-custom", "update"],
)
@pytest.mark.usefixtures("widgets")
async def test_an_apply_or_update_that_creates_needs_the_permission_to_create(
    ask_as: AskAs,
    grant: Grant,
    namespace: str,
    resource: str,
    group: str,
    request_: tuple[str, str, JSONObject, str],
    query: str,
) -> None:
    method, path, body, content_type = request_
    path += query
    await grant("jane", EVERYTHING_BUT_CREATE)

    refused = await ask_as("jane")(method, path, body, content_type)
    by_admin = await ask_as("")(method, path, body, content_type)
    changed = await ask_as("jane")(method, path, body, content_type)

    assert refused.refusal == (403, "Forbidden", refusal(resource, group, namespace))
    assert by_admin.code == 201
    # What is there already takes no more than the permission to update.
    assert changed.code == (403 if query else 200)
    # The object is validated before the permission to create is checked.
    assert refused.warnings == by_admin.warnings


async def test_what_is_wrong_with_an_object_is_reported_before_the_permission_to_create_is_checked(
    ask_as: AskAs, grant: Grant
) -> None:
    await grant("jane", EVERYTHING_BUT_CREATE)
    ask = ask_as("jane")

    invalid = await ask("PUT", f"{LEASES}/a", {"metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": -1}})
    nowhere = await ask("PATCH", "/api/v1/namespaces/nowhere/configmaps/a?fieldManager=t", MAP, APPLY)
    missing = await ask("PATCH", f"{MAPS}/a", {"data": {}}, "application/merge-patch+json")

    assert (invalid.code, text(invalid.body, "reason")) == (422, "Invalid")
    assert nowhere.refusal == (404, "NotFound", 'namespaces "nowhere" not found')
    assert missing.refusal == (404, "NotFound", 'configmaps "a" not found')


async def test_a_user_that_may_create_and_patch_applies_new_objects(ask_as: AskAs, grant: Grant) -> None:
    await grant("jane", {**EVERYTHING_BUT_CREATE, "verbs": ["create", "patch", "update"]})

    applied = await ask_as("jane")("PATCH", f"{MAPS}/a?fieldManager=t", MAP, APPLY)
    updated = await ask_as("jane")("PUT", f"{LEASES}/a", LEASE)

    assert (applied.code, updated.code) == (201, 201)
