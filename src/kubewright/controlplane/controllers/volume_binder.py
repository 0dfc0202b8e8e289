"""Binds claims to volumes and reclaims the volumes of claims that are gone.

A volume names its claim first, then the claim names the volume; either may have been written by a user beforehand.
Whatever interrupts that in between is repaired in the next reconcile. Volumes are provisioned by others: the claim is
annotated with the provisioner of its class, and the volume that appears is reserved for the claim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from kubewright.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.api.kinds import ObjectKey
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object
from kubewright.api.storage.v1 import StorageClass
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Event, Handler, Request, Watched
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.pod_claims import claims_of
from kubewright.controlplane.controllers.pods import ENDED
from kubewright.controlplane.controllers.reporting import ReportingController
from kubewright.controlplane.controllers.volume_matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    SELECTED_NODE,
    best_match,
    class_of,
    default_class,
    is_for,
    mismatch,
    names_class,
    reference_to,
    same_mode,
)
from kubewright.controlplane.controllers.volume_reclaim import Failure, reclaim_action

_PROVISIONER = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
_PRE_RESIZE = "volume.alpha.kubernetes.io/pre-resize-capacity"
_DONE = frozenset(("Released", "Failed"))

_VolumePhase: TypeAlias = Literal["Available", "Bound", "Released", "Failed"]
_ClaimPhase: TypeAlias = Literal["Pending", "Bound", "Lost"]


class VolumeBinder(ReportingController):
    """Keeps claims and volumes bound to each other, and both of their phases right."""

    name = "persistentvolume-binder"
    component = "persistentvolume-controller"

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        super().__init__(client, clock=clock, cache=cache)
        self._unbound: dict[Request, None] = {}

    async def run(self) -> None:
        """Watch and bind until cancelled."""
        cache = self._runtime.cache
        await self._runtime.run(
            self.name,
            self.reconcile,
            Watched(cache, PersistentVolumeClaim, Handler(self._claim_changed)),
            Watched(cache, PersistentVolume, Handler(self._volume_changed)),
            Watched(cache, StorageClass, Handler(self._class_changed)),
            Watched(cache, Pod, Handler(_claims_of_new_pod)),
            # One worker: two claims must not choose the same volume.
            workers=1,
            beside=(self._events.run,),
        )

    async def reconcile(self, request: Request) -> None:
        """Bring one claim, or one volume, to the state that it should have."""
        if not request.namespace:
            if (volume := await self._client.find(PersistentVolume, request)) is not None:
                await self._reconcile_volume(volume)
        elif (claim := await self._client.find(PersistentVolumeClaim, request)) is not None:
            if BIND_COMPLETED in claim.metadata.annotations:
                await self._reconcile_bound(claim)
            else:
                await self._reconcile_unbound(claim)

    # Which keys an event concerns: only volumes have no namespace.

    def _claim_changed(self, event: Event[Object]) -> Iterable[Request]:
        old, new = event.old_object, event.new_object
        self._unbound.pop(event.key, None)
        if isinstance(new, PersistentVolumeClaim):
            if BIND_COMPLETED not in new.metadata.annotations:
                self._unbound[event.key] = None
            return (event.key,)
        # The volume of a claim that is gone is reclaimed.
        name = old.spec.volume_name if isinstance(old, PersistentVolumeClaim) else None
        return (Request("", name),) if name else ()

    def _volume_changed(self, event: Event[Object]) -> Iterable[Request]:
        old, new = event.old_object, event.new_object
        keys = [event.key] if new is not None else []
        for volume in (old, new):
            claim = volume.spec.claim_ref if isinstance(volume, PersistentVolume) else None
            if claim is not None and claim.namespace and claim.name:
                keys.append(Request(claim.namespace, claim.name))
        if isinstance(new, PersistentVolume) and new.spec.claim_ref is None and new.status.phase == "Available":
            keys += self._unbound
        return keys

    def _class_changed(self, event: Event[Object]) -> Iterable[Request]:
        return list(self._unbound)

    # Claims

    async def _reconcile_unbound(self, claim: PersistentVolumeClaim) -> None:
        if claim.spec.volume_name:
            await self._bind_to_named(claim, claim.spec.volume_name)
            return
        storage_class = await self._client.find(StorageClass, class_of(claim)) if class_of(claim) else None
        waits = storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"
        volume = best_match(claim, await self._client.list(PersistentVolume), only_reserved=waits)
        if volume is not None:
            await self._bind(volume, claim)
        elif not names_class(claim) and (default := default_class(await self._client.list(StorageClass))) is not None:
            claim.spec.storage_class_name = default.metadata.name
            await self._client.update(claim)
        elif waits and SELECTED_NODE not in claim.metadata.annotations:
            await self._report_waiting(claim)
            await self._write_claim_status(claim, "Pending")
        elif class_of(claim):
            await self._request_provisioning(claim, storage_class)
        else:
            note = "no persistent volumes available for this claim and no storage class is set"
            self._recorder.normal(claim, "FailedBinding", note)
            await self._write_claim_status(claim, "Pending")

    async def _bind_to_named(self, claim: PersistentVolumeClaim, name: str) -> None:
        volume = await self._named(name)
        if volume is not None and volume.spec.claim_ref is None and (why := mismatch(volume, claim)):
            self._recorder.warning(claim, "VolumeMismatch", f'Cannot bind to requested volume "{name}": {why}')
        elif volume is not None and (volume.spec.claim_ref is None or is_for(volume, claim)):
            await self._bind(volume, claim)
            return
        elif volume is not None:
            note = f'volume "{name}" already bound to a different claim.'
            self._recorder.warning(claim, "FailedBinding", note)
        await self._write_claim_status(claim, "Pending")

    async def _named(self, name: str) -> PersistentVolume | None:
        """The volume that a claim names. A claim may name what cannot be one: servers take any text there."""
        return None if "/" in name else await self._client.find(PersistentVolume, name)

    async def _reconcile_bound(self, claim: PersistentVolumeClaim) -> None:
        name = claim.spec.volume_name
        volume = await self._named(name) if name else None
        if volume is None:
            lost = "its PersistentVolume" if name else "reference to PersistentVolume"
            await self._lose(claim, "ClaimLost", f"Bound claim has lost {lost}. Data on the volume is lost!")
        elif volume.spec.claim_ref is None or volume.spec.claim_ref.uid == claim.metadata.uid:
            await self._bind(volume, claim)
        else:
            note = "Two claims are bound to the same volume, this one is bound incorrectly"
            await self._lose(claim, "ClaimMisbound", note)

    async def _lose(self, claim: PersistentVolumeClaim, reason: str, note: str) -> None:
        if claim.status.phase != "Lost":
            await self._write_claim_status(claim, "Lost")
            self._recorder.warning(claim, reason, note)

    async def _report_waiting(self, claim: PersistentVolumeClaim) -> None:
        pods = await self._client.list(Pod, namespace=claim.metadata.namespace)
        users = [
            pod.metadata.name
            for pod in pods
            if not pod.spec.node_name and pod.status.phase not in ENDED and claim.key in claims_of(pod)
        ]
        if users:
            note = f"waiting for pod{'s' if len(users) > 1 else ''} {','.join(users)} to be scheduled"
            self._recorder.normal(claim, "WaitForPodScheduled", note)
        else:
            note = "waiting for first consumer to be created before binding"
            self._recorder.normal(claim, "WaitForFirstConsumer", note)

    async def _request_provisioning(self, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> None:
        if storage_class is None:
            note = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self._recorder.warning(claim, "ProvisioningFailed", note)
            return
        provisioner = storage_class.provisioner
        if provisioner.startswith("kubernetes.io/"):
            # Those that were part of Kubernetes are gone, and others may not call themselves so.
            note = f"no volume plugin matched name: {provisioner}"
            self._recorder.warning(claim, "ProvisioningFailed", note)
            return
        if claim.metadata.annotations.get(_PROVISIONER[1]) != provisioner:
            claim.metadata.annotations.update(dict.fromkeys(_PROVISIONER, provisioner))
            claim = await self._client.update(claim)
        note = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        self._recorder.normal(claim, "ExternalProvisioning", note)

    # Volumes

    async def _reconcile_volume(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            await self._write_phase(volume, "Available")
            return
        if not reference.namespace or not reference.name:
            # The server accepts it, and there is no such claim.
            await self._reclaim(volume)
            return
        key = ObjectKey(reference.namespace, reference.name)
        claim = await self._client.find(PersistentVolumeClaim, key)
        if claim is None or claim.metadata.uid != reference.uid:
            # A cache may not have seen the claim yet for which a provisioner has made the volume.
            claim = await self._client.find(PersistentVolumeClaim, key, consistency="live")
        if claim is None or claim.metadata.uid != reference.uid:
            await self._reclaim(volume)
        elif claim.spec.volume_name == volume.metadata.name:
            await self._write_phase(volume, "Bound")
        elif not claim.spec.volume_name:
            if not same_mode(volume, claim):
                self._report_modes(volume, claim)
        elif PROVISIONED_BY in volume.metadata.annotations and volume.spec.persistent_volume_reclaim_policy == "Delete":
            await self._reclaim(volume)
        else:
            await self._unbind(volume)

    async def _reclaim(self, volume: PersistentVolume) -> None:
        if volume.status.phase not in _DONE:
            volume = await self._write_phase(volume, "Released")
        match reclaim_action(volume):
            case Failure(reason, note) if volume.status.phase != "Failed":
                volume = await self._write_phase(volume, "Failed", note)
                self._recorder.warning(volume, reason, note)
            case "recycle":
                self._recorder.normal(volume, "VolumeRecycled", "Volume recycled")
                await self._unbind(volume)
            case "delete" if volume.metadata.deletion_timestamp is None:
                await self._client.delete(volume, uid=volume.metadata.uid)

    def _report_modes(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        why = "due to incompatible volumeMode."
        wanted = f'requested PersistentVolumeClaim "{claim.metadata.name}"'
        self._recorder.warning(volume, "VolumeMismatch", f"Cannot bind PersistentVolume to {wanted} {why}")
        note = f'Cannot bind PersistentVolume "{volume.metadata.name}" to requested PersistentVolumeClaim {why}'
        self._recorder.warning(claim, "VolumeMismatch", note)

    # Writes

    async def _bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        volume = await self._bind_volume(volume, claim)
        volume = await self._write_phase(volume, "Bound")
        claim = await self._bind_claim(claim, volume)
        await self._write_claim_status(claim, "Bound", volume)

    async def _bind_volume(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
        reserved = is_for(volume, claim)
        if reserved and volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == claim.metadata.uid:
            return volume
        volume.spec.claim_ref = reference_to(claim)
        if not reserved:
            volume.metadata.annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
        return await self._client.update(volume)

    async def _bind_claim(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
        annotations = claim.metadata.annotations
        if claim.spec.volume_name == volume.metadata.name and BIND_COMPLETED in annotations:
            return claim
        if claim.spec.volume_name != volume.metadata.name:
            claim.spec.volume_name = volume.metadata.name
            annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
        annotations.setdefault(BIND_COMPLETED, "yes")
        return await self._client.update(claim)

    async def _unbind(self, volume: PersistentVolume) -> None:
        """The claim has another volume. A reservation by a user stays."""
        if volume.metadata.annotations.pop(BOUND_BY_CONTROLLER, None) is not None:
            volume.spec.claim_ref = None
        elif volume.spec.claim_ref is not None:
            volume.spec.claim_ref.uid = None
        await self._write_phase(await self._client.update(volume), "Available")

    async def _write_phase(self, volume: PersistentVolume, phase: _VolumePhase, message: str = "") -> PersistentVolume:
        if volume.status.phase == phase:
            return volume
        volume.status.phase, volume.status.message = phase, message or None
        return await self._client.status.update(volume)

    async def _write_claim_status(
        self, claim: PersistentVolumeClaim, phase: _ClaimPhase, volume: PersistentVolume | None = None
    ) -> None:
        status, before = claim.status, claim.status.phase
        modes = volume.spec.access_modes if volume is not None else []
        if (before, status.access_modes) == (phase, modes) and (volume is not None or not status.capacity):
            return
        status.phase, status.access_modes = phase, modes
        if volume is None:
            status.capacity, status.current_volume_attributes_class_name = {}, None
        elif before != phase:
            # Later the size of the file system may differ from that of the volume.
            held = volume.metadata.annotations.get(_PRE_RESIZE)
            status.capacity = {"storage": Quantity(held)} if held else volume.spec.capacity
            status.current_volume_attributes_class_name = volume.spec.volume_attributes_class_name
        await self._client.status.update(claim)


def _claims_of_new_pod(event: Event[Object]) -> Iterable[Request]:
    """Claims that wait for their first consumer report which pods they wait for."""
    if event.old is not None or event.initial:
        return ()
    pod = event.new_object
    return claims_of(pod) if isinstance(pod, Pod) else ()
