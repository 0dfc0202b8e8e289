"""Storage that is in use stays: a finalizer keeps claims, volumes and attributes classes until nothing uses them.

The API server puts the finalizers on when the objects are created; here they are put on where they are missing, and
taken off once an object is being deleted and is not in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from kubewright.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod, Volume
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.api.storage.v1 import VolumeAttributesClass
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Request, Source, Watched, for_object, mapped, predicate
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.runtime import StatelessController

T = TypeVar("T", bound=Object)


class _Protection(StatelessController, Generic[T]):
    """Keeps a finalizer on the objects of one kind while they are in use."""

    name: str
    _finalizer: str

    def __init__(
        self, kind: type[T], client: Client, clock: Clock | None = None, *, cache: Cache | None = None
    ) -> None:
        super().__init__(client, clock, cache=cache)
        self._kind = kind

    async def run(self) -> None:
        """Watch and release until cancelled."""
        own = Watched(self._runtime.cache, self._kind, for_object)
        await self._runtime.run(self.name, self.reconcile, own, *self._users(self._runtime.cache))

    async def reconcile(self, request: Request) -> None:
        """Put the finalizer on one object, or take it off once the object is being deleted and is not in use."""
        obj = await self._client.find(self._kind, request)
        if obj is None:
            return
        finalizers, is_held = obj.metadata.finalizers, self._finalizer in obj.metadata.finalizers
        if obj.metadata.deletion_timestamp is None:
            if not is_held:
                finalizers.append(self._finalizer)
                await self._client.update(obj)
        elif is_held and not await self._is_used(obj):
            finalizers.remove(self._finalizer)
            await self._client.update(obj)

    def _users(self, cache: Cache) -> Iterable[Source[Request]]:
        """Watches of what uses the objects."""
        return ()

    async def _is_used(self, obj: T) -> bool:
        raise NotImplementedError


class ClaimProtection(_Protection[PersistentVolumeClaim]):
    """A claim is released when no pod with a node mentions it, even one that has ended."""

    name = "pvc-protection"
    _finalizer = "kubernetes.io/pvc-protection"

    def __init__(self, client: Client, clock: Clock | None = None, *, cache: Cache | None = None) -> None:
        super().__init__(PersistentVolumeClaim, client, clock, cache=cache)

    def _users(self, cache: Cache) -> Iterable[Source[Request]]:
        return [Watched(cache, Pod, mapped(_claims_of), where=_may_release)]

    async def _is_used(self, obj: PersistentVolumeClaim) -> bool:
        # A cache may not have seen the pod yet that runs with the claim.
        pods = await self._client.list(Pod, namespace=obj.metadata.namespace, consistency="live")
        return any(_uses(pod, obj) for pod in pods)


class VolumeProtection(_Protection[PersistentVolume]):
    """A volume is released when it is not bound."""

    name = "pv-protection"
    _finalizer = "kubernetes.io/pv-protection"

    def __init__(self, client: Client, clock: Clock | None = None, *, cache: Cache | None = None) -> None:
        super().__init__(PersistentVolume, client, clock, cache=cache)

    async def _is_used(self, obj: PersistentVolume) -> bool:
        return obj.status.phase == "Bound"


class AttributesClassProtection(_Protection[VolumeAttributesClass]):
    """A VolumeAttributesClass is released when no volume and no claim has it, requests it or is being changed to it."""

    name = "vac-protection"
    _finalizer = "kubernetes.io/vac-protection"

    def __init__(self, client: Client, clock: Clock | None = None, *, cache: Cache | None = None) -> None:
        super().__init__(VolumeAttributesClass, client, clock, cache=cache)

    def _users(self, cache: Cache) -> Iterable[Source[Request]]:
        return [
            Watched(cache, PersistentVolume, mapped(_class_of_volume)),
            Watched(cache, PersistentVolumeClaim, mapped(_classes_of_claim)),
        ]

    async def _is_used(self, obj: VolumeAttributesClass) -> bool:
        volumes = await self._client.list(PersistentVolume)
        claims = await self._client.list(PersistentVolumeClaim)
        return any(obj.key in _class_of_volume(volume) for volume in volumes) or any(
            obj.key in _classes_of_claim(claim) for claim in claims
        )


# Claims and the pods that use them


def _claim_name(pod: Pod, volume: Volume) -> str:
    """The claim behind a volume, also the one that is made for a pod with an ephemeral volume; empty for others."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


def _claims_of(pod: Pod) -> Iterable[ObjectKey]:
    return [
        ObjectKey(pod.metadata.namespace, name) for volume in pod.spec.volumes if (name := _claim_name(pod, volume))
    ]


def _uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """A pod without a node uses nothing: no kubelet starts it once the claim is being deleted."""
    if not pod.spec.node_name:
        return False
    for volume in pod.spec.volumes:
        if _claim_name(pod, volume) == claim.metadata.name and (
            volume.ephemeral is None or (_is_for(claim, pod) and not _is_shut_down(pod))
        ):
            return True
    return False


def _is_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim was made for the pod, and does not just have the name of the one that would be."""
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def _is_shut_down(pod: Pod) -> bool:
    """Whether the kubelet is done with the pod, or it was deleted by force."""
    return pod.metadata.deletion_timestamp is not None and pod.metadata.deletion_grace_period_seconds == 0


@predicate
def _may_release(old: Pod | None, new: Pod | None) -> bool:
    """Whether less may be in use than before: a pod was deleted or replaced by one of its name, or is being deleted."""
    if new is None or new.metadata.deletion_timestamp is not None:
        return True
    return old is not None and old.metadata.uid != new.metadata.uid


# Attributes classes and who has them


def _class_of_volume(volume: PersistentVolume) -> Iterable[ObjectKey]:
    name = volume.spec.volume_attributes_class_name
    return [ObjectKey("", name)] if name else []


def _classes_of_claim(claim: PersistentVolumeClaim) -> Iterable[ObjectKey]:
    status = claim.status
    target = status.modify_volume_status.target_volume_attributes_class_name if status.modify_volume_status else None
    names = (claim.spec.volume_attributes_class_name, status.current_volume_attributes_class_name, target)
    return [ObjectKey("", name) for name in names if name]
