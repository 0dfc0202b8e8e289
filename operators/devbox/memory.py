"""A committer and a registry that are in memory, for tests and demonstrations: they end with the process."""

from __future__ import annotations

from kubewright.api.core.v1 import PodSpec

from .committer import CommitFailed, CommitProgress, Committed, Committing
from .registry import ImageMissing
from .types import Devbox


class InMemoryRegistry:
    """Images by their names, see `Registry`."""

    def __init__(self, host: str = "registry.local") -> None:
        self.host = host
        self.images: dict[str, str] = {}
        """What each image has."""

    async def tag(self, source: str, target: str) -> None:
        """See `Registry`."""
        if source not in self.images:
            raise ImageMissing(f"the registry has no image {source}")
        self.images[target] = self.images[source]


class InMemoryCommitter:
    """Commits contents to images, see `Committer`. An attempt takes `polls` calls, and the first `failures` fail."""

    def __init__(self, registry: InMemoryRegistry, *, polls: int = 1, failures: int = 0) -> None:
        self.registry = registry
        self.polls = polls
        self.failures = failures
        self._polled: dict[str, int] = {}

    def reference(self, devbox: Devbox, content_id: str) -> str:
        """See `Committer`."""
        return f"{self.registry.host}/{devbox.metadata.namespace}/{devbox.metadata.name}:{content_id}"

    def is_commit(self, devbox: Devbox, reference: str) -> bool:
        """See `Committer`."""
        return reference.startswith(self.reference(devbox, ""))

    async def is_there(self, devbox: Devbox, reference: str) -> bool:
        """See `Committer`."""
        return reference in self.registry.images

    async def commit(self, devbox: Devbox) -> CommitProgress:
        """See `Committer`."""
        content_id = devbox.status.content_id
        polled = self._polled[devbox.metadata.uid] = self._polled.get(devbox.metadata.uid, 0) + 1
        if polled <= self.polls:
            return Committing("the image is being pushed", after=1)
        if self.failures > 0:
            self.failures -= 1
            return CommitFailed("the registry refused the image")
        self.registry.images[self.reference(devbox, content_id)] = content_id
        return Committed()

    async def cancel(self, devbox: Devbox) -> bool:
        """See `Committer`."""
        self._polled.pop(devbox.metadata.uid, None)
        return True

    def resume(self, devbox: Devbox, pod: PodSpec) -> None:
        """See `Committer`: the pod has the image of the record."""

    async def discard(self, devbox: Devbox, reference: str) -> None:
        """See `Committer`."""
        self.registry.images.pop(reference, None)

    async def latest(self, devbox: Devbox) -> str | None:
        """See `Committer`."""
        images = reversed(self.registry.images.items())
        return next((name for name, content in images if name == self.reference(devbox, content)), None)
