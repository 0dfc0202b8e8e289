"""User: an operator that gives each user a workspace, and roles in those of others by request."""

from .options import Options
from .program import setup
from .types import KubeConfigSecret, User, UserSpec, UserStatus
from .user_reconciler import UserReconciler

__all__ = [
    "KubeConfigSecret",
    "Options",
    "User",
    "UserReconciler",
    "UserSpec",
    "UserStatus",
    "setup",
]
