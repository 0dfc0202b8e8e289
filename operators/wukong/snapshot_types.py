"""The kind WukongSnapshot: the disks of a Wukong at one time."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from kubewright import Column, Condition, Immutable, Model, Resource, Time, resource
from kubewright.api.markers import ListMap

from .types import Name

SnapshotPhase: TypeAlias = Literal["Pending", "Creating", "Succeeded", "Failed"]


class WukongSnapshotSpec(Model):
    """What a snapshot is taken of."""

    wukong_name: Annotated[Name, Immutable()]


class WukongSnapshotStatus(Model):
    """How far it is. `Succeeded` and `Failed` are final."""

    phase: SnapshotPhase = "Pending"
    snapshot_name: str | None = None
    """The VirtualMachineSnapshot."""
    creation_time: Time | None = None
    error: str | None = None
    observed_generation: int = 0
    conditions: Annotated[list[Condition], ListMap("type")] = []


@resource(
    "vm.novasphere.dev/v1alpha1",
    columns=[Column("Wukong", ".spec.wukongName"), Column("Phase", ".status.phase")],
)
class WukongSnapshot(Resource[WukongSnapshotSpec, WukongSnapshotStatus]):
    """The disks of a Wukong at one time, to be restored by `restoreFromSnapshot`."""
