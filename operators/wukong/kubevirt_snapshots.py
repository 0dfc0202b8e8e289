"""KubeVirt's kinds of snapshots, in both versions: older ones of KubeVirt serve v1alpha1, newer ones v1beta1."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from kubewright import Client, Resource, Time, resource
from kubewright.api.core.v1 import TypedLocalObjectReference
from kubewright.api.markers import ListMap
from kubewright.api.model import BuiltIn

from .kubevirt import KubeVirtCondition


class SnapshotError(BuiltIn):
    """What went wrong."""

    message: str | None = None


class VirtualMachineSnapshotSpec(BuiltIn):
    """The machine that a snapshot is taken of."""

    source: TypedLocalObjectReference


class VirtualMachineSnapshotStatus(BuiltIn):
    """How far it is."""

    phase: str | None = None
    ready_to_use: bool = False
    creation_time: Time | None = None
    error: SnapshotError | None = None
    conditions: Annotated[list[KubeVirtCondition], ListMap("type")] = []


class VirtualMachineRestoreSpec(BuiltIn):
    """The machine that gets the content of a snapshot."""

    target: TypedLocalObjectReference
    virtual_machine_snapshot_name: str


class VirtualMachineRestoreStatus(BuiltIn):
    """How far it is."""

    complete: bool = False
    conditions: Annotated[list[KubeVirtCondition], ListMap("type")] = []


@resource("snapshot.kubevirt.io/v1beta1")
class VirtualMachineSnapshot(Resource[VirtualMachineSnapshotSpec, VirtualMachineSnapshotStatus]):
    """The disks of a machine at one time."""


@resource("snapshot.kubevirt.io/v1beta1")
class VirtualMachineRestore(Resource[VirtualMachineRestoreSpec, VirtualMachineRestoreStatus]):
    """Puts the disks of a machine back to a snapshot."""


@resource("snapshot.kubevirt.io/v1alpha1", kind="VirtualMachineSnapshot", storage=False)
class VirtualMachineSnapshotV1Alpha1(Resource[VirtualMachineSnapshotSpec, VirtualMachineSnapshotStatus]):
    """The disks of a machine at one time."""


@resource("snapshot.kubevirt.io/v1alpha1", kind="VirtualMachineRestore", storage=False)
class VirtualMachineRestoreV1Alpha1(Resource[VirtualMachineRestoreSpec, VirtualMachineRestoreStatus]):
    """Puts the disks of a machine back to a snapshot."""


AnySnapshot: TypeAlias = VirtualMachineSnapshot | VirtualMachineSnapshotV1Alpha1
AnyRestore: TypeAlias = VirtualMachineRestore | VirtualMachineRestoreV1Alpha1


async def served_snapshots(client: Client) -> type[AnySnapshot] | None:
    """The kind of snapshots in the version that the server has; None when it has none."""
    for kind in (VirtualMachineSnapshot, VirtualMachineSnapshotV1Alpha1):
        if await client.serves(kind):
            return kind
    return None


async def served_restores(client: Client) -> type[AnyRestore] | None:
    """The kind of restores, likewise."""
    for kind in (VirtualMachineRestore, VirtualMachineRestoreV1Alpha1):
        if await client.serves(kind):
            return kind
    return None
