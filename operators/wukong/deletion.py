"""What becomes of a Wukong that is deleted: first the machine goes, then its volumes, then its networks.

Each stage begins when nothing of the one before is left, and deletes what belongs to the Wukong, whatever its spec says
now. Before anything is deleted, volumes that are to be retained are released for the next Wukong of the name, and the
claims that a restore has made are taken from the machine.

With `--cascade=orphan` everything stays, for the next Wukong of the name.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.api import Object
from kubewright.api.core.v1 import PersistentVolumeClaim
from kubewright.patterns import NotYet

from .cdi import DataVolume
from .children import UID_LABEL, WUKONG_LABEL, children_of, is_orphan, machine_name
from .context import WukongContext
from .kubevirt import VirtualMachine, VirtualMachineInstance
from .multus import NetworkAttachmentDefinition
from .retention import claim_names, is_retained, own_all, volumes_of

WAIT = 2.0
_ORPHAN = "orphan"


async def delete_children(context: WukongContext) -> None:
    """Delete everything that is not to stay, in order. Raises `NotYet` while something is left."""
    wukong, client = context.object, context.client
    if await _is_orphaning(context):
        return
    machines = await children_of(client, VirtualMachine, wukong)
    await _own(context, next(iter(machines), None))
    await _gone(context, machines)
    await _without_instance(context)
    if not is_retained(wukong):
        await _gone(context, await volumes_of(context))
        await _without_claims(context)
    await _gone(context, await children_of(client, NetworkAttachmentDefinition, wukong))
    await context.nodes.release(wukong, everything=True)


async def _is_orphaning(context: WukongContext) -> bool:
    """Whether the children are to stay.

    The garbage collector takes their owner from them first, and then its finalizer from the Wukong.
    """
    wukong = context.object
    if _ORPHAN in wukong.metadata.finalizers:
        return True
    machine = await context.client.find(VirtualMachine, machine_name(wukong), namespace=wukong.metadata.namespace)
    if machine is None or not is_orphan(machine, wukong):
        return False
    return machine.metadata.labels.get(UID_LABEL) == wukong.metadata.uid


async def _own(context: WukongContext, machine: VirtualMachine | None) -> None:
    wukong = context.object
    for volume in await own_all(context, machine):
        if is_retained(wukong):
            context.events.normal(wukong, "Retained", f"Retained {volume.kind} {volume.metadata.name}")


async def _gone(context: WukongContext, children: Sequence[Object]) -> None:
    for child in children:
        if child.metadata.deletion_timestamp is None:
            # One that is not as it was read may have lost its owner, and a machine may have claims that have not been
            # taken over.
            uid, revision = child.metadata.uid, child.metadata.resource_version
            await context.client.delete(child, uid=uid, resource_version=revision, missing_ok=True)
            context.deleted(child)
    if children:
        names = ", ".join(f"{child.kind} {child.metadata.name}" for child in children)
        raise NotYet(f"being deleted: {names}", after=WAIT)


async def _without_instance(context: WukongContext) -> None:
    """The garbage collector deletes the guest after its machine, and it still uses the volumes.

    One that has a machine is that of somebody else: ours is gone. And one that has no owner stays.
    """
    wukong = context.object
    name, namespace = machine_name(wukong), wukong.metadata.namespace
    found = await context.client.find(VirtualMachineInstance, name, namespace=namespace)
    if found is None or found.metadata.labels.get(WUKONG_LABEL) != wukong.metadata.name:
        return
    is_going = found.metadata.deletion_timestamp is not None or found.metadata.owner_references
    if is_going and await context.client.find(VirtualMachine, name, namespace=namespace) is None:
        raise NotYet(f"being deleted: VirtualMachineInstance {name}", after=WAIT)


async def _without_claims(context: WukongContext) -> None:
    """And the claims after their DataVolumes. A claim whose DataVolume exists is not ours: ours are gone."""
    client, namespace = context.client, context.object.metadata.namespace
    for name in claim_names(context.object):
        claim = await client.find(PersistentVolumeClaim, name, namespace=namespace)
        owners = claim.metadata.owner_references if claim is not None else []
        is_imported = any(owner.kind == "DataVolume" for owner in owners)
        if is_imported and await client.find(DataVolume, name, namespace=namespace) is None:
            raise NotYet(f"being deleted: PersistentVolumeClaim {name}", after=WAIT)
