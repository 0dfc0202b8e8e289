"""ChaosPod: an operator that stops its pods again and again."""

from .program import setup
from .reconciler import ChaosPodReconciler
from .types import ChaosPod, ChaosPodSpec, ChaosPodStatus
from .webhooks import check_next_stop, default_next_stop

__all__ = [
    "ChaosPod",
    "ChaosPodReconciler",
    "ChaosPodSpec",
    "ChaosPodStatus",
    "check_next_stop",
    "default_next_stop",
    "setup",
]
