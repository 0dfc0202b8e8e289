"""Two controllers of ReplicaSets, one that labels Kubernetes' own and one that does all that a ReplicaSet does, and two
webhooks for pods.
"""

from .labeller import HelloReconciler
from .program import setup
from .replicas import PodSetReconciler
from .types import PodSet, PodSetSpec, PodSetStatus
from .webhooks import annotate_pod, check_pod

__all__ = [
    "HelloReconciler",
    "PodSet",
    "PodSetReconciler",
    "PodSetSpec",
    "PodSetStatus",
    "annotate_pod",
    "check_pod",
    "setup",
]
