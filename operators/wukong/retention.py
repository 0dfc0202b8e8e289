"""Whether volumes go with their Wukong.

Those that are to go have it as their owner. Those that are to stay have none, from the beginning: the garbage collector
deletes what has an owner, also when a Wukong is deleted in the foreground or loses its finalizer. A label says which
Wukong they are for, this one and the next one of the name.

A restore gives disks new claims, which the machine owns. They are taken over, so that they do not go with the machine,
and a label says which disk they are for: the next machine gets them, whether the status knows of them or not. The
volumes that a disk had before stay for as long as the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

from kubewright import set_controller_reference
from kubewright.api import Object
from kubewright.api.core.v1 import PersistentVolumeClaim
from kubewright.patterns import check_adoption

from .cdi import DataVolume
from .children import (
    DISK_LABEL,
    RETAINED_LABEL,
    UID_LABEL,
    belongs_to,
    children_of,
    is_orphan,
    machine_name,
    made_for,
    metadata_of,
    name_taken,
    restored_for,
    retained_by,
    volume_name,
)
from .context import WukongContext
from .kubevirt import VirtualMachine, claim_of
from .types import Wukong

V = TypeVar("V", bound=Object)

_BEGINNING = datetime.min.replace(tzinfo=UTC)


def claim_names(wukong: Wukong) -> list[str]:
    """The claims of its disks, also those that CDI made for a DataVolume and KubeVirt for a restore."""
    made = [volume_name(wukong, disk.name) for disk in wukong.spec.disks]
    return list(dict.fromkeys([*made, *(volume.pvc_name for volume in wukong.status.volumes)]))


def is_retained(wukong: Wukong) -> bool:
    """Whether its volumes stay."""
    return wukong.spec.volume_retention == "Retain"


def is_volume_of(volume: Object, wukong: Wukong) -> bool:
    """Whether it belongs to the Wukong or to its machine, or an earlier Wukong of the name has left it."""
    controllers = [each for each in volume.metadata.owner_references if each.controller]
    if not controllers:
        is_retained = volume.metadata.labels.get(RETAINED_LABEL) == wukong.metadata.name
        return is_retained or is_orphan(volume, wukong)
    machine = ("VirtualMachine", machine_name(wukong))
    return belongs_to(volume, wukong) or any((each.kind, each.name) == machine for each in controllers)


async def find_volume(context: WukongContext, kind: type[V], name: str) -> V | None:
    """The volume of that name, with the owner that it is to have. Raises `NameTaken` when it is not ours."""
    wukong = context.object
    found = await context.client.find(kind, name, namespace=wukong.metadata.namespace)
    if found is None:
        return None
    if not is_volume_of(found, wukong):
        raise name_taken(found)
    return await owned(context, found)


async def find_restored(context: WukongContext, disk: str) -> str | None:
    """The claim of a restore that this Wukong or an earlier one of the name has for a disk; the newest of several."""
    wukong = context.object
    found = [
        claim
        for claim in await made_for(context.client, PersistentVolumeClaim, wukong, restored_for(wukong))
        if claim.metadata.labels[DISK_LABEL] == disk
        and claim.metadata.deletion_timestamp is None
        and is_volume_of(claim, wukong)
    ]
    newest = max(found, key=lambda claim: claim.metadata.creation_timestamp or _BEGINNING, default=None)
    return newest.metadata.name if newest is not None else None


async def owned(context: WukongContext, volume: V, disk: str | None = None) -> V:
    """A volume of this Wukong, with the owner and the labels that it is to have: see `own`."""
    wukong = context.object
    if not is_retained(wukong) and wukong.metadata.deletion_timestamp is None:
        await check_adoption(context.client, wukong, volume)
    own(wukong, volume, disk)
    return await context.client.patch(volume)


def own(wukong: Wukong, volume: Object, disk: str | None = None) -> None:
    """Give a volume the owner and the labels that it is to have. `disk` has it now, or none if it is empty."""
    metadata = volume.metadata
    metadata.labels |= metadata_of(wukong, metadata.name).labels
    metadata.labels.pop(RETAINED_LABEL, None)
    if disk is not None:
        metadata.labels.pop(DISK_LABEL, None)
        if disk and metadata.name != volume_name(wukong, disk):
            metadata.labels[DISK_LABEL] = disk
    ours = ("Wukong", wukong.metadata.name), ("VirtualMachine", machine_name(wukong))
    others = [each for each in metadata.owner_references if (each.kind, each.name) not in ours]
    if is_retained(wukong):
        metadata.owner_references = others
        metadata.labels[RETAINED_LABEL] = wukong.metadata.name
    elif not belongs_to(volume, wukong):
        metadata.owner_references = others
        set_controller_reference(wukong, volume)


async def own_others(context: WukongContext, machine: VirtualMachine | None, disks: Mapping[str, str]) -> list[Object]:
    """Give the volumes that disks had before the owner that they are to have, and return those that had another one.

    `disks` has the names of disks by those of the claims that they have now.
    """
    wukong, client = context.object, context.client
    otherwise = wukong.metadata.uid if is_retained(wukong) else retained_by(wukong)
    volumes: list[Object] = [
        *await made_for(client, DataVolume, wukong, otherwise),
        *await made_for(client, PersistentVolumeClaim, wukong, otherwise),
    ]
    if machine is not None:  # or else it is not known whether a restore has given disks other claims
        for claim in await made_for(client, PersistentVolumeClaim, wukong, restored_for(wukong)):
            labels = claim.metadata.labels
            if labels.get(UID_LABEL) == wukong.metadata.uid and labels[DISK_LABEL] != disks.get(claim.metadata.name):
                volumes.append(claim)
    unused = "" if machine is not None else None
    return [await owned(context, volume, disks.get(volume.metadata.name, unused)) for volume in volumes]


async def own_all(context: WukongContext, machine: VirtualMachine | None) -> list[Object]:
    """The same of all volumes, before the machine is deleted: it owns claims that a restore has just made."""
    disks = _disks_by_claim(context.object, machine)
    volumes: list[Object] = []
    if machine is not None:
        for name, disk in disks.items():
            claim = await find_claim(context, name)
            if claim is not None and any(
                owner.uid == machine.metadata.uid for owner in claim.metadata.owner_references
            ):
                volumes.append(await owned(context, claim, disk))
    return volumes + await own_others(context, machine, disks)


async def find_claim(context: WukongContext, name: str) -> PersistentVolumeClaim | None:
    """A claim that there has to be: a machine or a DataVolume may be known before its claim."""
    client, namespace = context.client, context.object.metadata.namespace
    cached = await client.find(PersistentVolumeClaim, name, namespace=namespace)
    if cached is not None:
        return cached
    return await client.find(PersistentVolumeClaim, name, namespace=namespace, consistency="live")


def _disks_by_claim(wukong: Wukong, machine: VirtualMachine | None) -> dict[str, str]:
    """Which disks have which claims: as the machine says, which a restore changes, or else the status."""
    claims = {each.name: each.pvc_name for each in wukong.status.volumes}
    for volume in machine.spec.template.spec.volumes if machine is not None else []:
        claims[volume.name] = claim_of(volume) or claims.get(volume.name, "")
    return {claims[disk.name]: disk.name for disk in wukong.spec.disks if disk.name in claims}


async def volumes_of(context: WukongContext) -> list[Object]:
    """All volumes that the Wukong owns."""
    wukong, client = context.object, context.client
    return [
        *await children_of(client, DataVolume, wukong),
        *await children_of(client, PersistentVolumeClaim, wukong),
    ]
