"""What a machine and its guest come to in the status."""

from __future__ import annotations

import asyncio

import pytest
from operators.wukong import Wukong
from operators.wukong.kubevirt import (
    VirtualMachine,
    VirtualMachineInstance,
    VirtualMachineInstanceSpec,
    VirtualMachineInstanceStatus,
    VirtualMachineSpec,
    VirtualMachineStatus,
)
from operators.wukong.simulators import migrate, shut_down, stop
from operators.wukong.status import phase_of
from operators.wukong.tests.worlds import Scripts, verdict, virtual_world
from operators.wukong.types import HighAvailability, Network

from kubewright import ObjectMeta
from kubewright.api.apiextensions.v1 import CustomResourceDefinition, JSONSchemaProps
from kubewright.api.core.v1 import PersistentVolumeClaim
from kubewright.client import MergePatch
from kubewright.client.wait import deleted, exists
from kubewright.patterns import set_condition
from kubewright.testing import virtual


@pytest.mark.parametrize(
    ("strategy", "state", "guest", "phase"),
    [
        ("Always", "Running", "Running", "Running"),
        ("Always", "Starting", "Pending", "Creating"),
        ("Always", "Starting", "Scheduling", "Creating"),
        ("Always", "Starting", "Scheduled", "Creating"),
        ("Always", "Starting", "SomethingNew", "Creating"),
        ("Always", "CrashLoopBackOff", "Failed", "Error"),
        ("Always", "Running", "Unknown", "Error"),
        ("Always", "Stopped", "Succeeded", "Stopped"),
        ("Always", None, None, "Creating"),
        ("Always", "Stopped", None, "Creating"),
        ("Halted", None, None, "Stopped"),
        ("Halted", "Stopping", None, "Stopped"),
        ("Manual", None, None, "Stopped"),
        ("Manual", "Stopped", None, "Stopped"),
        ("Manual", "Starting", None, "Creating"),
        ("Manual", "Provisioning", None, "Creating"),
        ("Manual", "WaitingForVolumeBinding", None, "Creating"),
        ("RerunOnFailure", "Stopped", None, "Stopped"),
        ("RerunOnFailure", "Starting", None, "Creating"),
        ("Once", None, None, "Creating"),
        ("Once", "Stopped", None, "Stopped"),
        (None, None, None, "Creating"),
    ],
)
def test_the_phase(strategy: str | None, state: str | None, guest: str | None, phase: str) -> None:
    machine = instance = None
    if strategy is not None:
        status = VirtualMachineStatus(printable_status=state)
        machine = VirtualMachine(
            metadata=ObjectMeta(name="a"), spec=VirtualMachineSpec(run_strategy=strategy), status=status
        )
    if guest is not None:
        instance = VirtualMachineInstance(
            metadata=ObjectMeta(name="a"),
            spec=VirtualMachineInstanceSpec(),
            status=VirtualMachineInstanceStatus(phase=guest),
        )
    assert phase_of(machine, instance) == phase


@virtual
async def test_what_the_guest_has_is_in_the_status() -> None:
    async with virtual_world() as world:
        created = await world.running(networks=[Network(name="lan", type="bridge")])
        instance = await world.instance()
        status = created.status
        assert (status.vm_name, status.node_name) == ("web-vm", instance.status.node_name)
        assert [(each.name, each.ip_address, each.mac_address, each.interface) for each in status.networks] == [
            (each.name, each.ip_address, each.mac, each.interface_name) for each in instance.status.interfaces
        ]
        assert [each.nad_name for each in status.networks] == [None, "web-lan-nad"]
        assert all(each.ip_address and each.mac_address for each in status.networks)


@virtual
async def test_a_migration_is_noticed() -> None:
    async with virtual_world() as world:
        created = await world.running()
        target = "node-1" if created.status.node_name == "node-2" else "node-2"
        await migrate(world.client, "web-vm", target)
        moved = await world.becomes(lambda wukong: wukong.status.node_name == target, timeout=9)
        assert verdict(moved, "Ready") == ("True", "VMRunning", f"the machine runs on {target}")


