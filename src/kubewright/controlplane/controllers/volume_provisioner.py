"""A simulated CSI driver: volumes of its storage classes are there as soon as they are claimed.

It does what external-provisioner and external-resizer do for a real driver: makes volumes, deletes them when they are
released, lets them grow and changes their attributes. Claims of other provisioners are left alone.
"""

from __future__ import annotations

from datetime import datetime

from kubewright.api.core.v1 import (
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimCondition,
    PersistentVolumeSpec,
)
from kubewright.api.meta import ObjectMeta
from kubewright.api.storage.v1 import StorageClass
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists, NotFound
from kubewright.controller import Request, Watched, for_object
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.runtime import Runtime
from kubewright.controlplane.controllers.storage_class import DRIVER
from kubewright.controlplane.controllers.volume_matching import (
    PROVISIONED_BY,
    SELECTED_NODE,
    class_of,
    is_bound,
    reference_to,
    requested_size,
    size_of,
)
from kubewright.manager.core_event_form import CoreV1
from kubewright.manager.recorder import EventBroadcaster
from kubewright.patterns.finalizers import remove_finalizer

FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"


class VolumeProvisioner:
    """Provisions, grows and deletes the volumes of the driver `csi.kubewright.dev`."""

    name = "volume-provisioner"

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._events = EventBroadcaster(
            client, instance="", now=self._clock.now, form=CoreV1(field_manager="csi-provisioner")
        )
        self._provisioner = self._events.recorder(DRIVER)
        self._resizer = self._events.recorder(f"external-resizer-{DRIVER}")

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        await self._runtime.run(
            self.name,
            self.reconcile,
            Watched(cache, PersistentVolumeClaim, for_object),
            Watched(cache, PersistentVolume, for_object),
            beside=(self._events.run,),
        )

    async def reconcile(self, request: Request) -> None:
        """Provide for one claim, or delete one volume: only volumes have no namespace."""
        if not request.namespace:
            volume = await self._client.find(PersistentVolume, request)
            if volume is not None and _is_ours(volume):
                await self._delete(volume)
            return
        claim = await self._client.find(PersistentVolumeClaim, request)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        if is_bound(claim) and claim.status.phase == "Bound":
            volume = await self._client.find(PersistentVolume, claim.spec.volume_name or "")
            if volume is not None and volume.spec.csi is not None and volume.spec.csi.driver == DRIVER:
                await self._grow(claim, volume)
                await self._modify(claim, volume)
        elif not claim.spec.volume_name and _provisioner_of(claim) == DRIVER:
            await self._provision(claim)

    async def _provision(self, claim: PersistentVolumeClaim) -> None:
        storage_class = await self._client.find(StorageClass, class_of(claim))
        if storage_class is None or storage_class.provisioner != DRIVER:
            return
        if storage_class.volume_binding_mode == "WaitForFirstConsumer" and (
            SELECTED_NODE not in claim.metadata.annotations
        ):
            return
        name = f"pvc-{claim.metadata.uid}"
        if await self._client.find(PersistentVolume, name) is not None:
            return
        claimed = f'"{claim.metadata.namespace}/{claim.metadata.name}"'
        self._provisioner.normal(
            claim, "Provisioning", f"External provisioner is provisioning volume for claim {claimed}"
        )
        try:
            await self._client.create(_volume(name, claim, storage_class))
        except AlreadyExists:
            return
        self._provisioner.normal(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    async def _delete(self, volume: PersistentVolume) -> None:
        released = volume.status.phase == "Released" and volume.spec.persistent_volume_reclaim_policy == "Delete"
        if released and volume.metadata.deletion_timestamp is None:
            try:
                await self._client.delete(volume, uid=volume.metadata.uid)
            except NotFound:
                return
            volume = await self._client.find(PersistentVolume, volume.key, consistency="live") or volume
        if volume.metadata.deletion_timestamp is not None and (released or volume.status.phase != "Bound"):
            await remove_finalizer(self._client, volume, FINALIZER)

    async def _grow(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        wanted, status = requested_size(claim), claim.status
        if wanted <= status.capacity.get("storage", wanted):
            return
        note = f"External resizer is resizing volume {volume.metadata.name}"
        self._resizer.normal(claim, "Resizing", note)
        if size_of(volume) < wanted:
            status.conditions = [_resizing(self._clock.now())]
            status.allocated_resources = {**status.allocated_resources, "storage": wanted}
            status.allocated_resource_statuses = {"storage": "ControllerResizeInProgress"}
            claim = await self._client.status.update(claim)
            volume.spec.capacity = {**volume.spec.capacity, "storage": wanted}
            await self._client.update(volume)
        status = claim.status
        status.capacity = {**status.capacity, "storage": wanted}
        status.allocated_resources = {**status.allocated_resources, "storage": wanted}
        status.allocated_resource_statuses, status.conditions = {}, []
        await self._client.status.update(claim)
        self._resizer.normal(claim, "VolumeResizeSuccessful", "Resize volume succeeded")

    async def _modify(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        wanted = claim.spec.volume_attributes_class_name
        if not wanted or wanted == claim.status.current_volume_attributes_class_name:
            return
        if volume.spec.volume_attributes_class_name != wanted:
            volume.spec.volume_attributes_class_name = wanted
            await self._client.update(volume)
        claim = await self._client.get(PersistentVolumeClaim, claim.key)
        claim.status.current_volume_attributes_class_name, claim.status.modify_volume_status = wanted, None
        await self._client.status.update(claim)


def _volume(name: str, claim: PersistentVolumeClaim, storage_class: StorageClass) -> PersistentVolume:
    return PersistentVolume(
        metadata=ObjectMeta(name=name, annotations={PROVISIONED_BY: DRIVER}, finalizers=[FINALIZER]),
        spec=PersistentVolumeSpec(
            access_modes=claim.spec.access_modes,
            capacity={"storage": requested_size(claim)},
            claim_ref=reference_to(claim),
            csi=CSIPersistentVolumeSource(driver=DRIVER, volume_handle=name),
            mount_options=storage_class.mount_options,
            persistent_volume_reclaim_policy=storage_class.reclaim_policy,
            storage_class_name=storage_class.metadata.name,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
            volume_mode=claim.spec.volume_mode,
        ),
    )


def _provisioner_of(claim: PersistentVolumeClaim) -> str:
    return claim.metadata.annotations.get("volume.kubernetes.io/storage-provisioner", "")


def _is_ours(volume: PersistentVolume) -> bool:
    return volume.metadata.annotations.get(PROVISIONED_BY) == DRIVER and FINALIZER in volume.metadata.finalizers


def _resizing(now: datetime) -> PersistentVolumeClaimCondition:
    return PersistentVolumeClaimCondition(
        type="Resizing", status="True", last_transition_time=now.replace(microsecond=0)
    )
