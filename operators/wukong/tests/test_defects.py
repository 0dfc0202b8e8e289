"""Defects of the operator that this one is modelled on: each is a test that it is not there."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from operators.wukong import Wukong, setup
from operators.wukong.cdi import DataVolume
from operators.wukong.kubevirt import VirtualMachine, VirtualMachineInstance
from operators.wukong.multus import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from operators.wukong.tests.worlds import Scripts, verdict, virtual_world
from operators.wukong.types import CloudInitUser, Network, StartStrategy

from kubewright import ObjectMeta, now
from kubewright.api.core.v1 import PersistentVolumeClaim, Secret
from kubewright.client import MergePatch
from kubewright.client.wait import deleted
from kubewright.manager.roles import declared_permissions, rules_of
from kubewright.patterns import get_condition
from kubewright.testing import virtual

LAN = Network(name="lan", type="bridge")
NAD = NetworkAttachmentDefinitionSpec(config="{}")
HALTED = StartStrategy(auto_start=False)


@virtual
async def test_a_machine_without_a_guest_is_stopped_and_not_creating_for_ever() -> None:
    async with virtual_world() as world:
        await world.create(start_strategy=HALTED)
        stopped = await world.reaches("Stopped", timeout=9)
        assert verdict(stopped, "Ready") == ("False", "VMNotReady", "the machine is stopped")


@virtual
async def test_what_is_known_while_the_machine_is_creating_is_stored() -> None:
    scripts = Scripts()
    scripts.kubevirt.step = 100
    async with virtual_world(scripts=scripts) as world:
        await world.create(networks=[LAN])
        await world.settled()
        creating = await world.get()
        assert (creating.status.phase, creating.status.vm_name) == ("Creating", "web-vm")
        assert [each.nad_name for each in creating.status.networks] == [None, "web-lan-nad"]
        assert [each.bound for each in creating.status.volumes] == [True]
        assert verdict(creating, "Ready") == ("False", "VMCreating", "the machine is Pending")


@virtual
async def test_an_error_is_retried_with_back_off_and_a_failure_after_its_delay_never_both() -> None:
    """A delay that is returned with an error is ignored."""
    async with virtual_world() as world:
        results = world.manager.controllers[0].statistics.results
        world.faults.fail(lambda target: target.verb == "create" and target.resource == "virtualmachines", times=3)
        await world.running()
        errors = sum(count for result, count in results.items() if "error" in str(result))
        assert errors == 3
        await world.client.create(NetworkAttachmentDefinition(metadata=ObjectMeta(name="other-lan-nad"), spec=NAD))
        await world.create("other", networks=[LAN])
        await world.reaches("Error", "other")
        await asyncio.sleep(90)
        assert sum(count for result, count in results.items() if "error" in str(result)) == errors


@virtual
async def test_a_running_machine_does_not_reconcile_itself_over_and_over() -> None:
    async with virtual_world() as world:
        before = await world.running(networks=[LAN])
        results = world.manager.controllers[0].statistics.results
        count = sum(results.values())
        await asyncio.sleep(600)
        assert sum(results.values()) == count
        await world.change({"cpu": 2})
        await world.settled()
        after = await world.get()
        for condition in before.status.conditions:
            found = get_condition(after, condition.type)
            assert found is not None
            assert found.last_transition_time == condition.last_transition_time
            assert now() - found.last_transition_time > timedelta(seconds=600)


@virtual
async def test_changes_of_the_machine_its_guest_and_its_claims_reach_the_wukong_at_once() -> None:
    async with virtual_world() as world:
        await world.running(disks=[world.disk("root", image="ubuntu:24.04"), world.disk("data")])
        await world.client.status.patch(
            VirtualMachineInstance, "web-vm", MergePatch({"status": {"nodeName": "node-9"}})
        )
        await world.becomes(lambda wukong: wukong.status.node_name == "node-9", timeout=1)
        for name in ("web-root", "web-data"):
            capacity = MergePatch({"status": {"capacity": {"storage": "7Gi"}}})
            await world.client.status.patch(PersistentVolumeClaim, name, capacity)
        await world.becomes(lambda wukong: [each.size for each in wukong.status.volumes] == ["7Gi", "7Gi"], timeout=1)
        await world.client.delete(await world.machine())
        await world.reaches("Creating", timeout=5)
        await world.reaches("Running")


@virtual
async def test_a_status_that_could_not_be_written_is_written_later() -> None:
    async with virtual_world() as world:
        await world.running()
        world.faults.fail(
            lambda target: target.resource == "wukongs" and target.subresource == "status", code=500, times=3
        )
        await world.change({"startStrategy": {"autoStart": False}})
        await world.reaches("Stopped", timeout=9)


@virtual
async def test_a_machine_without_networks_has_its_networks_configured() -> None:
    async with virtual_world() as world:
        created = await world.running()
        assert verdict(created, "NetworksConfigured") == ("True", "NetworksReady", "0 networks configured")


@virtual
async def test_a_secret_that_cannot_be_read_is_an_error_and_no_machine_without_keys() -> None:
    async with virtual_world() as world:
        await world.client.create(
            Secret(metadata=ObjectMeta(name="keys"), data={"publickey": "c3NoLWVkMjU1MTkgQUFBQUMzTnogbWU="})
        )
        world.faults.fail(
            lambda target: target.verb == "get" and target.resource == "secrets" and target.name == "keys",
            code=403,
            times=3,
        )
        await world.create(ssh_key_secret="keys")
        failed = await world.reaches("Error")
        found = verdict(failed, "Ready")
        assert found is not None
        assert found[1] == "Forbidden"
        assert await world.names(VirtualMachine) == set()
        await world.reaches("Running")


@virtual
async def test_a_disk_that_grows_is_compared_with_its_claim_and_not_with_the_status() -> None:
    async with virtual_world() as world:
        await world.running()
        await world.change_disks(world.disk("root", size="2Gi"))
        await world.becomes(lambda wukong: wukong.status.volumes[0].size == "2Gi", timeout=9)


@virtual
async def test_a_deletion_ends_when_volumes_are_gone_already() -> None:
    async with virtual_world() as world:
        created = await world.running(disks=[world.disk("root", image="ubuntu:24.04")], networks=[LAN])
        await world.client.patch(DataVolume, "web-root", MergePatch({"metadata": {"finalizers": None}}))
        await world.client.delete(created)
        await world.client.delete(DataVolume, "web-root", missing_ok=True)
        await world.client.wait_for(created, deleted, timeout=60)
        for kind in (VirtualMachine, DataVolume, NetworkAttachmentDefinition):
            assert await world.names(kind) == set()


@virtual
async def test_a_wukong_that_never_ran_leaves_nothing_behind() -> None:
    """What is to be deleted is not known by the status alone."""
    async with virtual_world() as world:
        created = await world.create(disks=[world.disk("a", "manual"), world.disk("b", "late")], networks=[LAN])
        await world.client.wait_for(NetworkAttachmentDefinition, "web-lan-nad", lambda found: True)
        await world.client.wait_for(PersistentVolumeClaim, "web-b", lambda found: True)
        await world.client.delete(created)
        await world.client.wait_for(created, deleted)
        assert await world.names(PersistentVolumeClaim) == set()
        assert await world.names(NetworkAttachmentDefinition) == set()


@virtual
async def test_every_child_has_its_owner_and_goes_without_the_finalizer_too() -> None:
    async with virtual_world() as world:
        disks = [world.disk("root", image="ubuntu:24.04"), world.disk("data")]
        created = await world.running(disks=disks, networks=[LAN], cloud_init_user=CloudInitUser(name="me"))
        kinds = (VirtualMachine, DataVolume, NetworkAttachmentDefinition, Secret)
        for kind in kinds:
            for child in await world.client.list(kind):
                assert [owner.uid for owner in child.metadata.owner_references] == [created.metadata.uid]
        await world.client.patch(Wukong, "web", MergePatch({"metadata": {"finalizers": None}}))
        async with asyncio.timeout(300):
            await world.client.delete(created)
            for kind in kinds:
                while await world.names(kind):
                    await asyncio.sleep(1)


@virtual
async def test_a_network_is_attached_once() -> None:
    """Not by an annotation of Multus and by a network of KubeVirt."""
    async with virtual_world() as world:
        await world.running(networks=[LAN])
        machine = await world.machine()
        for annotations in (machine.metadata.annotations, machine.spec.template.metadata.annotations):
            assert not [name for name in annotations if "cni.cncf.io" in name]


async def test_the_role_names_the_real_plural_and_the_least_verbs() -> None:
    merged = rules_of(await declared_permissions(setup))[""]
    rules = {resource: rule for rule in merged for resource in rule.resources}
    assert "networkattachmentdefinitions" not in rules
    attachments = rules["network-attachment-definitions"]
    assert attachments.api_groups == ["k8s.cni.cncf.io"]
    assert sorted(attachments.verbs) == ["create", "delete", "get", "list", "patch", "watch"]
    verbs = {name: set(rule.verbs) - {"get", "list", "watch"} for name, rule in rules.items()}
    assert verbs["wukongs"] == {"patch"}
    assert verbs["wukongs/status"] == {"patch"}
    assert verbs["virtualmachineinstances"] == set()
    assert verbs["storageclasses"] == set()
    assert verbs["secrets"] == {"create", "patch"}
    assert not [name for name in rules if "nmstate" in rules[name].api_groups[0]]
    assert all("*" not in rule.verbs and "update" not in rule.verbs for name, rule in rules.items() if "/" not in name)