@virtual
async def test_a_guest_that_shuts_down_is_stopped_and_one_that_crashes_an_error() -> None:
    async with virtual_world() as world:
        await world.running(high_availability=HighAvailability(restart_policy="Never"))
        await shut_down(world.client, "web-vm")
        stopped = await world.reaches("Stopped", timeout=9)
        assert verdict(stopped, "Ready") == ("False", "VMNotReady", "the machine is stopped")
        assert stopped.status.node_name is None
        assert [(each.ip_address, each.interface) for each in stopped.status.networks] == [(None, None)]

        await world.running("other", high_availability=HighAvailability(restart_policy="Never"))
        await shut_down(world.client, "other-vm", phase="Failed")
        failed = await world.reaches("Error", "other", timeout=9)
        assert verdict(failed, "Ready") == ("False", "VMFailed", "the machine is Failed")


@virtual
async def test_a_guest_that_fails_and_starts_at_last() -> None:
    scripts = Scripts()
    scripts.kubevirt.failing = {"web-vm"}
    async with virtual_world(scripts=scripts) as world:
        await world.create()
        failed = await world.reaches("Error")
        assert verdict(failed, "Ready") == ("False", "VMFailed", "the machine is Failed: GuestPanicked")
        scripts.kubevirt.failing.clear()
        running = await world.reaches("Running")
        assert verdict(running, "Ready") is not None
        reasons = [reason for reason, _ in await world.events()]
        assert reasons.count("VMFailed") == 1
        assert reasons.count("Running") == 1


@virtual
async def test_what_keeps_a_guest_from_starting_is_in_the_status() -> None:
    refused, unschedulable = "admission webhook denied the request: GPU a/b is not permitted", "0/2 nodes are available"
    async with virtual_world(kinds=["multus"]) as world:
        await world.install("kubevirt")  # without its controllers
        await world.create()
        machine = await world.client.wait_for(VirtualMachine, "web-vm", exists)
        assert machine is not None
        failure = {"type": "Failure", "status": "True", "reason": "FailedCreate", "message": refused}
        await world.client.status.patch(machine, MergePatch({"status": {"conditions": [failure]}}))
        expected = ("False", "VMCreating", f"the machine is being created: {refused}")
        await world.becomes(lambda wukong: verdict(wukong, "Ready") == expected, timeout=9)
        await world.client.status.patch(machine, MergePatch({"status": {"conditions": None}}))
        metadata = ObjectMeta(name="web-vm", owner_references=[machine.as_owner()])
        guest = await world.client.create(VirtualMachineInstance(metadata=metadata, spec=VirtualMachineInstanceSpec()))
        pending = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": unschedulable}
        status = {"phase": "Scheduling", "conditions": [pending]}
        await world.client.status.patch(guest, MergePatch({"status": status}))
        expected = ("False", "VMCreating", f"the machine is Scheduling: {unschedulable}")
        await world.becomes(lambda wukong: verdict(wukong, "Ready") == expected, timeout=9)


@virtual
async def test_a_guest_of_an_earlier_machine_is_not_taken_for_that_of_this_one() -> None:
    async with virtual_world() as world:
        orphan = VirtualMachineInstance(metadata=ObjectMeta(name="web-vm"), spec=VirtualMachineInstanceSpec())
        await world.client.create(orphan)
        await world.client.status.patch(
            VirtualMachineInstance, "web-vm", MergePatch({"status": {"phase": "Running", "nodeName": "elsewhere"}})
        )
        await world.create()
        await asyncio.sleep(30)
        found = await world.get()
        assert (found.status.phase, found.status.node_name) == ("Creating", None)


