"""The disks of a Wukong: a DataVolume for each that has an image, a PersistentVolumeClaim for any other.

Which claim a disk has is decided when the machine is made. A restore gives it another one, which the machine then
refers to, and which the next machine gets.
"""

from __future__ import annotations

import re

from kubewright import Quantity
from kubewright.api.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements
from kubewright.api.storage.v1 import StorageClass
from kubewright.client.errors import BadRequest, Invalid
from kubewright.patterns import Done, NotYet, step

from .cdi import (
    FAILED,
    SUCCEEDED,
    WAITING_PHASES,
    DataVolume,
    DataVolumeSource,
    DataVolumeSpec,
    HTTPSource,
    RegistrySource,
)
from .children import metadata_of, volume_name
from .context import DiskVolume, WukongContext
from .failures import Failure, ImportFailed, VolumeLost
from .kubevirt import Volume, claim_of
from .resizing import expand
from .retention import find_claim, find_restored, find_volume, is_volume_of, own, own_others, owned
from .types import Disk, VolumeStatus

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
CDI_MISSING = "has an image, and CDI is not installed"
TERMINATING = "is being deleted"
_REASONS = {CDI_MISSING: "CDIMissing", TERMINATING: "VolumesTerminating"}
_SCHEMES = ("docker://", "oci-archive://")


@step("VolumesBound")
async def volumes(context: WukongContext) -> Done:
    """Make the volumes, let them grow, and wait until the machine can use them."""
    wukong = context.object
    used = context.machine.spec.template.spec.volumes if context.machine is not None else []
    there = {volume.name: volume for volume in used}
    context.volumes = [await _volume(context, disk, there.get(disk.name)) for disk in wukong.spec.disks]
    wukong.status.volumes = [_status(volume) for volume in context.volumes]
    await own_others(context, context.machine, {each.claim_name: each.disk.name for each in context.volumes})
    await expand(context)
    failure = next((volume.failure for volume in context.volumes if volume.failure is not None), None)
    if failure is not None:
        raise failure
    unusable = [volume for volume in context.volumes if not volume.is_usable]
    if unusable:
        message = "; ".join([f"{each.disk.name} {await _explained_problem(context, each)}" for each in unusable])
        reason = next((_REASONS[each.problem] for each in unusable if each.problem in _REASONS), "VolumesPending")
        after = 60 if all(each.problem == CDI_MISSING for each in unusable) else 10  # its arrival is watched
        raise NotYet(message, after=after, reason=reason, warn=reason == _REASONS[TERMINATING])
    waiting = [volume.disk.name for volume in context.volumes if not volume.is_bound]
    message = f"{len(context.volumes)} volumes are ready"
    return Done(message + (f", {', '.join(waiting)} when first used" if waiting else ""), "VolumesReady")


async def _explained_problem(context: WukongContext, volume: DiskVolume) -> str:
    name = _class_of(volume.disk, volume.claim)
    if volume.problem in _REASONS or not name or await context.client.find(StorageClass, name) is not None:
        return volume.problem
    return f"{volume.problem}: there is no StorageClass {name}"


async def _volume(context: WukongContext, disk: Disk, used: Volume | None) -> DiskVolume:
    """The volume of a disk, made if there is none. `used` is what the machine has of it."""
    name = volume_name(context.object, disk.name)
    claim_name = (claim_of(used) if used is not None else None) or await _left(context, disk) or name
    if claim_name != name:
        claim = await find_claim(context, claim_name)
        if claim is not None and is_volume_of(claim, context.object):
            claim = await owned(context, claim, disk.name)
        return _claimed(disk, claim_name, claim, False, await _is_late(context, disk, claim))
    try:
        return await (_empty(context, disk, name) if disk.image is None else _imported(context, disk, name, disk.image))
    except Failure as failure:
        return DiskVolume(disk, name, None, disk.image is not None, False, failure=failure)


async def _left(context: WukongContext, disk: Disk) -> str | None:
    """The claim that the disk had before its machine was made: after a restore, by this Wukong or an earlier one."""
    wukong = context.object
    known = next((each for each in wukong.status.volumes if each.name == disk.name), None)
    if known is None:
        return await find_restored(context, disk.name)
    name = volume_name(wukong, disk.name)
    if known.pvc_name == name or await find_claim(context, known.pvc_name) is not None:
        return known.pvc_name
    note = f"the claim {known.pvc_name} of {disk.name} was deleted: {name} is used, without what the other one had"
    context.events.warning(wukong, "VolumeRecreated", note)
    return None


async def _empty(context: WukongContext, disk: Disk, name: str) -> DiskVolume:
    wukong = context.object
    claim = await find_volume(context, PersistentVolumeClaim, name)
    if claim is None:
        claim = PersistentVolumeClaim(metadata=metadata_of(wukong, name), spec=_claim_spec(disk))
        own(wukong, claim)
        claim = await context.client.create(claim)
        _created(context, disk, claim)
    return _claimed(disk, name, claim, False, await _is_late(context, disk, claim))


