"""Which persistent volume a claim can have. Nothing here talks to a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubewright.api.core.v1 import Node, ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubewright.api.quantity import Quantity
from kubewright.api.selectors import label_matcher
from kubewright.api.storage.v1 import StorageClass
from kubewright.controlplane.controllers.placement import is_on

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_ZERO = Quantity(0)


def class_of(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class of a claim or a volume; empty when it has none."""
    annotated = obj.metadata.annotations.get(_CLASS)
    return annotated if annotated is not None else obj.spec.storage_class_name or ""


def names_class(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim says which class it wants; an empty one, which is no class, counts."""
    return claim.spec.storage_class_name is not None or _CLASS in claim.metadata.annotations


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The class of claims that name none: of several defaults the newest, and of those made together the first."""
    defaults = [one for one in classes if any(one.metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS)]

    def order(one: StorageClass) -> tuple[float, str]:
        created = one.metadata.creation_timestamp
        return -(created.timestamp() if created is not None else 0.0), one.metadata.name

    return min(defaults, key=order, default=None)


def requested_size(claim: PersistentVolumeClaim) -> Quantity:
    """How much storage the claim asks for."""
    return claim.spec.resources.requests.get("storage", _ZERO)


def size_of(volume: PersistentVolume) -> Quantity:
    """How much storage the volume has."""
    return volume.spec.capacity.get("storage", _ZERO)


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume for good."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound to the claim or reserved for it."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
        and reference.uid in (None, "", claim.metadata.uid)
    )


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    """What a volume that is bound to the claim says of it."""
    meta = claim.metadata
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why a volume that the claim names does not do; empty when it does."""
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if size_of(volume) < requested_size(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if _attributes_of(volume) != _attributes_of(claim):
        return "volumeAttributesClassName does not match"
    if not same_mode(volume, claim):
        return "incompatible volumeMode"
    return "" if _modes_of(volume) >= _modes_of(claim) else "incompatible accessMode"


def best_match(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    *,
    node: Node | None = None,
    only_reserved: bool = False,
) -> PersistentVolume | None:
    """The volume that is reserved for the claim, else the smallest that does, with the fewest access modes first.

    With a node, one that can be used there. With `only_reserved` none that is free.
    """
    best: PersistentVolume | None = None
    for volume in volumes:
        reserved = is_for(volume, claim)
        if (
            (volume.spec.claim_ref is not None and not reserved)
            or volume.metadata.deletion_timestamp is not None
            or not _modes_of(volume) >= _modes_of(claim)
            or size_of(volume) < requested_size(claim)
            or not same_mode(volume, claim)
            or _attributes_of(volume) != _attributes_of(claim)
        ):
            continue
        if reserved:
            return volume if reaches(volume, node) else None
        if only_reserved or not _is_free(volume, claim) or not reaches(volume, node):
            continue
        if best is None or _order(volume) < _order(best):
            best = volume
    return best


def same_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both are file systems, or both block devices."""
    return (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")


def reaches(volume: PersistentVolume, node: Node | None) -> bool:
    """Whether the volume can be used on the node. Where there is no node, any does."""
    affinity = volume.spec.node_affinity
    if node is None or affinity is None or affinity.required is None:
        return True
    return is_on(affinity.required, node)


def allows(storage_class: StorageClass, node: Node) -> bool:
    """Whether volumes of the class may be provisioned for the node."""
    labels: Mapping[str, str] = node.metadata.labels
    return not storage_class.allowed_topologies or any(
        all(labels.get(each.key) in each.values for each in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    )


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and class_of(volume) == class_of(claim)
        and (selector is None or label_matcher(selector).matches(volume.metadata.labels))
    )


def _order(volume: PersistentVolume) -> tuple[int, Quantity, str]:
    return len(_modes_of(volume)), size_of(volume), volume.metadata.name


def _modes_of(obj: PersistentVolume | PersistentVolumeClaim) -> set[str]:
    return set(obj.spec.access_modes)


def _attributes_of(obj: PersistentVolume | PersistentVolumeClaim) -> str:
    return obj.spec.volume_attributes_class_name or ""
