"""PodManager: an operator that keeps a number of identical pods running."""

from .program import setup
from .reconciler import PodManagerReconciler
from .types import PodManager, PodManagerSpec, PodManagerStatus
from .v1beta1 import PodManagerV1Beta1, PodManagerV1Beta1Spec, PodManagerV1Beta1Status

__all__ = [
    "PodManager",
    "PodManagerReconciler",
    "PodManagerSpec",
    "PodManagerStatus",
    "PodManagerV1Beta1",
    "PodManagerV1Beta1Spec",
    "PodManagerV1Beta1Status",
    "setup",
]
