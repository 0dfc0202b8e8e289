"""ReplicationControllers, by kube-controller-manager and by ours: this test plays the kubelet."""

from __future__ import annotations

from tests.conformance.workload_steps import events, make_ready, pods, until

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ReplicationController
from kubewright.api.markers import JSONValue
from kubewright.client import Client


async def test_a_replication_controller_keeps_its_number_of_pods(client: Client) -> None:
    labels: JSONValue = {"app": "web"}
    template: JSONValue = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    given: JSONValue = {"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": labels, "template": template}}
    made = await client.create(from_json(ReplicationController, given))
    first, second = await pods(client, 2)
    (owner,) = first.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("ReplicationController", made.metadata.uid, True)
    assert (first.metadata.generate_name, first.metadata.labels) == ("web-", {"app": "web"})

    await make_ready(client, first)
    serving = (await until(client, made, lambda found: found.status.ready_replicas == 1)).status
    assert (serving.replicas, serving.fully_labeled_replicas, serving.available_replicas) == (2, 2, 1)
    assert (serving.observed_generation, serving.conditions) == (1, [])
    assert await events(client, made, 2) == [
        ("Normal", "SuccessfulCreate", f"Created pod: {pod.metadata.name}", "replication-controller")
        for pod in (first, second)
    ]

    # The one that does not serve goes first.
    made.spec.replicas = 1
    await client.patch(made)
    assert [pod.metadata.name for pod in await pods(client, 1)] == [first.metadata.name]
    smaller = await until(client, made, lambda found: found.status.replicas == 1)
    assert smaller.status.observed_generation == 2
