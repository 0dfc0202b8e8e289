"""A namespace on its way out: pods first, then the rest, and conditions that tell what it waits for."""

from __future__ import annotations

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Namespace, Pod
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, condition, deleted

HOLD, OTHER = "example.com/hold", "example.com/other"


def conditions(namespace: Namespace) -> dict[str, tuple[str, str | None, str | None]]:
    return {found.type: (found.status, found.reason, found.message) for found in namespace.status.conditions}


async def test_pods_go_first_and_conditions_tell_what_is_left(admin: Client, namespace: str) -> None:
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
        await inside.patch(ConfigMap, MergePatch({"metadata": {"finalizers": None}}), name=name)

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
