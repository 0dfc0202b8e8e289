"""DaemonSets, by kube-controller-manager and by ours: these tests play scheduler and kubelet."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.conformance.workload_steps import events, make_ready, pods, until

from kubewright.api.apps.v1 import ControllerRevision, DaemonSet
from kubewright.api.codec import from_json, to_json
from kubewright.api.core.v1 import Node, Pod, ServiceAccount, Taint
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import Client, StrategicMergePatch
from kubewright.client.wait import exists
from kubewright.testing.namespaces import unique_name

TOLERATED = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
]


@pytest.fixture
async def client(client: Client) -> Client:
    """Admits pods."""
    await client.wait_for(ServiceAccount, "default", exists, timeout=60)
    return client


@pytest.fixture
async def nodes(admin: Client, request: pytest.FixtureRequest) -> AsyncIterator[list[Node]]:
    """Two nodes of the test's own, which carry its name as a label."""
    name = unique_name(request.node.name)
    made = [
        await admin.create(from_json(Node, {"metadata": {"name": f"{name}-{number}", "labels": {"test": name}}}))
        for number in (1, 2)
    ]
    yield made
    for node in made:
        await admin.delete(Node, node.metadata.name)


def _place(pod: Pod) -> str:
    """The node that a pod is meant for."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    assert required is not None
    return required.node_selector_terms[0].match_fields[0].values[0]


async def test_a_daemon_set_has_a_pod_on_each_node_that_fits(client: Client, nodes: list[Node]) -> None:
    spec: JSONObject = {
        "nodeSelector": {"test": nodes[0].metadata.labels["test"]},
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [{"name": "main", "image": "log:1"}],
    }
    template: JSONValue = {"metadata": {"labels": {"app": "log"}}, "spec": spec}
    selector: JSONValue = {"matchLabels": {"app": "log"}}
    given: JSONValue = {"metadata": {"name": "log"}, "spec": {"selector": selector, "template": template}}
    made = await client.create(from_json(DaemonSet, given))
    found = await pods(client, 2)
    (revision,) = await client.list(ControllerRevision)
    hashed = revision.metadata.labels["controller-revision-hash"]
    assert revision.metadata.name == f"log-{hashed}"
    one = found[0]
    assert one.metadata.generate_name == "log-"
    assert one.metadata.labels == {"app": "log", "controller-revision-hash": hashed, "pod-template-generation": "1"}
    assert [(each.key, each.effect) for each in one.spec.tolerations[1:]] == TOLERATED
    places = [to_json(pod.spec.affinity) for pod in found]
    assert sorted(places, key=str) == [
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.metadata.name]}]}
                    ]
                }
            }
        }
        for node in nodes
    ]
    await make_ready(client, one)
    some = await until(client, made, lambda found: found.status.number_ready == 1)
    status = some.status
    assert (status.desired_number_scheduled, status.current_number_scheduled, status.number_misscheduled) == (2, 2, 0)
    assert (status.updated_number_scheduled, status.number_available, status.number_unavailable) == (2, 1, 1)
    assert await events(client, made, 2) == [
        ("Normal", "SuccessfulCreate", f"Created pod: {pod.metadata.name}", "daemonset-controller") for pod in found
    ]

    # A new template: the pod that does not serve is replaced at once, the other one once its replacement serves.
    some.spec.template.spec.containers[0].image = "log:2"
    await client.patch(some)
    (new,) = await pods(client, 1, lambda pod: pod.spec.containers[0].image == "log:2")
    assert one.metadata.name in [pod.metadata.name for pod in await client.list(Pod)]
    await make_ready(client, new)
    both = await pods(client, 2, lambda pod: pod.spec.containers[0].image == "log:2")
    for pod in both:
        await make_ready(client, pod)
    await until(client, made, lambda found: found.status.number_available == 2)
    assert sorted(each.revision for each in await client.list(ControllerRevision)) == [1, 2]

    # A node that pods must leave.
    for pod in both:
        await client.bind(pod, _place(pod))
    node = await client.get(Node, nodes[0].metadata.name)
    node.spec.taints = [*node.spec.taints, Taint(key="example.com/away", effect="NoExecute")]
    await client.patch(node)
    (left,) = await pods(client, 1, lambda pod: pod.metadata.deletion_timestamp is None)
    assert left.spec.node_name == nodes[1].metadata.name
    less = await until(client, made, lambda found: found.status.desired_number_scheduled == 1)
    assert less.status.current_number_scheduled == 1


async def test_a_daemon_set_with_surge_has_the_new_pod_before_the_old_one_goes(
    client: Client, nodes: list[Node]
) -> None:
    spec: JSONObject = {
        "nodeSelector": {"test": nodes[0].metadata.labels["test"]},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "log:1"}],
    }
    given: JSONValue = {
        "metadata": {"name": "log"},
        "spec": {
            "selector": {"matchLabels": {"app": "log"}},
            "template": {"metadata": {"labels": {"app": "log"}}, "spec": spec},
            "updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        },
    }
    made = await client.create(from_json(DaemonSet, given))
    old = await pods(client, 2)
    for pod in old:
        await client.bind(pod, _place(pod))
        await make_ready(client, pod)
    ready = await until(client, made, lambda found: found.status.number_available == 2)

    ready.spec.template.spec.containers[0].image = "log:2"
    await client.patch(ready)
    (first,) = await pods(client, 1, _is_new)
    waiting = await until(client, made, lambda found: found.status.observed_generation == 2)
    # While both are there, the old one counts.
    assert (waiting.status.updated_number_scheduled, waiting.status.number_available) == (None, 2)
    # A pod of the old template that does not serve any more is not worth waiting for.
    other = next(pod for pod in old if _place(pod) != _place(first))
    not_ready: JSONValue = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T03:04:06Z"}
    await client.status.patch(other, StrategicMergePatch({"status": {"conditions": [not_ready]}}))
    assert len({_place(pod) for pod in await pods(client, 2, _is_new)}) == 2
    await pods(client, 0, lambda pod: pod.metadata.uid == other.metadata.uid and not pod.metadata.deletion_timestamp)
    assert len([pod for pod in await client.list(Pod) if not pod.metadata.deletion_timestamp]) == 3
    for pod in await pods(client, 2, _is_new):
        await make_ready(client, pod)
    await pods(client, 0, lambda pod: not _is_new(pod) and not pod.metadata.deletion_timestamp)
    for pod in old:
        await client.delete(pod, grace_period=0, missing_ok=True)
    done = await until(client, made, lambda found: found.status.updated_number_scheduled == 2)
    assert (done.status.number_available, done.status.desired_number_scheduled) == (2, 2)

    # A node that is none for the pods any more.
    for pod in await pods(client, 2, _is_new):
        await client.bind(pod, _place(pod))
    node = await client.get(Node, _place(first))
    node.metadata.labels["test"] = "other"
    await client.patch(node)
    (left,) = await pods(client, 1, lambda pod: not pod.metadata.deletion_timestamp)
    assert _place(left) != _place(first)


def _is_new(pod: Pod) -> bool:
    return pod.spec.containers[0].image == "log:2"
