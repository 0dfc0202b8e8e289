"""Which of several pods is the least loss: the order in which a workload that shrinks deletes them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kubewright.api.core.v1 import Pod
from kubewright.controlplane.controllers.pods import is_ready
from kubewright.patterns.conditions import get_condition

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def in_order_of_deletion(pods: Iterable[Pod]) -> list[Pod]:
    """The pods in the order of deletion: unscheduled, pending, not ready, cheap, crowded, ready or created last."""
    neighbours: dict[str, int] = {}
    pods = list(pods)
    for pod in pods:
        neighbours[pod.spec.node_name or ""] = neighbours.get(pod.spec.node_name or "", 0) + 1

    def key(pod: Pod) -> tuple[bool, int, bool, int, int, float, int, float]:
        ready = get_condition(pod, "Ready")
        return (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase or "Pending", 0),
            is_ready(pod),
            _deletion_cost(pod),
            -neighbours[pod.spec.node_name or ""],
            -_seconds(ready.last_transition_time if ready is not None and is_ready(pod) else None),
            -max((status.restart_count for status in pod.status.container_statuses), default=0),
            -_seconds(pod.metadata.creation_timestamp),
        )

    return sorted(pods, key=key)


def _deletion_cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(_DELETION_COST, "0"))
    except ValueError:
        return 0


def _seconds(time: datetime | None) -> float:
    return time.timestamp() if time is not None else float("inf")
