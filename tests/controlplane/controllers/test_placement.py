from __future__ import annotations

from collections.abc import Mapping

import pytest

from kubewright.api.core.v1 import (
    Affinity,
    Container,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Taint,
    Toleration,
)
from kubewright.api.meta import ObjectMeta
from kubewright.api.quantity import Quantity
from kubewright.controlplane.controllers.placement import objections, refusal


def pod(phase: str = "Pending", init: str = "", **requests: str) -> Pod:
    amounts = {name: Quantity(amount) for name, amount in requests.items()}
    before = [Container(name="i", resources=ResourceRequirements(requests={"cpu": Quantity(init)}))] if init else []
    subject = Pod(
        spec=PodSpec(
            containers=[Container(name="c", resources=ResourceRequirements(requests=amounts))], init_containers=before
        )
    )
    subject.status = PodStatus(phase="Succeeded" if phase == "Succeeded" else "Pending")
    return subject


def node(labels: Mapping[str, str] = {}, **allocatable: str) -> Node:
    return Node(
        metadata=ObjectMeta(name="node-1", labels=dict(labels)),
        spec=NodeSpec(),
        status=NodeStatus(
            allocatable={name: Quantity(amount) for name, amount in {"pods": "110", **allocatable}.items()}
        ),
    )


def test_an_empty_node_accepts_a_pod_without_constraints() -> None:
    assert objections(pod(), node(), []) == []


def test_a_node_that_has_not_reported_its_room_accepts_none() -> None:
    assert objections(pod(), Node(metadata=ObjectMeta(name="bare")), []) == ["Too many pods"]


def test_a_cordoned_node_accepts_only_pods_that_tolerate_it() -> None:
    cordoned = node()
    cordoned.spec.unschedulable = True
    stubborn = pod()
    stubborn.spec.tolerations = [Toleration(operator="Exists")]

    assert objections(pod(), cordoned, []) == ["node(s) were unschedulable"]
    assert objections(stubborn, cordoned, []) == []


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        (Toleration(key="gpu", value="a", effect="NoSchedule"), True),
        (Toleration(key="gpu", value="a"), True),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="gpu", value="b"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="gpu", value="a", effect="NoExecute"), False),
    ],
)
def test_a_taint_keeps_out_pods_that_do_not_tolerate_it(toleration: Toleration, fits: bool) -> None:
    tainted = node()
    tainted.spec.taints = [
        Taint(key="gpu", value="a", effect="NoSchedule"),
        Taint(key="slow", effect="PreferNoSchedule"),
    ]
    subject = pod()
    subject.spec.tolerations = [toleration]

    assert objections(subject, tainted, []) == ([] if fits else ["node(s) had untolerated taint(s)"])


def test_a_node_selector_requires_all_its_labels() -> None:
    subject = pod()
    subject.spec.node_selector = {"zone": "a", "disk": "ssd"}

    assert objections(subject, node({"zone": "a", "disk": "ssd", "more": ""}), []) == []
    assert objections(subject, node({"zone": "a"}), []) == ["node(s) didn't match Pod's node affinity/selector"]


@pytest.mark.parametrize(
    ("requirement", "fits"),
    [
        (NodeSelectorRequirement(key="cores", operator="In", values=["8", "16"]), True),
        (NodeSelectorRequirement(key="cores", operator="NotIn", values=["8"]), False),
        (NodeSelectorRequirement(key="cores", operator="Exists"), True),
        (NodeSelectorRequirement(key="cores", operator="DoesNotExist"), False),
        (NodeSelectorRequirement(key="cores", operator="Gt", values=["4"]), True),
        (NodeSelectorRequirement(key="cores", operator="Lt", values=["4"]), False),
        (NodeSelectorRequirement(key="missing", operator="Gt", values=["4"]), False),
    ],
)
def test_required_node_affinity_is_respected(requirement: NodeSelectorRequirement, fits: bool) -> None:
    term = NodeSelectorTerm(
        match_expressions=[requirement],
        match_fields=[NodeSelectorRequirement(key="metadata.name", operator="In", values=["node-1"])],
    )
    subject = pod()
    subject.spec.affinity = Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=NodeSelector(
                node_selector_terms=[NodeSelectorTerm(), term]
            )
        )
    )

    assert bool(objections(subject, node({"cores": "8"}), [])) is not fits


def test_requests_must_fit_beside_those_of_existing_pods() -> None:
    roomy = node(cpu="2", memory="1Gi", pods="3")
    neighbours = [pod(cpu="1500m"), pod("Succeeded", cpu="2")]

    assert objections(pod(cpu="500m", memory="1Gi"), roomy, neighbours) == []
    assert objections(pod(cpu="501m", memory="2Gi"), roomy, neighbours) == ["Insufficient cpu", "Insufficient memory"]
    assert objections(pod(init="600m"), roomy, neighbours) == ["Insufficient cpu"]
    assert objections(pod(), roomy, [pod(), pod(), pod()]) == ["Too many pods"]


def test_a_refusal_counts_the_reasons() -> None:
    reasons = ["node(s) were unschedulable", "Insufficient cpu", "Insufficient cpu"]

    assert refusal(3, reasons) == "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
    assert refusal(0, []) == "no nodes available to schedule pods"
