"""Restoring a machine from a snapshot, once it is stopped: a VirtualMachineRestore for as long as the spec names one.

KubeVirt gives the disks of the machine new claims. When the spec names no snapshot any more the VirtualMachineRestore
is deleted, so that the same snapshot can be restored again.
"""

from __future__ import annotations

from kubewright import set_controller_reference
from kubewright.api.core.v1 import TypedLocalObjectReference
from kubewright.client.errors import BadRequest, Forbidden, Invalid
from kubewright.patterns import get_condition

from .children import belongs_to, children_of, find_child, metadata_of, name_taken
from .context import WukongContext
from .kubevirt import GROUP, VirtualMachine, VirtualMachineInstance
from .kubevirt_snapshots import AnyRestore, VirtualMachineRestoreSpec, served_restores
from .snapshot_types import WukongSnapshot
from .status import is_at_rest
from .types import RestoreStatus, Wukong


def restore_name(wukong: Wukong, snapshot: str) -> str:
    """The VirtualMachineRestore of a snapshot."""
    return f"{wukong.metadata.name}-{snapshot}"


async def restore(context: WukongContext, machine: VirtualMachine, instance: VirtualMachineInstance | None) -> None:
    """Restore what the spec names, and put into the status how far that is."""
    wukong = context.object
    name = wukong.spec.restore_from_snapshot
    await _forget_others(context, name)
    if name is None:
        wukong.status.restore = None
        return
    before = wukong.status.restore
    status = await _restored(context, machine, instance, name)
    wukong.status.restore = status
    if before is None or before.phase != status.phase:
        if status.phase == "Succeeded":
            context.events.normal(wukong, "Restored", f"Restored the snapshot {name}")
        elif status.phase == "Failed":
            context.events.warning(wukong, "RestoreFailed", f"The snapshot {name} was not restored: {status.message}")


async def _restored(
    context: WukongContext, machine: VirtualMachine, instance: VirtualMachineInstance | None, name: str
) -> RestoreStatus:
    wukong, client = context.object, context.client
    done = wukong.status.restore
    if done is not None and (done.snapshot != name or done.phase not in ("Succeeded", "Failed")):
        done = None
    kind = await served_restores(client)
    if kind is None:
        missing = RestoreStatus(snapshot=name, message="this KubeVirt has no snapshots (snapshot.kubevirt.io)")
        return done or missing
    found: AnyRestore | None = await find_child(client, kind, restore_name(wukong, name), wukong)
    if found is not None and not belongs_to(found, wukong):
        raise name_taken(found)  # what it has restored may not be what this Wukong has
    if found is not None and found.metadata.deletion_timestamp is None:
        return _progress(found, name)
    if done is not None:
        return done  # a second restore would undo what was written since
    if found is not None:
        return RestoreStatus(snapshot=name, message="an earlier restore of it is being deleted")
    snapshot = await client.find(WukongSnapshot, name, namespace=wukong.metadata.namespace)
    if snapshot is None:
        return RestoreStatus(snapshot=name, message="there is no such WukongSnapshot")
    if snapshot.spec.wukong_name != wukong.metadata.name:
        return RestoreStatus(snapshot=name, phase="Failed", message=f"it is of {snapshot.spec.wukong_name}")
    if snapshot.status.phase != "Succeeded" or snapshot.status.snapshot_name is None:
        return RestoreStatus(snapshot=name, message=f"the snapshot is {snapshot.status.phase}")
    if instance is not None or not is_at_rest(machine):
        return RestoreStatus(snapshot=name, message="the machine must be stopped: set startStrategy.autoStart to false")
    spec = VirtualMachineRestoreSpec(
        target=TypedLocalObjectReference(api_group=GROUP, kind="VirtualMachine", name=machine.metadata.name),
        virtual_machine_snapshot_name=snapshot.status.snapshot_name,
    )
    wanted = kind(metadata=metadata_of(wukong, restore_name(wukong, name)), spec=spec)
    set_controller_reference(wukong, wanted)
    try:
        context.created(await client.create(wanted))
    except (BadRequest, Forbidden, Invalid) as refusal:  # by KubeVirt; the machine is as well as before
        return RestoreStatus(snapshot=name, phase="Failed", message=str(refusal))
    return RestoreStatus(snapshot=name, phase="Restoring")


def _progress(found: AnyRestore, name: str) -> RestoreStatus:
    if found.status.complete:
        return RestoreStatus(snapshot=name, phase="Succeeded")
    failure = get_condition(found, "Failure")
    if failure is not None and failure.status == "True":
        return RestoreStatus(snapshot=name, phase="Failed", message=failure.message or failure.reason or "")
    return RestoreStatus(snapshot=name, phase="Restoring")


async def _forget_others(context: WukongContext, name: str | None) -> None:
    kind = await served_restores(context.client)
    if kind is None:
        return
    wanted = restore_name(context.object, name) if name is not None else ""
    for child in await children_of(context.client, kind, context.object):
        if child.metadata.name != wanted and child.metadata.deletion_timestamp is None:
            await context.client.delete(child, uid=child.metadata.uid, missing_ok=True)
