"""The kind DevBoxRelease: `kubectl get devboxreleases`."""

from __future__ import annotations

from typing import Annotated, Literal

from kubewright import Column, Condition, Immutable, Meta, Model, Resource, field, resource
from kubewright.api import Choice

from .names import GROUP
from .types import State

DEVBOX_FIELD = "spec.devboxName"
"""A field that servers and caches select releases by."""

ReleasePhase = Literal["Success", "Pending", "Failed"]


class DevBoxReleaseSpec(Model):
    """What of which Devbox is released as what."""

    devbox_name: Annotated[str, Meta(min_length=1, max_length=63), Immutable()]
    version: Annotated[str, Meta(max_length=128, pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]*$"), Immutable()]
    """The tag of the image."""
    notes: str = ""
    start_devbox_after_release: bool = False


class DevBoxReleaseStatus(Model):
    """What came of it."""

    phase: Choice[ReleasePhase] = "Pending"
    observed_generation: int = 0
    original_devbox_state: Choice[State] | None = None
    source_image: str = ""
    target_image: str = ""
    devbox_generation: int = 0
    """That of the Devbox when it was released: one that has changed since is not started."""
    conditions: list[Condition] = []


@resource(
    f"{GROUP}/v1alpha2",
    plural="devboxreleases",
    columns=[
        Column("Devbox", ".spec.devboxName"),
        Column("Version", ".spec.version"),
        Column("Phase", ".status.phase"),
        Column("Image", ".status.targetImage"),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    selectable_fields=[f".{DEVBOX_FIELD}"],
)
class DevBoxRelease(Resource[DevBoxReleaseSpec, DevBoxReleaseStatus]):
    """What a Devbox has committed, as an image with a version."""

    status: DevBoxReleaseStatus = field(default_factory=DevBoxReleaseStatus)
