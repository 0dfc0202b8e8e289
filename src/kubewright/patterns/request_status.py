"""`RequestStatus`: how far a request has come."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from kubewright.api import Model, Object, Time
from kubewright.api.markers import Choice, Rule

Phase: TypeAlias = Literal["Pending", "Processing", "Completed", "Failed"]

FINISHED: Final[tuple[Phase, ...]] = ("Completed", "Failed")
"""The phases of requests that are over."""

# A default of {} is checked as it stands: it has no phase yet.
ONLY_FORWARD: Final = Rule(
    "!has(self.phase) || !has(oldSelf.phase) || self.phase == oldSelf.phase || oldSelf.phase == 'Pending' "
    "|| (oldSelf.phase == 'Processing' && self.phase != 'Pending')",
    message="a phase only goes from Pending to Processing, and on to Completed or Failed, which are final",
)


_MAX_MESSAGE = 32768  # as that of a condition


class RequestStatus(Model, rules=[ONLY_FORWARD]):
    """The status of a request. Derive from it to report more.

    The API server lets no request go back to an earlier phase, whichever client writes the status.
    """

    phase: Choice[Phase] = "Pending"
    message: str = ""
    start_time: Time | None = None
    completion_time: Time | None = None
    attempts: int = 0
    """How often it was begun: more than once after errors that may pass, and when another process took over."""
    observed_generation: int = 0

    @property
    def is_finished(self) -> bool:
        """Whether its phase is final."""
        return self.phase in FINISHED


def status_of(obj: Object) -> RequestStatus:
    """The status of a request. Raises TypeError for an object of a kind whose status is no `RequestStatus`."""
    status: object = getattr(obj, "status", None)
    if not isinstance(status, RequestStatus):
        raise TypeError(f"{obj.kind} is no request: its status must derive from RequestStatus")
    return status


def storable(message: str) -> str:
    """What a status can hold, of whatever length and origin: a request would not end that cannot say how."""
    message = str(message).encode(errors="replace").decode()
    return message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 3]}..."
