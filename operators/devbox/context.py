"""What the steps of one reconcile of a Devbox share."""

from __future__ import annotations

from kubewright import CachedClient, Client, Recorder
from kubewright.api.core.v1 import Pod
from kubewright.patterns import Context, Done, get_condition

from .committer import Committer
from .options import Options
from .types import Devbox

SYNCED = Done(reason="SyncSucceeded")
"""What the condition of a step says that has succeeded."""


class DevboxContext(Context[Devbox]):
    """A Devbox that has been initialised, and what is found out about it."""

    pod: Pod | None = None
    """As the pod step has left it."""
    again: float | None = None
    """After how many seconds the Devbox is to be reconciled if nothing happens before; 0 for at once."""

    def __init__(
        self, devbox: Devbox, client: CachedClient, events: Recorder, committer: Committer, options: Options
    ) -> None:
        super().__init__(devbox, client, events)
        self.committer = committer
        self.options = options
        self.live: Client = client.uncached()
        """Reads from the server, for what must not be decided by a cache that is behind or shows only a part."""

    def degraded(self, condition: str, reason: str, message: str) -> Done:
        """What a step returns of which users are to know. There is an event when its condition says it first."""
        reported = get_condition(self.object, condition)
        if reported is None or reported.reason != reason:
            self.events.warning(self.object, reason, message)
        return Done(message, reason=reason, degraded=True)

    def reconcile_after(self, seconds: float) -> None:
        """Have the Devbox reconciled again then, unless it is to be sooner anyway."""
        self.again = seconds if self.again is None else min(self.again, seconds)
