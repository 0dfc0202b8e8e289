"""Which Users may be deleted by a request, and which one is being deleted by one."""

from __future__ import annotations

from kubewright import CachedClient

from .names import STATUS, TYPE
from .request_types import Deleterequest
from .types import User


class DeletionGate:
    """Keeps Users from being deleted that nobody has marked for it: a request alone may be a slip of the pen."""

    def __init__(self, *, is_closed: bool = True) -> None:
        """With `is_closed=False` every User may be deleted."""
        self._is_closed = is_closed

    def admits(self, user: User) -> bool:
        """Whether the User may be deleted."""
        labels = user.metadata.labels
        return not self._is_closed or labels.get(STATUS) == "Deleted" or labels.get(TYPE) == "Group"

    async def deletion_of(self, client: CachedClient, user: User) -> Deleterequest | None:
        """The request by which the User is being deleted, if there is one."""
        if not self.admits(user):
            return None
        found = await client.list(Deleterequest, fields={"spec.user": user.metadata.name})
        return next((each for each in found if each.status.phase == "Processing"), None)
