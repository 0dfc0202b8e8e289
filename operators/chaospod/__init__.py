"""ChaosPod: an operator that stops its pods again and again."""

from .program import setup
from .reconciler import ChaosPodReconciler
from .types import ChaosPod, ChaosPodSpec, ChaosPodStatus

__all__ = ["ChaosPod", "ChaosPodReconciler", "ChaosPodSpec", "ChaosPodStatus", "setup"]
