"""`Registry`: where the images of releases are."""

from __future__ import annotations

from typing import Protocol

from kubewright import KubernetesError


class ImageMissing(KubernetesError):
    """There is no such image, and there will be none: a release of it fails."""


class Registry(Protocol):
    """A registry of images."""

    @property
    def host(self) -> str:
        """What the names of its images begin with."""
        ...

    async def tag(self, source: str, target: str) -> None:
        """Have the image also be called `target`. Raises `ImageMissing`; every other error is retried."""
