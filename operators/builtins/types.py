"""The kind PodSet, which is a ReplicaSet of our own: `kubectl get podsets`."""

from __future__ import annotations

from typing import Annotated

from kubewright import Column, Meta, Model, Resource, Scale, resource
from kubewright.api.core.v1 import PodTemplateSpec


class PodSetSpec(Model):
    """So many pods of one template."""

    template: PodTemplateSpec
    replicas: Annotated[int, Meta(ge=0)] = 1


class PodSetStatus(Model):
    """What there is."""

    replicas: int = 0
    observed_generation: int = 0


@resource(
    "builtins.kubewright.dev/v1",
    columns=[Column("Desired", ".spec.replicas"), Column("Current", ".status.replicas")],
    scale=Scale(".spec.replicas", ".status.replicas"),
)
class PodSet(Resource[PodSetSpec, PodSetStatus]):
    """Keeps a number of pods of one template running."""
