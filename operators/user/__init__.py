"""User: an operator that gives each user a workspace, and roles in those of others by request."""

from .context import Quota
from .options import Options
from .program import setup
from .request_types import Deleterequest, DeleterequestSpec, Operationrequest, OperationrequestSpec
from .types import KubeConfigSecret, User, UserSpec, UserStatus
from .user_reconciler import UserReconciler
from .webhooks import check_user, default_user

__all__ = [
    "Deleterequest",
    "DeleterequestSpec",
    "KubeConfigSecret",
    "Operationrequest",
    "OperationrequestSpec",
    "Options",
    "Quota",
    "User",
    "UserReconciler",
    "UserSpec",
    "UserStatus",
    "check_user",
    "default_user",
    "setup",
]
