"""The two versions of the kind, converted by the running operator, and what it admits in both."""

from __future__ import annotations

import pytest
from operators.conftest import AsOperator
from operators.devbox import Devbox, DevBoxRelease, DevboxV1Alpha1, Options, devbox_manager, setup
from operators.devbox.tests.world import devbox
from operators.devbox.v1alpha1 import DevboxV1Alpha1Spec

from kubewright import Client, Field, Invalid, ObjectMeta, Quantity, condition
from kubewright.api.markers import JSONObject
from kubewright.client import MergePatch
from kubewright.testing import Install, LocalWebhooks, Running, assert_round_trips

SOON = 120
STOPPED = MergePatch({"spec": {"state": "Stopped"}})


@pytest.mark.usefixtures("nodes")
async def test_an_object_of_the_older_version_is_reconciled_as_the_present_one_and_loses_nothing(
    admin: Client,
    namespace: str,
    install: Install,
    running: Running,
    as_operator: AsOperator,
    local_webhooks: LocalWebhooks,
    storage_class: str,
) -> None:
    client = admin.in_namespace(namespace)
    await install(Devbox, DevboxV1Alpha1, DevBoxRelease)
    manager = devbox_manager(await as_operator(setup), namespaces=[namespace], **local_webhooks.options)
    setup(manager, Options(storage_class=storage_class))
    async with running(manager, timeout=300), local_webhooks.installed(manager, admin, namespace=namespace):
        spec = DevboxV1Alpha1Spec(
            image="dev:1",
            resource={"cpu": Quantity("1"), "memory": Quantity("1Gi")},
            network=devbox().spec.network,
            squash=True,
        )
        created = await client.create(DevboxV1Alpha1(metadata=ObjectMeta(name="it"), spec=spec))
        old = await client.wait_for(created, Field("status.phase").equals("Running"), timeout=SOON)
        hub = await client.get(Devbox, "it")
        assert old is not None
        assert (hub.metadata.uid, hub.spec.state) == (created.metadata.uid, "Running")
        assert old.status.network.node_port == hub.status.network.node_port > 0
        assert [each.status for each in old.status.commit_history] == ["Pending"]
        assert old.spec.squash

        # A client of the older version may replace all of it, and leave out the annotation that has the rest.
        ready = await client.wait_for(hub, condition("Ready"), timeout=SOON)
        assert ready is not None
        replaced = await client.get(DevboxV1Alpha1, "it")
        replaced.metadata.annotations, replaced.metadata.finalizers = {}, []
        await client.update(replaced)
        same = Field("status.contentID").equals(ready.status.content_id) & condition("Ready")
        again = await client.wait_for(hub, same, timeout=SOON)
        assert again is not None
        assert again.status.network == ready.status.network

        # Paused is more than the older version knows. It stays when a client of that changes something else.
        await client.patch(Devbox, "it", MergePatch({"spec": {"state": "Paused"}}))
        await client.wait_for(hub, Field("status.phase").equals("Paused"), timeout=SOON)
        paused = await client.get(DevboxV1Alpha1, "it")
        assert (paused.spec.state, paused.status.phase) == ("Stopped", "Stopped")
        paused.spec.image = "dev:2"
        await client.patch(paused)
        hub = await client.get(Devbox, "it")
        assert (hub.spec.state, hub.spec.image, hub.status.state) == ("Paused", "dev:2", "Paused")

        # The rules about states hold in the older version, too: here of a Devbox that no operator reconciles.
        elsewhere = await admin.create(older(devbox()))
        for status in ("Committing", "Failed"):
            with pytest.raises(Invalid, match=r"spec.state.*the state cannot be changed"):
                await admin.patch(DevboxV1Alpha1, elsewhere.key, STOPPED)
            records: JSONObject = {"x": {"baseImage": "dev:1", "commitStatus": status}}
            reported: JSONObject = {"contentID": "x", "commitRecords": records}
            await admin.status.patch(Devbox, elsewhere.key, MergePatch({"status": reported}))
        assert (await admin.patch(DevboxV1Alpha1, elsewhere.key, STOPPED)).spec.state == "Stopped"
        await admin.delete(elsewhere)

        # And so does what is admitted.
        tailnet = devbox(name="other", namespace=namespace, network="Tailnet")
        for refused in (tailnet, older(tailnet)):
            with pytest.raises(Invalid, match=r"spec.network.type: Unsupported value"):
                await client.create(refused)


def older(made: Devbox) -> DevboxV1Alpha1:
    converted = DevboxV1Alpha1.from_hub(made)
    converted.metadata = made.metadata
    return converted


def test_only_what_one_version_does_not_have_is_stashed() -> None:
    of_the_present = ["storageLimit", "runtimeClassName", "nodeSelector", "state"]
    of_the_older = ["squash", "runtimeRef"]
    status = ["observedGeneration", "state", "contentID", "node", "commitRecords", "restarts", "lastContainerStatus"]
    assert_round_trips(
        DevboxV1Alpha1,
        Devbox,
        stashed=[
            *(f"spec.{name}" for name in of_the_present + of_the_older),
            *(f"status.{name}" for name in status),
            "status.conditions",
            "status.network.uniqueID",
            "status.phase",
            "status.commitHistory",
        ],
        examples=25,
    )
