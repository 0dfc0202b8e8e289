"""The two versions of the kind, converted by the running operator."""

from __future__ import annotations

from operators.conftest import AsOperator
from operators.podmanager import (
    PodManager,
    PodManagerV1Beta1,
    PodManagerV1Beta1Spec,
    setup,
)

from kubewright import Client, Manager, ObjectMeta
from kubewright.api.core.v1 import Pod
from kubewright.client import MergePatch
from kubewright.client.wait import Field, deleted
from kubewright.testing import Install, LocalWebhooks, Running, assert_round_trips

SOON = 60


async def test_item_40_an_object_of_the_older_version_is_kept_as_the_present_one_and_loses_nothing(
    admin: Client,
    namespace: str,
    install: Install,
    running: Running,
    as_operator: AsOperator,
    local_webhooks: LocalWebhooks,
) -> None:
    client = admin.in_namespace(namespace)
    await install(PodManager, PodManagerV1Beta1)
    manager = Manager(await as_operator(setup), namespaces=[namespace], **local_webhooks.options)
    setup(manager)
    async with running(manager, timeout=300), local_webhooks.installed(manager, admin, namespace=namespace):
        created = await client.create(
            PodManagerV1Beta1(metadata=ObjectMeta(name="it"), spec=PodManagerV1Beta1Spec(image="app:1", size=2))
        )
        reported = await client.wait_for(created, Field("status.currentReplicas").equals(2), timeout=SOON)
        hub = await client.get(PodManager, "it")
        assert (hub.spec.image, hub.spec.replicas) == ("app:1", 2)
        assert hub.metadata.uid == created.metadata.uid
        assert reported is not None
        assert reported.status.conditions == hub.status.conditions
        assert {pod.metadata.name for pod in await client.list(Pod)} == {"it-0", "it-1"}
        assert (await client.table(PodManager)).column("Desired") == [2]
        assert (await client.table(PodManagerV1Beta1)).column("Size") == [2]
        selector = hub.status.selector
        assert selector

        # What the older version does not have stays, also when its status is written in that version.
        await client.patch(PodManagerV1Beta1, "it", MergePatch({"spec": {"size": 3}}))
        await client.wait_for(hub, Field("status.currentReplicas").equals(3), timeout=SOON)
        await client.status.patch(PodManagerV1Beta1, "it", MergePatch({"status": {"readyReplicas": 3}}))
        await client.scale(created, replicas=1)
        await client.wait_for(Pod, "it-2", deleted, timeout=SOON)
        hub = await client.get(PodManager, "it")
        assert (hub.spec.replicas, hub.status.selector, hub.metadata.annotations) == (1, selector, {})

        await client.delete(created)
        assert await client.wait_for(hub, deleted, timeout=SOON) is None


def test_only_what_the_older_version_does_not_have_is_stashed() -> None:
    assert_round_trips(
        PodManagerV1Beta1, PodManager, stashed=["status.selector", "status.observedGeneration"], examples=30
    )
