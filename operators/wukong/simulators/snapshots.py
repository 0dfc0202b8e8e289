"""A simulation of KubeVirt's snapshots: they become ready, and a restore puts a machine back to what it was made of,
with new claims for its disks.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from kubewright import CachedClient, Manager, ObjectMeta, Result, controller_for, now
from kubewright.api.core.v1 import PersistentVolumeClaim
from kubewright.patterns import NotYet, ObjectReconciler, set_condition

from ..kubevirt import ClaimVolume, VirtualMachine, VirtualMachineInstance, VirtualMachineTemplate, Volume, claim_of
from ..kubevirt_snapshots import SnapshotError, VirtualMachineRestore, VirtualMachineSnapshot
from .delays import Delays


@dataclass
class SnapshotScript:
    """What snapshots do."""

    step: float = 0.05
    """Seconds until a snapshot is ready, and until a restore is complete."""
    failing: set[str] = field(default_factory=set[str])
    """The snapshots and restores that fail."""
    taken: dict[str, VirtualMachineTemplate] = field(default_factory=dict[str, VirtualMachineTemplate])
    """What a machine was made of, by the name of the snapshot."""


def set_up_snapshots(manager: Manager, script: SnapshotScript | None = None) -> None:
    """The controllers of snapshots and restores."""
    script = script or SnapshotScript()
    snapshots, restores = SnapshotReconciler(manager.client, script), RestoreReconciler(manager.client, script)
    controller_for(manager, VirtualMachineSnapshot, name="virt-snapshots").complete(snapshots)
    controller_for(manager, VirtualMachineRestore, name="virt-restores").complete(restores)


class SnapshotReconciler(ObjectReconciler[VirtualMachineSnapshot]):
    """Takes snapshots."""

    def __init__(self, client: CachedClient, script: SnapshotScript) -> None:
        super().__init__(client)
        self._script = script
        self._delays = Delays()

    async def converge(self, snapshot: VirtualMachineSnapshot) -> Result | None:
        """Be ready after a while."""
        status = snapshot.status
        if status.phase in ("Succeeded", "Failed"):
            return None
        status.phase = "InProgress"
        remaining = self._delays.remaining(snapshot.metadata.uid, self._script.step)
        if remaining:
            return Result(requeue_after=remaining)
        if snapshot.metadata.name in self._script.failing:
            status.phase, status.error = "Failed", SnapshotError(message="the volumes cannot be frozen")
            set_condition(snapshot, "Failure", True, "Failed", "snapshot deadline exceeded")
        else:
            machine = await self.client.get(
                VirtualMachine, snapshot.spec.source.name, namespace=snapshot.metadata.namespace
            )
            self._script.taken[str(snapshot.key)] = machine.spec.template
            status.phase, status.ready_to_use, status.creation_time = "Succeeded", True, now()
        return None


class RestoreReconciler(ObjectReconciler[VirtualMachineRestore]):
    """Restores snapshots into machines that are stopped."""

    def __init__(self, client: CachedClient, script: SnapshotScript) -> None:
        super().__init__(client)
        self._script = script
        self._delays = Delays()

    async def converge(self, restore: VirtualMachineRestore) -> Result | None:
        """Give the machine new claims."""
        if restore.status.complete:
            return None
        name, namespace = restore.spec.target.name, restore.metadata.namespace
        if await self.client.find(VirtualMachineInstance, name, namespace=namespace) is not None:
            raise NotYet("the machine runs", after=1)
        remaining = self._delays.remaining(restore.metadata.uid, self._script.step)
        if remaining:
            return Result(requeue_after=remaining)
        if restore.metadata.name in self._script.failing:
            set_condition(restore, "Failure", True, "Failed", "the content of the snapshot is gone")
            return None
        machine = await self.client.get(VirtualMachine, name, namespace=namespace)
        template = self._script.taken[f"{namespace}/{restore.spec.virtual_machine_snapshot_name}"]
        volumes = [await self._restored(restore, machine, volume) for volume in template.spec.volumes]
        machine.spec.template = deepcopy(template)
        machine.spec.template.spec.volumes = volumes
        await self.client.patch(machine)
        restore.status.complete = True
        return None

    async def _restored(self, restore: VirtualMachineRestore, machine: VirtualMachine, volume: Volume) -> Volume:
        old_name = claim_of(volume)
        if old_name is None:
            return volume
        namespace = machine.metadata.namespace
        old = await self.client.get(PersistentVolumeClaim, old_name, namespace=namespace)
        name = f"restore-{restore.metadata.name}-{volume.name}"
        if await self.client.find(PersistentVolumeClaim, name, namespace=namespace) is None:
            old.spec.volume_name = None
            labels, owners = dict(old.metadata.labels), [machine.as_owner()]
            metadata = ObjectMeta(name=name, namespace=namespace, labels=labels, owner_references=owners)
            await self.client.create(PersistentVolumeClaim(metadata=metadata, spec=old.spec))
        return Volume(name=volume.name, persistent_volume_claim=ClaimVolume(claim_name=name))
