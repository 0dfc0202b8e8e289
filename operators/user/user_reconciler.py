"""Makes the workspace of a User."""

from __future__ import annotations

from kubewright import CachedClient, Recorder
from kubewright.patterns import ObjectReconciler

from .names import FINALIZER
from .types import User


class UserReconciler(ObjectReconciler[User]):
    """Reconciles Users."""

    finalizer = FINALIZER

    def __init__(self, client: CachedClient, events: Recorder) -> None:
        super().__init__(client)
        self.events = events

    async def converge(self, user: User) -> None:
        """Make what a user has."""
        user.status.phase = "Pending"

    async def cleanup(self, user: User) -> None:
        """Delete the workspace, and wait until it is gone."""
