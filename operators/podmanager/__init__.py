"""PodManager: an operator that keeps a number of identical pods running."""

from .program import setup
from .reconciler import PodManagerReconciler
from .types import PodManager, PodManagerSpec, PodManagerStatus

__all__ = ["PodManager", "PodManagerReconciler", "PodManagerSpec", "PodManagerStatus", "setup"]
