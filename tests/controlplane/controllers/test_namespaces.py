from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Container, Namespace, Pod, PodSpec, Secret
from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.client.errors import Forbidden
from kubewright.client.wait import Field, condition, deleted, established
from kubewright.controlplane.controllers.namespaces import Namespaces, is_about_terminating
from kubewright.controlplane.controllers.runtime import BuiltInController

Start = Callable[[BuiltInController], None]

NO_FINALIZERS = MergePatch({"metadata": {"finalizers": []}})


@pytest.fixture(autouse=True)
async def controller(client: Client, start: Start) -> None:
    start(Namespaces(client))


def reason(namespace: Namespace | None, type_: str) -> tuple[str | None, str | None]:
    assert namespace is not None
    found = {one.type: (one.reason, one.message) for one in namespace.status.conditions}
    return found[type_]


async def test_a_namespace_is_deleted_with_all_that_is_in_it(client: Client, namespace: str) -> None:
    subject = await client.get(Namespace, namespace)
    config_map = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace)))
    secret = await client.create(Secret(metadata=ObjectMeta(name="b", namespace=namespace)))
    await client.delete(subject)
    await client.wait_for(subject, deleted)
    assert await client.find(ConfigMap, config_map.key) is None
    assert await client.find(Secret, secret.key) is None


async def test_a_namespace_that_is_not_deleted_is_left_alone(client: Client, namespace: str, writes: list[str]) -> None:
    going = await client.create(Namespace(metadata=ObjectMeta(generate_name="going-")))
    await client.delete(going)
    await client.wait_for(going, deleted)
    assert not any(f"/{namespace}" in write for write in writes)


async def test_custom_resources_go_too(client: Client, namespace: str) -> None:
    group = f"{namespace}.example.com"
    definition = from_json(
        CustomResourceDefinition,
        {
            "metadata": {"name": f"gadgets.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
                ],
            },
        },
    )
    await client.wait_for(await client.create(definition), established)
    gadget = Dynamic.of(f"{group}/v1", "Gadget", plural="gadgets", namespaced=True)
    metadata = ObjectMeta(name="big", namespace=namespace, finalizers=["example.com/wait"])
    big = await client.create(gadget(metadata=metadata))
    subject = await client.get(Namespace, namespace)
    await client.delete(subject)
    subject = await client.wait_for(subject, condition("NamespaceContentRemaining")) or subject
    assert reason(subject, "NamespaceContentRemaining") == (
        "SomeResourcesRemain",
        f"Some resources are remaining: gadgets.{group} has 1 resource instances",
    )
    await client.patch(big, NO_FINALIZERS)
    await client.wait_for(subject, deleted)


async def test_the_status_reports_what_remains_and_for_which_finalizers(client: Client, namespace: str) -> None:
    metadata = ObjectMeta(name="a", namespace=namespace, finalizers=["example.com/one", "example.com/two"])
    config_map = await client.create(ConfigMap(metadata=metadata))
    subject = await client.get(Namespace, namespace)
    await client.delete(subject)
    found = await client.wait_for(subject, condition("NamespaceFinalizersRemaining"))
    assert reason(found, "NamespaceContentRemaining") == (
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances",
    )
    assert reason(found, "NamespaceFinalizersRemaining") == (
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: "
        "example.com/one in 1 resource instances, example.com/two in 1 resource instances",
    )
    assert reason(found, "NamespaceDeletionContentFailure")[0] == "ContentDeleted"
    await client.patch(config_map, NO_FINALIZERS)
    await client.wait_for(subject, deleted, timeout=5)  # at once, and not when it is looked at again anyway


async def test_nothing_else_is_deleted_before_the_last_pod_is(client: Client, pod_namespace: str) -> None:
    spec = PodSpec(containers=[Container(name="c", image="i")], node_name="n", termination_grace_period_seconds=60)
    pod = await client.create(Pod(metadata=ObjectMeta(name="p", namespace=pod_namespace), spec=spec))
    config_map = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=pod_namespace)))
    subject = await client.get(Namespace, pod_namespace)
    await client.delete(subject)
    # The status is written after whatever was deleted.
    found = await client.wait_for(subject, condition("NamespaceContentRemaining", "False"))
    assert reason(found, "NamespaceContentRemaining") == ("ContentRemoved", "All content successfully removed")
    assert (await client.get(Pod, pod.key)).metadata.deletion_timestamp is not None
    assert (await client.get(ConfigMap, config_map.key)).metadata.deletion_timestamp is None
    await client.delete(pod, grace_period=0)
    await client.wait_for(subject, deleted, timeout=5)


async def test_finalizers_of_others_keep_the_namespace(client: Client, namespace: str) -> None:
    subject = await client.get(Namespace, namespace)
    subject.spec.finalizers = ["example.com/keep", *subject.spec.finalizers]
    subject = await client.subresource("finalize").update(subject)
    await client.delete(subject)
    found = await client.wait_for(subject, Field("spec.finalizers").equals(["example.com/keep"]))
    assert found is not None
    found.spec.finalizers = []
    await client.subresource("finalize").update(found)
    await client.wait_for(subject, deleted)


async def test_a_refusal_in_a_terminating_namespace_names_it(client: Client, namespace: str) -> None:
    metadata = ObjectMeta(name="a", namespace=namespace, finalizers=["example.com/wait"])
    config_map = await client.create(ConfigMap(metadata=metadata))
    await client.delete(Namespace, namespace)
    with pytest.raises(Forbidden) as refusal:
        await client.create(Secret(metadata=ObjectMeta(name="b", namespace=namespace)))
    assert is_about_terminating(refusal.value)
    await client.patch(config_map, NO_FINALIZERS)


async def test_a_namespace_that_waits_is_written_once(client: Client, namespace: str, writes: list[str]) -> None:
    metadata = ObjectMeta(name="a", namespace=namespace, finalizers=["example.com/wait"])
    config_map = await client.create(ConfigMap(metadata=metadata))
    subject = await client.get(Namespace, namespace)
    await client.delete(subject)
    await client.wait_for(subject, condition("NamespaceFinalizersRemaining"))
    other = await client.create(Namespace(metadata=ObjectMeta(generate_name="other-")))
    await client.delete(other)
    await client.wait_for(other, deleted)
    assert writes.count(f"PUT /api/v1/namespaces/{namespace}/status") == 1
    await client.patch(config_map, NO_FINALIZERS)
