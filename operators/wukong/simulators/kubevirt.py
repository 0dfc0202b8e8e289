"""A simulation of KubeVirt's controllers: machines get guests, which go through their phases and run nowhere.

A guest starts when the claims of its machine are bound, and binds those that wait for their first consumer. What a test
wants of a machine it says in the script, or does as a user would: `start`, `stop`, `migrate`, `shut_down`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256

from kubewright import CachedClient, Client, Manager, ObjectMeta, Result, controller_for
from kubewright.api.codec import remembered
from kubewright.api.core.v1 import PersistentVolumeClaim
from kubewright.client import MergePatch
from kubewright.patterns import NotYet, ObjectReconciler, remove_condition, set_condition

from ..cdi import SUCCEEDED, DataVolume
from ..kubevirt import (
    HALTED,
    MANUAL,
    ONCE,
    RESTART_REQUIRED,
    InterfaceStatus,
    VirtualMachine,
    VirtualMachineInstance,
    claim_of,
)
from .delays import Delays

SELECTED_NODE = "volume.kubernetes.io/selected-node"
STARTED = "simulators.kubewright.dev/started"
"""The annotation of a machine that a user has started by hand."""
TEMPLATE = "simulators.kubewright.dev/template"
"""The annotation of a guest with the hash of what it was made of."""

PHASES = ("Pending", "Scheduling", "Scheduled", "Running")
ENDED = ("Succeeded", "Failed")


@dataclass
class KubeVirtScript:
    """What machines do."""

    step: float = 0.02
    """Seconds from one phase to the next."""
    stop: float = 0.0
    """Seconds until a guest that is deleted has stopped."""
    restart: float = 5.0
    """Seconds until a guest that has failed is started again."""
    nodes: tuple[str, ...] = ("node-1", "node-2")
    failing: set[str] = field(default_factory=set[str])
    """The machines whose guests fail when they start."""


def set_up_kubevirt(manager: Manager, script: KubeVirtScript | None = None) -> None:
    """The controllers of machines and of guests."""
    script = script or KubeVirtScript()
    (
        controller_for(manager, VirtualMachine, name="virt-machines", slow_hot_loops=False)
        .owns(VirtualMachineInstance)
        .complete(MachineReconciler(manager.client, script))
    )
    controller_for(manager, VirtualMachineInstance, name="virt-instances", slow_hot_loops=False).complete(
        InstanceReconciler(manager.client, script)
    )


class MachineReconciler(ObjectReconciler[VirtualMachine]):
    """Has guests for machines that are to run."""

    finalizer = "kubevirt.io/virtualMachineControllerFinalize"

    def __init__(self, client: CachedClient, script: KubeVirtScript) -> None:
        super().__init__(client)
        self._script = script
        self._delays = Delays()

    async def converge(self, machine: VirtualMachine) -> Result | None:
        """Make or delete the guest."""
        instance = await self.client.find(VirtualMachineInstance, machine.key)
        result = None
        if is_to_run(machine, instance):
            if instance is None:
                problem = await self._volumes_problem(machine)
                if not problem:
                    instance = await self.client.create(_instance(machine))
                else:
                    result = Result(requeue_after=0.5)
            elif instance.status.phase in ENDED:
                result = await self._restart(instance)
        elif instance is not None and instance.status.phase not in ENDED:
            await self._delete(instance)
        _report(machine, instance)
        return result

    async def cleanup(self, machine: VirtualMachine) -> None:
        """Delete the guest first."""
        instance = await self.client.find(VirtualMachineInstance, machine.key)
        if instance is not None:
            await self._delete(instance)
            raise NotYet("the guest is stopping", after=1)

    async def _restart(self, instance: VirtualMachineInstance) -> Result | None:
        remaining = self._delays.remaining(instance.metadata.uid, self._script.restart)
        if remaining:
            return Result(requeue_after=remaining)
        await self._delete(instance)
        return None

    async def _delete(self, instance: VirtualMachineInstance) -> None:
        if instance.metadata.deletion_timestamp is None:
            await self.client.delete(instance, uid=instance.metadata.uid, missing_ok=True)

    async def _volumes_problem(self, machine: VirtualMachine) -> str:
        """What is missing until the guest can be started."""
        for volume in machine.spec.template.spec.volumes:
            name = claim_of(volume)
            if name is None:
                continue
            claim = await self.client.find(PersistentVolumeClaim, name, namespace=machine.metadata.namespace)
            if claim is None:
                return f"there is no claim {name}"
            if claim.status.phase != "Bound":
                await self._consume(claim)
                return f"the claim {name} is not bound"
            if volume.data_volume is not None:
                found = await self.client.find(DataVolume, name, namespace=machine.metadata.namespace)
                if found is not None and found.status.phase != SUCCEEDED:
                    return f"the import into {name} is not done"
        return ""

    async def _consume(self, claim: PersistentVolumeClaim) -> None:
        """As a scheduler does for a pod that uses the claim."""
        if SELECTED_NODE not in claim.metadata.annotations:
            claim.metadata.annotations[SELECTED_NODE] = self._script.nodes[0]
            await self.client.patch(claim)


def is_to_run(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> bool:
    """Whether the machine is to have a guest now."""
    strategy, phase = machine.spec.run_strategy, instance.status.phase if instance is not None else ""
    if strategy == HALTED:
        return False
    if strategy == MANUAL:
        return STARTED in machine.metadata.annotations
    if strategy == ONCE:
        return phase not in ENDED and (instance is not None or not machine.status.created)
    return not (strategy == "RerunOnFailure" and phase == "Succeeded")


def _report(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> None:
    phase = instance.status.phase if instance is not None else ""
    machine.status.created = instance is not None
    machine.status.ready = phase == "Running"
    if instance is not None and instance.metadata.deletion_timestamp is not None:
        machine.status.printable_status = "Stopping"
    elif phase == "Running":
        machine.status.printable_status = "Running"
    elif phase == "Failed":
        machine.status.printable_status = "CrashLoopBackOff"
    else:
        is_stopped = phase == "Succeeded" or not is_to_run(machine, instance)
        machine.status.printable_status = "Stopped" if is_stopped else "Starting"
    made_of = instance.metadata.annotations.get(TEMPLATE) if instance is not None else None
    if made_of is not None and made_of != _template_hash(machine):
        message = "a non-live-updatable field was changed in the template spec"
        set_condition(machine, RESTART_REQUIRED, True, RESTART_REQUIRED, message)
    else:
        remove_condition(machine, RESTART_REQUIRED)


def _template_hash(machine: VirtualMachine) -> str:
    """Of the template as it is stored, with what the types do not know."""
    stored = json.loads(remembered(machine) or b"{}")
    return sha256(json.dumps(stored["spec"]["template"]["spec"], sort_keys=True).encode()).hexdigest()[:16]


def _instance(machine: VirtualMachine) -> VirtualMachineInstance:
    template = machine.spec.template
    metadata = ObjectMeta(
        name=machine.metadata.name,
        namespace=machine.metadata.namespace,
        labels=template.metadata.labels,
        annotations={**template.metadata.annotations, TEMPLATE: _template_hash(machine)},
        owner_references=[machine.as_owner()],
    )
    return VirtualMachineInstance(metadata=metadata, spec=template.spec)


class InstanceReconciler(ObjectReconciler[VirtualMachineInstance]):
    """Takes guests through their phases."""

    finalizer = "simulators.kubewright.dev/guest"

    def __init__(self, client: CachedClient, script: KubeVirtScript) -> None:
        super().__init__(client)
        self._script = script
        self._delays = Delays()

    async def converge(self, instance: VirtualMachineInstance) -> Result | None:
        """Enter the next phase."""
        status = instance.status
        if status.phase in ENDED or status.phase == "Running":
            return None
        index = PHASES.index(status.phase) + 1 if status.phase in PHASES else 0
        status.phase = PHASES[index]
        if instance.metadata.name in self._script.failing and index > 0:
            status.phase, status.reason = "Failed", "GuestPanicked"
            return None
        if status.phase == "Scheduled":
            status.node_name = self._node(instance)
        if status.phase == "Running":
            status.interfaces = [_interface(instance, number) for number in range(len(instance.spec.networks))]
            return None
        return Result(requeue_after=self._script.step)

    async def cleanup(self, instance: VirtualMachineInstance) -> None:
        """Let the guest stop."""
        remaining = self._delays.remaining(instance.metadata.uid, self._script.stop)
        if remaining:
            raise NotYet("the guest is stopping", after=remaining)

    def _node(self, instance: VirtualMachineInstance) -> str:
        nodes = self._script.nodes
        return nodes[_number(instance.metadata.name, len(nodes))]


def _interface(instance: VirtualMachineInstance, number: int) -> InterfaceStatus:
    name = instance.spec.networks[number].name
    device = next((each for each in instance.spec.domain.devices.interfaces if each.name == name), None)
    host = _number(f"{instance.metadata.namespace}/{instance.metadata.name}/{name}", 65000)
    return InterfaceStatus(
        name=name,
        mac=device.mac_address if device is not None else None,
        ip_address=f"10.{number}.{host // 256}.{host % 256}",
        interface_name=f"eth{number}",
    )


def _number(text: str, limit: int) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:4]) % limit


# What users and guests do.


async def start(client: Client, name: str) -> None:
    """As `virtctl start` of a machine with the run strategy Manual."""
    await client.patch(VirtualMachine, name, MergePatch({"metadata": {"annotations": {STARTED: "true"}}}))


async def stop(client: Client, name: str) -> None:
    """As `virtctl stop`: with the run strategy Manual the guest ends, otherwise the machine is halted."""
    machine = await client.get(VirtualMachine, name)
    if machine.spec.run_strategy == MANUAL:
        await client.patch(VirtualMachine, name, MergePatch({"metadata": {"annotations": {STARTED: None}}}))
    else:
        await client.patch(VirtualMachine, name, MergePatch({"spec": {"runStrategy": HALTED}}))


async def migrate(client: Client, name: str, node: str) -> None:
    """As the end of a live migration."""
    await client.status.patch(VirtualMachineInstance, name, MergePatch({"status": {"nodeName": node}}))


async def shut_down(client: Client, name: str, *, phase: str = "Succeeded") -> None:
    """As a guest that shuts itself down, or crashes (`Failed`)."""
    await client.status.patch(VirtualMachineInstance, name, MergePatch({"status": {"phase": phase}}))
