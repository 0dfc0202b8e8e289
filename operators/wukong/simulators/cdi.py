"""A simulation of CDI's controller: DataVolumes get a claim, and an import into it that takes its time."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubewright import CachedClient, Manager, ObjectMeta, Result, controller_for, set_controller_reference
from kubewright.api.core.v1 import PersistentVolumeClaim
from kubewright.api.storage.v1 import StorageClass
from kubewright.patterns import NotYet, ObjectReconciler, set_condition

from ..cdi import FAILED, SUCCEEDED, DataVolume
from .delays import Delays
from .kubevirt import SELECTED_NODE


@dataclass
class CDIScript:
    """What imports do."""

    seconds: float = 0.05
    """How long an import takes."""
    failing: set[str] = field(default_factory=set[str])
    """The URLs that cannot be imported."""


def set_up_cdi(manager: Manager, script: CDIScript | None = None) -> None:
    """The controller of DataVolumes."""
    (
        controller_for(manager, DataVolume, name="cdi", slow_hot_loops=False)
        .owns(PersistentVolumeClaim)
        .complete(DataVolumeReconciler(manager.client, script or CDIScript()))
    )


class DataVolumeReconciler(ObjectReconciler[DataVolume]):
    """Fills claims."""

    finalizer = "simulators.kubewright.dev/claim"

    def __init__(self, client: CachedClient, script: CDIScript) -> None:
        super().__init__(client)
        self._script = script
        self._delays = Delays()

    async def converge(self, volume: DataVolume) -> Result | None:
        """Make the claim, and import into it once it is bound."""
        status = volume.status
        if status.phase in (SUCCEEDED, FAILED):
            return None
        claim = await self.client.find(PersistentVolumeClaim, volume.key)
        if claim is None:
            claim = await self._claim(volume)
        status.claim_name = claim.metadata.name
        if claim.status.phase != "Bound":
            is_late = await self._is_late(claim)
            status.phase = "WaitForFirstConsumer" if is_late else "ImportScheduled"
            return None
        remaining = self._delays.remaining(volume.metadata.uid, self._script.seconds)
        if remaining:
            status.phase, status.progress = "ImportInProgress", f"{1 - remaining / self._script.seconds:.2%}"
            return Result(requeue_after=remaining)
        if _url(volume) in self._script.failing:
            status.phase = FAILED
            set_condition(volume, "Running", False, "Error", f"Unable to connect to {_url(volume)}")
        else:
            status.phase, status.progress = SUCCEEDED, "100.0%"
        return None

    async def cleanup(self, volume: DataVolume) -> None:
        """The claim goes with it: in a cluster the garbage collector sees to that, which takes some time."""
        claim = await self.client.find(PersistentVolumeClaim, volume.key)
        if claim is not None and any(owner.uid == volume.metadata.uid for owner in claim.metadata.owner_references):
            if claim.metadata.deletion_timestamp is None:
                await self.client.delete(claim, uid=claim.metadata.uid, missing_ok=True)
            raise NotYet("the claim is being deleted", after=0.1)

    async def _claim(self, volume: DataVolume) -> PersistentVolumeClaim:
        if volume.spec.pvc is None:
            raise ValueError(f"the DataVolume {volume.key} has no claim: set its pvc")
        there = volume.metadata
        metadata = ObjectMeta(name=there.name, namespace=there.namespace, labels=dict(there.labels))
        claim = PersistentVolumeClaim(metadata=metadata, spec=volume.spec.pvc)
        set_controller_reference(volume, claim)
        return await self.client.create(claim)

    async def _is_late(self, claim: PersistentVolumeClaim) -> bool:
        found = await self.client.find(StorageClass, claim.spec.storage_class_name or "")
        is_late = found is not None and found.volume_binding_mode == "WaitForFirstConsumer"
        return is_late and SELECTED_NODE not in claim.metadata.annotations


def _url(volume: DataVolume) -> str | None:
    source = volume.spec.source
    if source is None:
        return None
    if source.http is not None:
        return source.http.url
    return source.registry.url if source.registry is not None else None