@virtual
async def test_a_machine_whose_spec_is_not_valid_any_more_is_reported_all_the_same() -> None:
    """It was stored before there was a rule, and goes on."""
    async with virtual_world() as world:
        await world.running(networks=[Network(name="lan", type="bridge")])
        lenient = await world.client.get(CustomResourceDefinition, "wukongs.vm.novasphere.dev")
        for version in lenient.spec.versions:
            assert version.schema is not None
            assert version.schema.open_apiv3_schema is not None
            version.schema.open_apiv3_schema.properties["spec"] = JSONSchemaProps(
                type="object", x_kubernetes_preserve_unknown_fields=True
            )
        await world.client.update(lenient)
        twice = [{"name": "lan", "type": "bridge"}, {"name": "lan", "type": "bridge"}]
        await world.change({"cpu": 0, "networks": twice})
        refused = await world.becomes(lambda wukong: reason(wukong) == "InvalidSpec", timeout=9)
        status = refused.status
        instance = await world.instance()
        assert (status.phase, status.vm_name, status.node_name) == ("Error", "web-vm", instance.status.node_name)
        await migrate(world.client, "web-vm", "node-3")
        await world.becomes(lambda wukong: wukong.status.node_name == "node-3", timeout=9)
        await world.client.delete(PersistentVolumeClaim, "web-root")
        await world.becomes(lambda wukong: not wukong.status.volumes[0].bound, timeout=9)
        await stop(world.client, "web-vm")
        stopped = await world.becomes(lambda wukong: wukong.status.node_name is None, timeout=9)
        assert [(each.name, each.nad_name, each.ip_address) for each in stopped.status.networks] == [
            ("default", None, None),
            ("lan", "web-lan-nad", None),
        ]
        assert len(await world.warnings("InvalidSpec")) == 1


@virtual
async def test_conditions_and_status_of_others_survive() -> None:
    async with virtual_world() as world:
        await world.running()
        found = await world.get()
        set_condition(found, "Backup", True, "Nightly", "done")
        await world.client.status.update(found)
        await migrate(world.client, "web-vm", "node-3")
        after = await world.becomes(lambda wukong: wukong.status.node_name == "node-3")
        assert verdict(after, "Backup") == ("True", "Nightly", "done")


@virtual
async def test_a_deletion_says_what_it_waits_for() -> None:
    scripts = Scripts()
    scripts.kubevirt.stop = 60
    async with virtual_world(scripts=scripts) as world:
        created = await world.running()
        held = MergePatch({"metadata": {"finalizers": ["test.example.com/in-use"]}})
        await world.client.patch(PersistentVolumeClaim, "web-root", held)
        await world.client.delete(created)
        stopping = await world.becomes(lambda wukong: reason(wukong) == "Deleting", timeout=9)
        assert verdict(stopping, "Ready") == ("False", "Deleting", "being deleted: VirtualMachine web-vm")
        assert (stopping.status.phase, stopping.status.vm_name) == ("Running", "web-vm"), "the guest does"
        waits = ("False", "Deleting", "being deleted: PersistentVolumeClaim web-root")
        stopped = await world.becomes(lambda wukong: verdict(wukong, "Ready") == waits, timeout=120)
        assert (stopped.status.phase, stopped.status.vm_name, stopped.status.node_name) == ("Stopped", None, None)


@virtual
async def test_a_deletion_that_fails_is_an_error_until_it_goes_on() -> None:
    async with virtual_world() as world:
        created = await world.running()
        world.faults.fail(
            lambda target: (target.verb, target.resource) == ("delete", "virtualmachines"), code=403, times=9
        )
        await world.client.delete(created)
        failed = await world.reaches("Error", timeout=9)
        assert reason(failed) == "Forbidden"
        await world.client.wait_for(created, deleted)
        assert len(await world.warnings("Forbidden")) == 1


def reason(wukong: Wukong) -> str:
    """Why it is not ready."""
    return (verdict(wukong, "Ready") or ("", ""))[1]
