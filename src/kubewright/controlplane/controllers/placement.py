"""Whether a pod fits a node, and the scheduler's messages when it does not.

It checks cordons, taints, nodeSelector, required node affinity, and resources: requests against allocatable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubewright.api.core.v1 import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration
from kubewright.api.quantity import Quantity
from kubewright.api.selectors import OPERATORS, LabelMatcher, LabelRequirement
from kubewright.controlplane.controllers.pods import ENDED

_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_ZERO = Quantity(0)


def objections(pod: Pod, node: Node, neighbours: Iterable[Pod]) -> list[str]:
    """Why the pod does not fit the node, which runs `neighbours`; empty when it does."""
    if node.spec.unschedulable and not _tolerates(pod, _UNSCHEDULABLE):
        return ["node(s) were unschedulable"]
    if not all(_tolerates(pod, taint) for taint in node.spec.taints if taint.effect != "PreferNoSchedule"):
        return ["node(s) had untolerated taint(s)"]
    if not _is_selected(pod, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    return _lacking(pod, node, [other for other in neighbours if other.status.phase not in ENDED])


def refusal(nodes: int, reasons: Iterable[str]) -> str:
    """The message of the condition PodScheduled when no node fits the pod."""
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    if not nodes:
        return "no nodes available to schedule pods"
    summary = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {summary}."


def is_on(selector: NodeSelector, node: Node) -> bool:
    """Whether a node is one of those that the selector selects."""
    return any(_matches(term, node) for term in selector.node_selector_terms)


def covers(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration is for this taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (toleration.value or "") == (taint.value or "")


def _tolerates(pod: Pod, taint: Taint) -> bool:
    return any(covers(toleration, taint) for toleration in pod.spec.tolerations)


def _is_selected(pod: Pod, node: Node) -> bool:
    if not pod.spec.node_selector.items() <= node.metadata.labels.items():
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or is_on(required, node)


def _matches(term: NodeSelectorTerm, node: Node) -> bool:
    # A term without any requirement matches nothing.
    return (
        bool(term.match_expressions or term.match_fields)
        and _holds(term.match_expressions, node.metadata.labels)
        and _holds(term.match_fields, {"metadata.name": node.metadata.name})
    )


def _holds(requirements: Iterable[NodeSelectorRequirement], labels: Mapping[str, str]) -> bool:
    return LabelMatcher(
        LabelRequirement(one.key, OPERATORS[one.operator], tuple(one.values)) for one in requirements
    ).matches(labels)


def _lacking(pod: Pod, node: Node, neighbours: list[Pod]) -> list[str]:
    room = node.status.allocatable
    reasons = []
    if len(neighbours) + 1 > room.get("pods", _ZERO):
        reasons.append("Too many pods")
    for resource in _requested_resources(pod):
        used = sum((_request(other, resource) for other in neighbours), _ZERO)
        if used + _request(pod, resource) > room.get(resource, _ZERO):
            reasons.append(f"Insufficient {resource}")
    return reasons


def _requested_resources(pod: Pod) -> list[str]:
    containers = [*pod.spec.containers, *pod.spec.init_containers]
    names = sorted({name for container in containers for name in container.resources.requests})
    return [name for name in names if _request(pod, name)]


def _request(pod: Pod, resource: str) -> Quantity:
    """The sum of what all containers request, or the maximum of the init containers if that is more."""
    together = sum((container.resources.requests.get(resource, _ZERO) for container in pod.spec.containers), _ZERO)
    before = (container.resources.requests.get(resource, _ZERO) for container in pod.spec.init_containers)
    return max((together, *before))
