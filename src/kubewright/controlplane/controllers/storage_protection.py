"""Storage that is in use stays: a finalizer keeps claims, volumes and attributes classes until nothing uses them.

The API server puts the finalizers on when the objects are created; here they are put on where they are missing, and
taken off once an object is being deleted and is not in use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from kubewright.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.api.storage.v1 import VolumeAttributesClass
from kubewright.controller import Request, Source, Watched, for_object, mapped, predicate
from kubewright.controlplane.controllers.pod_claims import claim_name, claims_of, is_made_for
from kubewright.controlplane.controllers.runtime import Runtime, StatelessController
from kubewright.patterns.finalizers import add_finalizer, remove_finalizer

T = TypeVar("T", bound=Object)


class ClaimProtection(StatelessController):
    """A claim is released when no pod with a node mentions it, even one that has ended."""

    name = "pvc-protection"

    async def run(self) -> None:
        """Watch and release until cancelled."""
        pods = Watched(self._runtime.cache, Pod, mapped(claims_of), where=_may_release)
        await _protect(self._runtime, self.name, PersistentVolumeClaim, self._is_used, pods)

    async def _is_used(self, claim: PersistentVolumeClaim) -> bool:
        # A cache may not have seen the pod yet that runs with the claim.
        pods = await self._client.list(Pod, namespace=claim.metadata.namespace, consistency="live")
        return any(_uses(pod, claim) for pod in pods)


class VolumeProtection(StatelessController):
    """A volume is released when it is not bound."""

    name = "pv-protection"

    async def run(self) -> None:
        """Watch and release until cancelled."""
        await _protect(self._runtime, self.name, PersistentVolume, _is_bound)


class AttributesClassProtection(StatelessController):
    """A VolumeAttributesClass is released when no volume and no claim has it, requests it or is being changed to it."""

    name = "vac-protection"

    async def run(self) -> None:
        """Watch and release until cancelled."""
        volumes = Watched(self._runtime.cache, PersistentVolume, mapped(_class_of_volume))
        claims = Watched(self._runtime.cache, PersistentVolumeClaim, mapped(_classes_of_claim))
        await _protect(self._runtime, self.name, VolumeAttributesClass, self._is_used, volumes, claims)

    async def _is_used(self, attributes: VolumeAttributesClass) -> bool:
        volumes = await self._client.list(PersistentVolume)
        claims = await self._client.list(PersistentVolumeClaim)
        return any(attributes.key in _class_of_volume(volume) for volume in volumes) or any(
            attributes.key in _classes_of_claim(claim) for claim in claims
        )


async def _protect(
    runtime: Runtime, name: str, kind: type[T], is_used: Callable[[T], Awaitable[bool]], *users: Source[Request]
) -> None:
    """Keep the finalizer of that name on the objects of a kind, until they are being deleted and not in use.

    `users` are watches of what uses the objects.
    """
    client, finalizer = runtime.client, f"kubernetes.io/{name}"

    async def reconcile(request: Request) -> None:
        obj = await client.find(kind, request)
        if obj is None:
            return
        if obj.metadata.deletion_timestamp is None:
            await add_finalizer(client, obj, finalizer)
        elif finalizer in obj.metadata.finalizers and not await is_used(obj):
            await remove_finalizer(client, obj, finalizer)

    await runtime.run(name, reconcile, Watched(runtime.cache, kind, for_object), *users)


async def _is_bound(volume: PersistentVolume) -> bool:
    return volume.status.phase == "Bound"


# Claims and the pods that use them


def _uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """A pod without a node uses nothing: no kubelet starts it once the claim is being deleted."""
    if not pod.spec.node_name:
        return False
    for volume in pod.spec.volumes:
        if claim_name(pod, volume) == claim.metadata.name and (
            volume.ephemeral is None or (is_made_for(claim, pod) and not _is_shut_down(pod))
        ):
            return True
    return False


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