async def _imported(context: WukongContext, disk: Disk, name: str, image: str) -> DiskVolume:
    wukong, client = context.object, context.client
    claim = await client.find(PersistentVolumeClaim, name, namespace=wukong.metadata.namespace)
    if not await client.serves(DataVolume):
        return DiskVolume(disk, name, claim, True, False, CDI_MISSING)
    volume = await find_volume(context, DataVolume, name)
    if volume is None and claim is not None and not _is_imported(claim):
        # CDI may delete a DataVolume that it is done with, and leaves the claim to its owner. Nothing is imported into
        # a claim that is not ours.
        claim = await find_volume(context, PersistentVolumeClaim, name)
        return _claimed(disk, name, claim, True, await _is_late(context, disk, claim))
    if volume is None:
        volume = DataVolume(
            metadata=metadata_of(wukong, name),
            spec=DataVolumeSpec(source=source_of(image), pvc=_claim_spec(disk, volume_mode=True)),
        )
        own(wukong, volume)
        try:
            volume = await client.create(volume)
        except (BadRequest, Invalid) as refusal:
            raise ImportFailed(
                f"the import of {shown(image)} into {disk.name} is refused: {shown(str(refusal))}"
            ) from None
        _created(context, disk, volume)
    phase = volume.status.phase
    if volume.metadata.deletion_timestamp is not None:
        return DiskVolume(disk, name, claim, True, False, TERMINATING)
    if phase == FAILED:
        failure = ImportFailed(f"the import of {shown(image)} into {disk.name} failed{_explained(volume)}")
        return DiskVolume(disk, name, claim, True, False, failure=failure)
    is_late = await _is_late(context, disk, claim)
    if phase == SUCCEEDED:
        return _claimed(disk, name, claim or await find_claim(context, name), True, is_late)
    if phase in WAITING_PHASES and is_late:
        return DiskVolume(disk, name, claim, True, True)
    # Its progress is in the DataVolume: a status that followed it would be written every other second.
    # That it fails, and is tried again and again, is in a condition.
    is_failing = any((each.type, each.reason) == ("Running", "Error") for each in volume.status.conditions)
    error = _explained(volume) if is_failing else ""
    return DiskVolume(disk, name, claim, True, False, f"is being imported ({phase or 'Pending'}){error}")


def _is_imported(claim: PersistentVolumeClaim) -> bool:
    """Whether it is that of a DataVolume: one that is gone, if there is none, and then it goes as well."""
    return any(owner.kind == "DataVolume" for owner in claim.metadata.owner_references)


def _explained(volume: DataVolume) -> str:
    messages = [each.message for each in volume.status.conditions if each.status == "False" and each.message]
    return shown(f": {'; '.join(messages)}") if messages else ""


def _claimed(
    disk: Disk, name: str, claim: PersistentVolumeClaim | None, is_imported: bool, is_late: bool
) -> DiskVolume:
    """A volume by the phase of its claim. `is_late` claims are bound when they are first used."""
    phase = claim.status.phase if claim is not None else None
    if claim is None or phase == "Lost":
        what = "is gone" if claim is None else "has lost its volume"
        failure = VolumeLost(f"the claim {name} of {disk.name} {what}: restore it from a backup or a snapshot")
        return DiskVolume(disk, name, claim, is_imported, False, failure=failure)
    if claim.metadata.deletion_timestamp is not None:
        return DiskVolume(disk, name, claim, is_imported, False, TERMINATING)
    is_usable = phase == "Bound" or (phase in (None, "Pending") and is_late)
    return DiskVolume(disk, name, claim, is_imported, is_usable, "" if is_usable else f"is {phase or 'Pending'}")


async def _is_late(context: WukongContext, disk: Disk, claim: PersistentVolumeClaim | None) -> bool:
    found = await context.client.find(StorageClass, _class_of(disk, claim))
    return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _class_of(disk: Disk, claim: PersistentVolumeClaim | None) -> str:
    """The storage class of a volume: that of its claim, which an earlier Wukong of the name may have made."""
    return (claim.spec.storage_class_name if claim is not None else disk.storage_class_name) or ""


def _created(context: WukongContext, disk: Disk, child: PersistentVolumeClaim | DataVolume) -> None:
    context.created(child)
    if any(each.name == disk.name and each.size is not None for each in context.object.status.volumes):
        note = f"the volume of {disk.name} was deleted, and is made again without what it had"
        context.events.warning(context.object, "VolumeRecreated", note)


def source_of(image: str) -> DataVolumeSource:
    """Where CDI gets an image from. It wants the scheme of a registry, which users leave out."""
    if image.startswith(("http://", "https://")):
        return DataVolumeSource(http=HTTPSource(url=image))
    url = image if image.startswith(_SCHEMES) else f"docker://{image}"
    return DataVolumeSource(registry=RegistrySource(url=url, pull_method="pod"))


def shown(text: str) -> str:
    """An image, or a message about it, as users may see it: its URL without the password that it may have."""
    return re.sub(r"(https?://)[^/\s]*@", r"\1", text)


def _claim_spec(disk: Disk, *, volume_mode: bool = False) -> PersistentVolumeClaimSpec:
    return PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"],
        resources=VolumeResourceRequirements(requests={"storage": Quantity(disk.size)}),
        storage_class_name=disk.storage_class_name,
        volume_mode="Filesystem" if volume_mode else None,
    )


def _status(volume: DiskVolume) -> VolumeStatus:
    capacity = volume.capacity
    return VolumeStatus(
        name=volume.disk.name,
        pvc_name=volume.claim_name,
        bound=volume.is_bound,
        size=str(capacity) if capacity is not None else None,
    )
