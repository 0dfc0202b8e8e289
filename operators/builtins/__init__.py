"""Two controllers of ReplicaSets: one that labels Kubernetes' own, and one that does all that a ReplicaSet does."""

from .labeller import HelloReconciler
from .program import setup
from .replicas import PodSetReconciler
from .types import PodSet, PodSetSpec, PodSetStatus

__all__ = ["HelloReconciler", "PodSet", "PodSetReconciler", "PodSetSpec", "PodSetStatus", "setup"]
