"""The volumes of a pod that is to be placed: which nodes they allow, and what is bound for the chosen one.

Claims of classes that wait for their first consumer are bound here: a free volume that reaches the node is reserved,
or the node is noted on the claim, for which a volume is then provisioned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubewright.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from kubewright.api.kinds import ObjectKey
from kubewright.api.storage.v1 import StorageClass
from kubewright.cache import CachedClient
from kubewright.controlplane.controllers.pod_claims import claim_name, is_made_for
from kubewright.controlplane.controllers.volume_matching import (
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    allows,
    best_match,
    class_of,
    is_bound,
    is_for,
    reaches,
    reference_to,
)


class Unplaceable(Exception):
    """Why a pod can be on no node, because of its claims."""


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The volumes of one pod, and its claims that are bound only once there is a node."""

    bound: Sequence[PersistentVolume | None] = ()
    unbound: Sequence[tuple[PersistentVolumeClaim, StorageClass]] = ()
    candidates: Sequence[PersistentVolume] = ()

    def objections(self, node: Node) -> list[str]:
        """Why the pod cannot have its volumes on the node; empty when it can."""
        reasons = []
        if not all(reaches(volume, node) for volume in self.bound if volume is not None):
            reasons.append("node(s) didn't match PersistentVolume's node affinity")
        if self.unbound and self._choices(node) is None:
            reasons.append("node(s) didn't find available persistent volumes to bind")
        if None in self.bound:
            reasons.append("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
        return reasons

    async def bind(self, client: CachedClient, node: Node) -> None:
        """Request what the unbound claims need on the node. They are bound a little later."""
        for claim, volume in self._choices(node) or ():
            if volume is None and claim.metadata.annotations.get(SELECTED_NODE) != node.metadata.name:
                claim.metadata.annotations[SELECTED_NODE] = node.metadata.name
                await client.update(claim)
            elif volume is not None and (volume.spec.claim_ref is None or not volume.spec.claim_ref.uid):
                if not is_for(volume, claim):
                    volume.metadata.annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
                volume.spec.claim_ref = reference_to(claim)
                await client.update(volume)

    def _choices(self, node: Node) -> list[tuple[PersistentVolumeClaim, PersistentVolume | None]] | None:
        """The volume of each unbound claim on the node, None for one to be provisioned; None when that cannot be."""
        chosen: list[tuple[PersistentVolumeClaim, PersistentVolume | None]] = []
        left = list(self.candidates)
        for claim, storage_class in self.unbound:
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected is not None and selected != node.metadata.name:
                return None
            volume = best_match(claim, left, node=node) if selected is None else None
            if volume is not None:
                left.remove(volume)
            elif storage_class.provisioner == NO_PROVISIONER or not allows(storage_class, node):
                return None
            chosen.append((claim, volume))
        return chosen


async def volumes_of(client: CachedClient, pod: Pod) -> PodVolumes:
    """The volumes of a pod. Raises `Unplaceable` while one of its claims keeps it from every node."""
    bound: list[PersistentVolume | None] = []
    unbound: list[tuple[PersistentVolumeClaim, StorageClass]] = []
    claims = [await _claim(client, pod, name, is_ephemeral) for name, is_ephemeral in _claim_names(pod)]
    waits_for_binder = False
    for claim in claims:
        if is_bound(claim):
            bound.append(await client.find(PersistentVolume, claim.spec.volume_name or ""))
            continue
        storage_class = await client.find(StorageClass, class_of(claim)) if class_of(claim) else None
        delayed = storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"
        if storage_class is None or not delayed or claim.spec.volume_name:
            waits_for_binder = True
        else:
            unbound.append((claim, storage_class))
    if waits_for_binder:
        raise Unplaceable("pod has unbound immediate PersistentVolumeClaims")
    return PodVolumes(bound, unbound, await client.list(PersistentVolume) if unbound else ())


async def _claim(client: CachedClient, pod: Pod, name: str, is_ephemeral: bool) -> PersistentVolumeClaim:
    claim = await client.find(PersistentVolumeClaim, ObjectKey(pod.metadata.namespace, name))
    if claim is None and is_ephemeral:
        raise Unplaceable(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"')
    if claim is None:
        raise Unplaceable(f'persistentvolumeclaim "{name}" not found')
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name or ""
        raise Unplaceable(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"')
    if claim.metadata.deletion_timestamp is not None:
        raise Unplaceable(f'persistentvolumeclaim "{name}" is being deleted')
    if is_ephemeral and not is_made_for(claim, pod):
        key = f"{pod.metadata.namespace}/{name}"
        owner = f"{pod.metadata.namespace}/{pod.metadata.name}"
        raise Unplaceable(f"PVC {key} was not created for pod {owner} (pod is not owner)")
    return claim


def _claim_names(pod: Pod) -> list[tuple[str, bool]]:
    return [(name, volume.ephemeral is not None) for volume in pod.spec.volumes if (name := claim_name(pod, volume))]
