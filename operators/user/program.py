"""What the operator consists of."""

from __future__ import annotations

from kubewright import Manager, controller_for

from .options import Options
from .types import User
from .user_reconciler import UserReconciler

# Its ServiceAccount and its namespace are called after it, and must not be those of a User.
NAME = "user-operator"


def setup(manager: Manager, options: Options | None = None) -> None:
    """Users with their workspaces."""
    add_users(manager, options or Options())


def add_users(manager: Manager, options: Options) -> None:
    """One controller, which is also woken by what a User owns."""
    reconciler = UserReconciler(manager.client, manager.recorder(NAME))
    controller_for(manager, User, workers=4).complete(reconciler)
