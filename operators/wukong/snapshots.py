"""Snapshots of Wukongs: a VirtualMachineSnapshot of the same name for each, which goes with it.

A snapshot is taken once: `Succeeded` and `Failed` are final. It fails when KubeVirt refuses it or says so, and when
its machine has not appeared in time.
"""

from __future__ import annotations

from datetime import timedelta

from kubewright import CachedClient, ObjectMeta, Recorder, Result, now, set_controller_reference
from kubewright.api.core.v1 import TypedLocalObjectReference
from kubewright.client.errors import BadRequest, Forbidden, Invalid
from kubewright.patterns import ObjectReconciler, get_condition, set_condition

from .kubevirt import GROUP
from .kubevirt_snapshots import AnySnapshot, VirtualMachineSnapshotSpec, served_snapshots
from .snapshot_types import WukongSnapshot
from .types import Wukong

PATIENCE = timedelta(minutes=5)
"""For how long a machine may be missing: as long as KubeVirt waits for a snapshot."""


class WukongSnapshotReconciler(ObjectReconciler[WukongSnapshot]):
    """Reconciles WukongSnapshots."""

    def __init__(self, client: CachedClient, events: Recorder) -> None:
        super().__init__(client)
        self.events = events

    async def converge(self, snapshot: WukongSnapshot) -> Result | None:
        """Take the snapshot, and report how far it is."""
        if snapshot.status.phase in ("Succeeded", "Failed"):
            return None
        kind = await served_snapshots(self.client)
        if kind is None:
            return self._await(snapshot, "SnapshotsMissing", "this KubeVirt has no snapshots (snapshot.kubevirt.io)")
        found: AnySnapshot | None = await self.client.find(kind, snapshot.key)
        if found is not None:
            self._follow(snapshot, found)
            return None
        wukong = await self.client.find(Wukong, snapshot.spec.wukong_name, namespace=snapshot.metadata.namespace)
        if wukong is None:
            return self._await(snapshot, "WukongNotFound", f"there is no Wukong {snapshot.spec.wukong_name}")
        if wukong.status.vm_name is None:
            return self._await(snapshot, "MachineNotFound", f"{wukong.metadata.name} has no machine yet")
        source = TypedLocalObjectReference(api_group=GROUP, kind="VirtualMachine", name=wukong.status.vm_name)
        metadata = ObjectMeta(name=snapshot.metadata.name, namespace=snapshot.metadata.namespace)
        wanted = kind(metadata=metadata, spec=VirtualMachineSnapshotSpec(source=source))
        set_controller_reference(snapshot, wanted)
        try:
            self._follow(snapshot, await self.client.create(wanted))
        except (BadRequest, Forbidden, Invalid) as refusal:
            self._fail(snapshot, str(refusal))
        return None

    def _follow(self, snapshot: WukongSnapshot, found: AnySnapshot) -> None:
        """Report what KubeVirt has made of it; changes of that come by a watch."""
        status = snapshot.status
        if not any(owner.uid == snapshot.metadata.uid for owner in found.metadata.owner_references):
            self._fail(snapshot, f"VirtualMachineSnapshot {found.metadata.name} exists and is not of this one")
            return
        status.snapshot_name = found.metadata.name
        failure = get_condition(found, "Failure")
        if found.status.ready_to_use:
            status.phase, status.error = "Succeeded", None
            status.creation_time = found.status.creation_time or now()
            set_condition(snapshot, "Ready", True, "Succeeded")
            self.events.normal(snapshot, "Succeeded", f"Took a snapshot of {snapshot.spec.wukong_name}")
        elif found.status.phase == "Failed" or (failure is not None and failure.status == "True"):
            error = found.status.error.message if found.status.error is not None else None
            reason = failure.message if failure is not None else None
            self._fail(snapshot, error or reason or "KubeVirt does not say why")
        else:
            status.phase = "Creating"
            status.error = found.status.error.message if found.status.error is not None else None
            set_condition(snapshot, "Ready", False, "Creating", status.error or "the snapshot is being taken")

    def _await(self, snapshot: WukongSnapshot, reason: str, message: str) -> Result | None:
        """Wait for what a watch brings, and no longer than the patience."""
        created = snapshot.metadata.creation_timestamp or now()
        remaining = (created + PATIENCE - now()).total_seconds()
        if remaining <= 0:
            self._fail(snapshot, message)
            return None
        snapshot.status.error = message
        set_condition(snapshot, "Ready", False, reason, message)
        return Result(requeue_after=remaining)

    def _fail(self, snapshot: WukongSnapshot, message: str) -> None:
        snapshot.status.phase, snapshot.status.error = "Failed", message
        set_condition(snapshot, "Ready", False, "Failed", message)
        self.events.warning(snapshot, "Failed", f"No snapshot of {snapshot.spec.wukong_name}: {message}")
