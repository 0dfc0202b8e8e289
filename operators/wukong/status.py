"""The status of a Wukong, from the machine and the guest that there are."""

from __future__ import annotations

from kubewright.api.core.v1 import PersistentVolumeClaim
from kubewright.patterns import NotYet, get_condition, remove_condition, set_condition
from kubewright.patterns.conditions import message_of, reason_of

from .children import belongs_to
from .context import WukongContext, is_bound
from .kubevirt import HALTED, MANUAL, RESTART_REQUIRED, VirtualMachine, VirtualMachineInstance, claim_of
from .types import DEFAULT_NETWORK, NetworkStatus, Phase, VolumeStatus

READY = "Ready"

_CREATING = ("", "Pending", "Scheduling", "Scheduled", "WaitForSync")
_FAILED = ("Failed", "Unknown")
_ENDED = ("Failed", "Succeeded")
_STARTING = ("Provisioning", "Starting", "WaitingForVolumeBinding")
"""A machine that is to have a guest, and has none yet."""


async def find_instance(context: WukongContext, machine: VirtualMachine | None) -> VirtualMachineInstance | None:
    """The guest of the machine; not one that an earlier machine of the name has left."""
    if machine is None:
        return None
    found = await context.client.find(
        VirtualMachineInstance, machine.metadata.name, namespace=machine.metadata.namespace
    )
    owners = found.metadata.owner_references if found is not None else []
    return found if any(owner.uid == machine.metadata.uid for owner in owners) else None


def phase_of(machine: VirtualMachine | None, instance: VirtualMachineInstance | None) -> Phase:
    """What a machine and its guest come to."""
    if instance is None:
        return "Stopped" if machine is not None and is_at_rest(machine) else "Creating"
    phase = instance.status.phase
    if phase == "Running":
        return "Running"
    if phase in _FAILED:
        return "Error"
    return "Stopped" if phase == "Succeeded" else "Creating"


def is_at_rest(machine: VirtualMachine) -> bool:
    """Whether a machine without a guest is not about to have one."""
    strategy, state = machine.spec.run_strategy, machine.status.printable_status
    if strategy == HALTED:
        return True
    if strategy == MANUAL:
        return state not in _STARTING
    # After a run; a machine that is to run always is stopped for a moment only.
    return strategy != "Always" and state == "Stopped"


async def report(context: WukongContext, machine: VirtualMachine | None, problem: Exception | None) -> None:
    """Put into the status what there is, and what keeps the reconcile from being done."""
    wukong, status = context.object, context.object.status
    machine = machine if machine is not None and belongs_to(machine, wukong) else None
    instance = await find_instance(context, machine)
    phase = phase_of(machine, instance)
    if phase == "Creating" and wukong.metadata.deletion_timestamp is not None:
        phase = "Stopped"
    before, status.phase = status.phase, "Error" if is_failure(problem) else phase
    status.vm_name = machine.metadata.name if machine is not None else None
    is_there = instance is not None and instance.status.phase not in _ENDED
    status.node_name = instance.status.node_name if instance is not None and is_there else None
    status.networks = _networks(context, instance if is_there else None)
    if not context.volumes:
        status.volumes = [await _volume(context, machine, volume) for volume in status.volumes]
    _report_ready(context, machine, instance, phase, problem)
    _report_restart(context, machine)
    if status.phase != before and status.phase in ("Running", "Stopped"):
        where = f" on {status.node_name}" if status.phase == "Running" and status.node_name else ""
        context.events.normal(wukong, status.phase, f"The machine is {status.phase.lower()}{where}")


def is_failure(problem: Exception | None) -> bool:
    """Whether something is wrong, rather than not done yet."""
    return problem is not None and not isinstance(problem, NotYet)


