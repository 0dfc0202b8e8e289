"""PodManager as it was in v1beta1: `size` instead of `replicas`, and less in its status."""

from __future__ import annotations

from typing import Annotated, Self

from kubewright import Column, Condition, Meta, Model, Resource, Scale, resource

from .types import NAME_FITS_A_LABEL, PodManager, PodManagerSpec, PodManagerStatus


class PodManagerV1Beta1Spec(Model):
    """So many pods of one image."""

    image: Annotated[str, Meta(min_length=1)]
    size: Annotated[int, Meta(ge=1)] = 3


class PodManagerV1Beta1Status(Model):
    """What there is."""

    ready_replicas: int = 0
    current_replicas: int = 0
    conditions: list[Condition] = []


@resource(
    "apps.mycompany.com/v1beta1",
    kind="PodManager",
    storage=False,
    columns=[
        Column("Size", ".spec.size"),
        Column("Ready", ".status.readyReplicas"),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    scale=Scale(".spec.size", ".status.currentReplicas"),
    rules=[NAME_FITS_A_LABEL],
)
class PodManagerV1Beta1(Resource[PodManagerV1Beta1Spec, PodManagerV1Beta1Status]):
    """Keeps a number of identical pods running."""

    def to_hub(self) -> PodManager:
        """In v1."""
        spec, status = self.spec, self.status
        return PodManager(
            spec=PodManagerSpec(image=spec.image, replicas=spec.size),
            status=PodManagerStatus(
                ready_replicas=status.ready_replicas,
                current_replicas=status.current_replicas,
                conditions=status.conditions,
            ),
        )

    @classmethod
    def from_hub(cls, hub: PodManager) -> Self:
        """From v1."""
        spec, status = hub.spec, hub.status
        return cls(
            spec=PodManagerV1Beta1Spec(image=spec.image, size=spec.replicas),
            status=PodManagerV1Beta1Status(
                ready_replicas=status.ready_replicas,
                current_replicas=status.current_replicas,
                conditions=status.conditions,
            ),
        )
