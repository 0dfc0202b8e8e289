"""Deletion of a namespace: pods first, then the rest, and conditions for what it waits for."""

from __future__ import annotations

import pytest
from tests.conformance.asking import Ask

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Namespace, Pod
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, condition, deleted
from kubewright.controlplane.embedded.apimachinery.document import at, text

HOLD, OTHER = "example.com/hold", "example.com/other"


def conditions(namespace: Namespace) -> dict[str, tuple[str, str | None, str | None]]:
    return {found.type: (found.status, found.reason, found.message) for found in namespace.status.conditions}


async def test_pods_are_deleted_first_and_conditions_report_what_is_left(admin: Client, namespace: str) -> None:
    inside = admin.in_namespace(namespace)
    container: JSONValue = {"name": "main", "image": "busybox"}
    pod = await inside.create(
        from_json(Pod, {"metadata": {"name": "p", "finalizers": [HOLD]}, "spec": {"containers": [container]}})
    )
    for name, finalizers in (("one", [HOLD]), ("two", [HOLD, OTHER])):
        await inside.create(ConfigMap(metadata=ObjectMeta(name=name, finalizers=finalizers)))
    space = await admin.get(Namespace, namespace)

    await admin.delete(space)
    going = Field("metadata.deletionTimestamp").satisfies(lambda value: value is not None, "is set")
    await inside.wait_for(pod, going, timeout=60)
    first = await admin.wait_for(space, condition("NamespaceContentRemaining", "False"), timeout=60)
    untouched = [one.metadata.deletion_timestamp for one in await inside.list(ConfigMap)]
    await inside.patch(pod, MergePatch({"metadata": {"finalizers": None}}))
    second = await admin.wait_for(space, condition("NamespaceContentRemaining"), timeout=60)
    for name in ("one", "two"):
        await inside.patch(ConfigMap, name, MergePatch({"metadata": {"finalizers": None}}))

    assert first is not None
    assert second is not None
    assert set(untouched) == {None}
    done = {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
    }
    assert conditions(second) == {
        **done,
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {HOLD} in 2 resource instances, "
            f"{OTHER} in 1 resource instances",
        ),
    }
    assert await admin.wait_for(space, deleted, timeout=60) is None


# The endpoint `finalize`


async def test_the_finalizers_of_a_namespace_are_changed_by_an_endpoint_of_their_own(ask: Ask, namespace: str) -> None:
    path = "/api/v1/namespaces/NAMESPACE"
    sent: JSONObject = {
        "metadata": {"name": namespace, "labels": {"a": "b"}},
        "spec": {"finalizers": ["kubernetes", "example.com/hold"]},
        "status": {"phase": "Terminating"},
    }
    plain = (await ask("PUT", path, sent)).body
    dry = (await ask("PUT", f"{path}/finalize?dryRun=All", sent)).body
    before = (await ask("GET", path)).body
    finalized = (await ask("PUT", f"{path}/finalize", sent)).body
    await ask("PUT", f"{path}/finalize", {**sent, "spec": {"finalizers": ["kubernetes"]}})

    assert at(plain, "spec", "finalizers") == at(before, "spec", "finalizers") == ["kubernetes"]
    assert at(dry, "spec", "finalizers") == ["kubernetes", "example.com/hold"]
    assert at(finalized, "spec", "finalizers") == ["kubernetes", "example.com/hold"]
    assert at(finalized, "metadata", "labels") == {"a": "b", "kubernetes.io/metadata.name": namespace}
    assert at(finalized, "status", "phase") == "Active"


@pytest.mark.parametrize(
    ("metadata", "finalizers", "code", "message"),
    [
        ({"name": "other"}, [], 400, "the name of the object (other) does not match the name on the URL (NAMESPACE)"),
        (
            {"uid": "x"},
            [],
            409,
            'Operation cannot be fulfilled on namespaces "NAMESPACE": StorageError: invalid object, Code: 4, '
            "Key: /registry/namespaces/NAMESPACE, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
            "UID in precondition: x, UID in object meta: UID",
        ),
        (
            {},
            ["bare"],
            422,
            'Namespace "NAMESPACE" is invalid: spec.finalizers[0]: Invalid value: "bare": '
            "name is neither a standard finalizer name nor is it fully qualified",
        ),
    ],
)
async def test_an_invalid_finalize_is_refused(
    ask: Ask, namespace: str, metadata: JSONObject, finalizers: list[JSONValue], code: int, message: str
) -> None:
    path = "/api/v1/namespaces/NAMESPACE"
    uid = text((await ask("GET", path)).body, "metadata", "uid")
    body: JSONObject = {"metadata": {"name": namespace, **metadata}, "spec": {"finalizers": finalizers}}
    refused = await ask("PUT", f"{path}/finalize", body)

    assert refused.code == code
    assert text(refused.body, "message") == message.replace("NAMESPACE", namespace).replace("meta: UID", f"meta: {uid}")


async def test_a_namespace_with_a_generated_name_is_labelled_with_it(ask: Ask) -> None:
    created = (await ask("POST", "/api/v1/namespaces", {"metadata": {"generateName": "generated-"}})).body
    name = text(created, "metadata", "name")
    await ask("DELETE", f"/api/v1/namespaces/{name}")

    assert at(created, "metadata", "labels") == {"kubernetes.io/metadata.name": name}