def _report_ready(
    context: WukongContext,
    machine: VirtualMachine | None,
    instance: VirtualMachineInstance | None,
    phase: Phase,
    problem: Exception | None,
) -> None:
    wukong = context.object
    is_deleted = wukong.metadata.deletion_timestamp is not None
    message = message_of(problem) if problem is not None else ""
    others = [each.message for each in wukong.status.conditions if each.type != READY and each.status == "False"]
    is_reported = any(other and other in message for other in others)
    waiting = f"; {message}" if message and not is_reported else ""
    if problem is not None and (machine is None or is_deleted or is_failure(problem)):
        reason = reason_of(problem)
        if is_deleted and not is_failure(problem):
            reason = "Deleting"
        if set_condition(wukong, READY, False, reason, message) and is_failure(problem) and not is_reported:
            context.events.warning(wukong, reason, message)
    elif phase == "Running" and instance is not None:
        message = f"the machine runs on {instance.status.node_name or 'a node'}{waiting}"
        set_condition(wukong, READY, True, "VMRunning", message)
    elif phase == "Error" and instance is not None:
        message = f"the machine is {instance.status.phase}{_explained(instance)}"
        if set_condition(wukong, READY, False, "VMFailed", message):
            context.events.warning(wukong, "VMFailed", message)
    elif phase == "Creating":
        stage = instance.status.phase if instance is not None else ""
        message = f"the machine is {stage or 'being created'}{_obstacle(machine, instance)}{waiting}"
        set_condition(wukong, READY, False, "VMCreating", message)
    else:
        set_condition(wukong, READY, False, "VMNotReady", f"the machine is stopped{waiting}")


def _obstacle(machine: VirtualMachine | None, instance: VirtualMachineInstance | None) -> str:
    """Why there is no guest, or none that has a node, as KubeVirt says."""
    conditions = machine.status.conditions if machine is not None else []
    found = [each.message for each in conditions if (each.type, each.status) == ("Failure", "True")]
    conditions = instance.status.conditions if instance is not None else []
    found += [each.message for each in conditions if (each.type, each.status) == ("PodScheduled", "False")]
    return f": {'; '.join(filter(None, found))}" if any(found) else ""


def _explained(instance: VirtualMachineInstance) -> str:
    messages = [each.message for each in instance.status.conditions if each.status == "False" and each.message]
    parts = [instance.status.reason, *messages]
    return f": {'; '.join(part for part in parts if part)}" if any(parts) else ""


def _report_restart(context: WukongContext, machine: VirtualMachine | None) -> None:
    """KubeVirt says when changes take effect at the next start only."""
    found = get_condition(machine, RESTART_REQUIRED) if machine is not None else None
    if found is None or found.status != "True":
        remove_condition(context.object, RESTART_REQUIRED)
        return
    message = found.message or "the machine has changes that a restart brings into effect"
    if set_condition(context.object, RESTART_REQUIRED, True, RESTART_REQUIRED, message):
        context.events.warning(context.object, RESTART_REQUIRED, message)


def _networks(context: WukongContext, instance: VirtualMachineInstance | None) -> list[NetworkStatus]:
    """What the guest has of each network. Unless the attachments are known, they are as they were."""
    wukong = context.object
    interfaces = {each.name: each for each in instance.status.interfaces} if instance is not None else {}
    if context.attachments:
        attached = {each.network: each.nad or None for each in context.attachments}
        primary = {each.network for each in context.attachments if each.is_primary}
    else:
        attached = {each.name: each.nad_name for each in wukong.status.networks}
        primary = {each.name for each in wukong.status.networks if each.primary}
    wanted = [network.name for network in wukong.spec.networks if network.name != DEFAULT_NETWORK]
    names = ([DEFAULT_NETWORK] if DEFAULT_NETWORK in attached else []) + wanted
    return [
        NetworkStatus(
            name=name,
            nad_name=attached.get(name),
            interface=interfaces[name].interface_name if name in interfaces else None,
            ip_address=interfaces[name].ip_address if name in interfaces else None,
            mac_address=interfaces[name].mac if name in interfaces else None,
            primary=True if name in primary else None,
        )
        for name in dict.fromkeys(names)  # of a spec that is not valid, some may be there twice
    ]


async def _volume(context: WukongContext, machine: VirtualMachine | None, known: VolumeStatus) -> VolumeStatus:
    """What a disk has now, as far as that is known without making anything."""
    used = machine.spec.template.spec.volumes if machine is not None else []
    name = next((claim_of(each) for each in used if each.name == known.name), None) or known.pvc_name
    claim = await context.client.find(PersistentVolumeClaim, name, namespace=context.object.metadata.namespace)
    capacity = claim.status.capacity.get("storage") if claim is not None else None
    return VolumeStatus(
        name=known.name,
        pvc_name=name,
        bound=claim is not None and is_bound(claim),
        size=str(capacity) if capacity is not None else known.size,
    )
