"""The kind PodManager, in the version it is stored in: `kubectl get podmanagers`."""

from __future__ import annotations

from typing import Annotated

from kubewright import Column, Condition, Meta, Model, Resource, Rule, Scale, resource

MAX_NAME_LENGTH = 63  # the name is the value of a label of each pod

NAME_FITS_A_LABEL = Rule(
    f"size(self.metadata.name) <= {MAX_NAME_LENGTH}",
    message=f"the name must have at most {MAX_NAME_LENGTH} characters, as it is a label of each pod",
)


class PodManagerSpec(Model):
    """So many pods of one image."""

    image: Annotated[str, Meta(min_length=1)]
    replicas: Annotated[int, Meta(ge=1)] = 3


class PodManagerStatus(Model):
    """What there is."""

    ready_replicas: int = 0
    current_replicas: int = 0
    observed_generation: int = 0
    selector: str = ""
    conditions: list[Condition] = []


@resource(
    "apps.mycompany.com/v1",
    columns=[
        Column("Desired", ".spec.replicas"),
        Column("Current", ".status.currentReplicas"),
        Column("Ready", ".status.readyReplicas"),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    scale=Scale(".spec.replicas", ".status.currentReplicas", ".status.selector"),
    rules=[NAME_FITS_A_LABEL],
)
class PodManager(Resource[PodManagerSpec, PodManagerStatus]):
    """Keeps a number of identical pods running."""
