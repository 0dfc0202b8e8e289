"""The states of a reflector, each with the data it needs, and every transition between them.

    Empty ──ListStarted──→ Listing ──ListCompleted──→ Watching ──Resumed──→ Watching
      ↑                       │                          │
      └──────────── Blocked, RevisionLost ───────────────┘    a Watching that is blocked keeps its revision

A watch without a revision, or a list that is complete and has an error, cannot be expressed.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

BlockedReason: TypeAlias = Literal["absent", "forbidden", "unreachable", "failed"]


class Blocked(Struct, frozen=True, eq=False):
    """Why a reflector makes no progress."""

    reason: BlockedReason
    """absent: the kind is not installed; forbidden: a permission is not granted; unreachable: the server or the network
    fails; failed: an unexpected error."""
    error: Exception
    since: float
    """When the watch was last known to work, by the clock of the loop."""
    note: str = ""

    def __str__(self) -> str:
        return f"{self.error}; {self.note}" if self.note else str(self.error)


class Empty(Struct, frozen=True, eq=False):
    """Nothing is known: the next attempt begins with a list."""

    blocked: Blocked | None = None


class Listing(Struct, eq=False):
    """The objects that exist arrive: `count` so far."""

    count: int = 0


class Watching(Struct, eq=False):
    """The list is complete and changes arrive: everything up to `revision` is known."""

    revision: int
    blocked: Blocked | None = None
    is_silent: bool = False
    """Whether the present connection has not sent anything yet."""


State: TypeAlias = Empty | Listing | Watching


class ListStarted(Struct, frozen=True):
    """The server begins to send what exists."""


class ListCompleted(Struct, frozen=True):
    """Everything that existed at `revision` has been sent."""

    revision: int


class Resumed(Struct, frozen=True):
    """A watch from the known revision is open."""


class RevisionLost(Struct, frozen=True):
    """The known revision cannot be used any more: it expired, or the server's revisions started over."""


Transition: TypeAlias = ListStarted | ListCompleted | Resumed | RevisionLost | Blocked


def after(state: State, transition: Transition) -> State:
    """The state that follows."""
    match state, transition:
        case _, ListStarted():
            return Listing()
        case Listing(), ListCompleted(revision):
            return Watching(revision)
        case Watching(revision), Resumed():
            return Watching(revision, is_silent=True)
        case Watching(revision), Blocked("forbidden" | "unreachable" | "failed"):
            return Watching(revision, transition)
        case _, Blocked():
            # A list that was interrupted is begun again, and of an absent kind nothing is left to resume.
            return Empty(transition)
        case _, RevisionLost():
            return Empty()
        case _:
            raise ValueError(f"a reflector that is {state} cannot take {transition}")
