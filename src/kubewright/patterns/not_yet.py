"""`NotYet`: the reconcile waits for something, and nothing is wrong.

    if claim.status.phase != "Bound":
        raise NotYet(f"the claim {claim.metadata.name} is {claim.status.phase}", after=10)

It ends the work on an object as an exception does, from any depth, and is not an error: nothing is logged as one, no
back-off grows, and the object is reconciled again after the given time or when something changes.
"""

from __future__ import annotations

from datetime import timedelta
from math import inf

from kubewright.controller import Result


class NotYet(Exception):
    """Reconcile again after `after` (seconds, or a timedelta). `reason` is a CamelCase word for conditions.

    `warn` is for what waits for a person to act: a step of a pipeline then records a Warning event, too.
    """

    def __init__(
        self, message: str, *, after: float | timedelta = 10, reason: str = "Waiting", warn: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.after = after.total_seconds() if isinstance(after, timedelta) else float(after)
        self.reason = reason
        self.warn = warn
        if not 0 < self.after < inf:
            raise ValueError(f"NotYet({message!r}, after={after!r}): expected a number of seconds above 0")

    @property
    def result(self) -> Result:
        """What a reconciler returns for it."""
        return Result(requeue_after=self.after)
