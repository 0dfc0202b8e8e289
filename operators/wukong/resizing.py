"""Disks that grow: the claim asks for more, and the storage provides it. A failure does not keep the machine back."""

from __future__ import annotations

from kubewright import Quantity
from kubewright.api.storage.v1 import StorageClass
from kubewright.client.errors import APIError
from kubewright.patterns import remove_condition, set_condition
from kubewright.patterns.conditions import is_lost_race

from .context import DiskVolume, WukongContext

CONDITION = "DiskResizing"


async def expand(context: WukongContext) -> None:
    """Let claims ask for what the spec says, and report those that are not that large yet."""
    growing: list[str] = []
    refused: list[str] = []
    for number, volume in enumerate(context.volumes):
        problem = await _expand(context, number, volume)
        if problem:
            refused.append(f"{volume.disk.name} cannot grow to {volume.disk.size}: {problem}")
        elif progress := _progress(context.volumes[number]):
            growing.append(progress)
    message = "; ".join(growing + refused)
    if growing:
        set_condition(context.object, CONDITION, True, "Resizing", message)
    elif not refused:
        remove_condition(context.object, CONDITION)
    elif set_condition(context.object, CONDITION, False, "ExpansionRefused", message):
        context.events.warning(context.object, "ExpansionRefused", message)


async def _expand(context: WukongContext, number: int, volume: DiskVolume) -> str:
    """Why the claim cannot ask for more; empty when it does, or need not."""
    claim = volume.claim
    if claim is None or not volume.is_bound or Quantity(volume.disk.size) <= _requested(volume):
        return ""
    class_name = claim.spec.storage_class_name or ""
    found = await context.client.find(StorageClass, class_name)
    if found is None or not found.allow_volume_expansion:
        return f"the storage class {class_name} does not allow expansion"
    before = _requested(volume)
    claim.spec.resources.requests["storage"] = Quantity(volume.disk.size)
    try:
        claim = await context.client.patch(claim)
    except APIError as error:
        if is_lost_race(error):
            raise
        context.is_to_retry = True  # no watch brings the end of a quota, or of an outage
        return str(error)
    context.volumes[number] = volume._replace(claim=claim)
    note = f"{volume.disk.name} grows from {before} to {volume.disk.size}"
    context.events.normal(context.object, "Resizing", note)
    return ""


def _requested(volume: DiskVolume) -> Quantity:
    requests = volume.claim.spec.resources.requests if volume.claim is not None else {}
    return requests.get("storage", Quantity(0))


def _progress(volume: DiskVolume) -> str:
    """What a claim that asks for more than it has waits for; empty when it has it."""
    capacity, requested = volume.capacity, _requested(volume)
    if volume.claim is None or not volume.is_bound or capacity is None or capacity >= requested:
        return ""
    conditions = {each.type for each in volume.claim.status.conditions if each.status == "True"}
    hint = ", its file system when it is next mounted" if "FileSystemResizePending" in conditions else ""
    return f"{volume.disk.name} grows from {capacity} to {requested}{hint}"
