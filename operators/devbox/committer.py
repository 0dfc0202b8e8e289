"""`Committer`: keeps the content of a Devbox that is stopped, and has the next pod begin from it.

What it is asked follows from the status of the Devbox, over and over: it remembers nothing that a restart could lose.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from kubewright.api.core.v1 import PodSpec

from .types import Devbox


class Committing(NamedTuple):
    """The commit is under way, and `message` says how far. The operator asks again `after` so many seconds, or when one
    of its objects changes.
    """

    message: str
    after: float | None = None


class Committed(NamedTuple):
    """The content is kept, whatever becomes of the volume that it was committed from."""


class CommitFailed(NamedTuple):
    """The attempt has failed, and the volume has its content as before."""

    message: str


CommitProgress: TypeAlias = Committing | Committed | CommitFailed


class Committer(Protocol):
    """Commits contents. Every method may be called any number of times."""

    def reference(self, devbox: Devbox, content_id: str) -> str:
        """What the commit of a content is called: the `commitImage` of its record."""
        ...

    def is_commit(self, devbox: Devbox, reference: str) -> bool:
        """Whether it is what a commit of the Devbox is called, and not an image."""
        ...

    async def is_there(self, devbox: Devbox, reference: str) -> bool:
        """Whether there is such a commit, and a pod can begin from it."""
        ...

    async def commit(self, devbox: Devbox) -> CommitProgress:
        """Begin to commit the present content, or report how far that is. No pod uses the content meanwhile."""
        ...

    async def cancel(self, devbox: Devbox) -> bool:
        """End an attempt to commit, whatever came of it. True when nothing of it is left that reads the content."""
        ...

    def resume(self, devbox: Devbox, pod: PodSpec) -> None:
        """Have a pod of the present content begin from the `baseImage` of its record."""

    async def discard(self, devbox: Devbox, reference: str) -> None:
        """Remove a commit that no content begins from any more."""

    async def latest(self, devbox: Devbox) -> str | None:
        """The newest commit of the Devbox, for one whose status was lost."""
