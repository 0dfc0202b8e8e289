"""Whether volumes go with their Wukong.

Those that are to go have it as their owner. Those that are to stay have none, from the beginning: the garbage collector
deletes what has an owner, also when a Wukong is deleted in the foreground or loses its finalizer. A label says which
Wukong they are for, this one and the next one of the name.
"""

from __future__ import annotations

from typing import TypeVar

from kubewright import set_controller_reference
from kubewright.api import Object
from kubewright.api.core.v1 import PersistentVolumeClaim

from .cdi import DataVolume
from .children import (
    RETAINED_LABEL,
    UID_LABEL,
    belongs_to,
    children_of,
    machine_name,
    metadata_of,
    name_taken,
    volume_name,
)
from .context import WukongContext
from .types import Wukong

V = TypeVar("V", bound=Object)


def claim_names(wukong: Wukong) -> list[str]:
    """The claims of its disks, whoever has made them: CDI for a DataVolume, KubeVirt for a restore."""
    made = [volume_name(wukong, disk.name) for disk in wukong.spec.disks]
    return [*made, *(volume.pvc_name for volume in wukong.status.volumes)]


def is_retained(wukong: Wukong) -> bool:
    """Whether its volumes stay."""
    return wukong.spec.volume_retention == "Retain"


async def find_volume(context: WukongContext, kind: type[V], name: str) -> V | None:
    """The volume of that name, with the owner that it is to have. Raises `NameTaken` when it is somebody else's."""
    wukong = context.object
    found = await context.client.find(kind, name, namespace=wukong.metadata.namespace)
    if found is None:
        return None
    is_free = found.metadata.labels.get(RETAINED_LABEL) == wukong.metadata.name
    if not is_free and not belongs_to(found, wukong):
        raise name_taken(found)
    return await owned(context, found)


async def owned(context: WukongContext, volume: V) -> V:
    """A volume of this Wukong, with the owner that it is to have."""
    own(context.object, volume)
    return await context.client.patch(volume)


def own(wukong: Wukong, volume: Object) -> None:
    """Give a volume the owner that it is to have."""
    metadata = volume.metadata
    if is_retained(wukong):
        names = ("Wukong", wukong.metadata.name), ("VirtualMachine", machine_name(wukong))
        metadata.owner_references = [each for each in metadata.owner_references if (each.kind, each.name) not in names]
        metadata.labels[RETAINED_LABEL] = wukong.metadata.name
        metadata.labels.pop(UID_LABEL, None)
    elif RETAINED_LABEL in metadata.labels:
        del metadata.labels[RETAINED_LABEL]
        metadata.labels |= metadata_of(wukong, metadata.name).labels
        set_controller_reference(wukong, volume)


async def volumes_of(context: WukongContext) -> list[Object]:
    """All volumes that the Wukong owns."""
    wukong, client = context.object, context.client
    return [
        *await children_of(client, DataVolume, wukong),
        *await children_of(client, PersistentVolumeClaim, wukong),
    ]


async def release_volumes(context: WukongContext) -> None:
    """Take the owner from all volumes that still have one: this Wukong, or its machine for those of a restore."""
    wukong, client = context.object, context.client
    machine = machine_name(wukong)
    volumes = await volumes_of(context)
    for status in wukong.status.volumes:
        claim = await client.find(PersistentVolumeClaim, status.pvc_name, namespace=wukong.metadata.namespace)
        owners = claim.metadata.owner_references if claim is not None else []
        if claim is not None and any((each.kind, each.name) == ("VirtualMachine", machine) for each in owners):
            volumes.append(claim)
    for volume in volumes:
        await owned(context, volume)
        context.events.normal(wukong, "Retained", f"Retained {volume.kind} {volume.metadata.name}")
