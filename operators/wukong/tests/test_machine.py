"""The VirtualMachine of a Wukong: what is in it, what is put back, and what is left to others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from operators.wukong.kubevirt import VirtualMachine, VirtualMachineInstance, VirtualMachineSpec
from operators.wukong.machine import APPLIED, run_strategy
from operators.wukong.simulators import start, stop
from operators.wukong.tests.worlds import ALL, definition, verdict, virtual_world
from operators.wukong.types import (
    GPU,
    CloudInitUser,
    HighAvailability,
    Network,
    RestartPolicy,
    StartStrategy,
    Wukong,
    WukongSpec,
)

from kubewright import Dynamic, Field, ObjectMeta
from kubewright.api.codec import to_json
from kubewright.api.core.v1 import PersistentVolumeClaim, Toleration
from kubewright.api.markers import JSONValue
from kubewright.client import MergePatch
from kubewright.client.wait import deleted
from kubewright.controlplane.definitions import load_definitions
from kubewright.testing import count_requests, virtual

FULL = yaml.safe_load((Path(__file__).parent / "full_machine.yaml").read_text())
Stored = Dynamic.of("kubevirt.io/v1", "VirtualMachine")


@pytest.mark.parametrize(
    ("start_strategy", "policy", "expected"),
    [
        (None, None, "Always"),
        (StartStrategy(), None, "Always"),
        (StartStrategy(auto_start=True), None, "Always"),
        (StartStrategy(auto_start=False), None, "Halted"),
        (StartStrategy(run_strategy="RerunOnFailure"), None, "RerunOnFailure"),
        (StartStrategy(run_strategy="RerunOnFailure", auto_start=False), None, "Halted"),
        (StartStrategy(run_strategy="Manual"), None, "Manual"),
        (StartStrategy(run_strategy="Manual", auto_start=False), None, "Manual"),
        (None, "Always", "Always"),
        (None, "OnFailure", "RerunOnFailure"),
        (None, "Never", "Once"),
        (StartStrategy(run_strategy="Always"), "Never", "Always"),
        (StartStrategy(auto_start=False), "OnFailure", "Halted"),
    ],
)
def test_when_a_machine_runs(start_strategy: StartStrategy | None, policy: RestartPolicy | None, expected: str) -> None:
    availability = HighAvailability(restart_policy=policy)
    spec = WukongSpec(cpu=1, disks=[], start_strategy=start_strategy, high_availability=availability)
    assert run_strategy(Wukong(metadata=ObjectMeta(name="web"), spec=spec)) == expected


@virtual
async def test_everything_of_the_spec_is_in_the_machine() -> None:
    async with virtual_world() as world:
        toleration = Toleration(key="gpu", operator="Exists", effect="NoExecute", toleration_seconds=300)
        availability = HighAvailability(anti_affinity=True, node_selector={"zone": "a"}, tolerations=[toleration])
        created = await world.running(
            cpu=4,
            memory="8192Mi",
            disks=[world.disk("data"), world.disk("root", boot=True)],
            high_availability=availability,
            gpus=[GPU(name="gpu0", device_name="nvidia.com/A100")],
        )
        machine = await world.machine()
        spec = machine.spec.template.spec
        assert (spec.domain.cpu.cores, spec.domain.memory.guest) == (4, "8Gi"), "as KubeVirt writes it"
        disks = [(each.name, each.boot_order, each.disk and each.disk.bus) for each in spec.domain.devices.disks]
        assert disks == [("data", None, "virtio"), ("root", 1, "virtio")]
        assert [(gpu.name, gpu.device_name) for gpu in spec.domain.devices.gpus] == [("gpu0", "nvidia.com/A100")]
        assert spec.node_selector == {"zone": "a"}
        assert [each.toleration_seconds for each in spec.tolerations] == [300]
        assert spec.affinity is not None
        assert spec.affinity.pod_anti_affinity is not None
        (term,) = spec.affinity.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution
        selector = term.pod_affinity_term.label_selector
        assert selector is not None
        assert selector.match_labels.items() <= machine.spec.template.metadata.labels.items()
        assert term.pod_affinity_term.topology_key == "kubernetes.io/hostname"
        (owner,) = machine.metadata.owner_references
        assert (owner.kind, owner.uid, owner.controller) == ("Wukong", created.metadata.uid, True)


def without(value: JSONValue, known: JSONValue) -> list[str]:
    """The paths of what is in `known` and differs in `value`."""
    if isinstance(known, dict) and isinstance(value, dict):
        return [f".{name}{path}" for name in known for path in without(value.get(name), known[name])]
    if isinstance(known, list) and isinstance(value, list) and (items := by_name(known)):
        there = by_name(value)
        return [f"[{name}]{path}" for name in items for path in without(there.get(name), items[name])]
    return [] if value == known else [f": {known!r} became {value!r}"]


@virtual
async def test_nothing_that_the_types_do_not_know_is_lost() -> None:
    """On a machine with much of what KubeVirt knows, in structures and in lists, also where we write next to it."""
    async with virtual_world() as world:
        await world.running(networks=[Network(name="lan", type="bridge")])
        live = to_json(await world.client.get(Stored, "web-vm"))
        put_on(live, FULL)
        assert isinstance(live, dict)
        theirs = {"metadata": {"annotations": {"theirs": "kept"}}, "spec": live["spec"]}
        await world.client.patch(Stored, "web-vm", MergePatch(theirs))
        await world.settled()
        networks = [{"name": name, "type": "bridge"} for name in ("lan", "wan")]
        await world.change({"cpu": 6, "networks": networks})
        await world.settled()
        stored = to_json(await world.client.get(Stored, "web-vm"))
        assert without(stored, FULL) == []
        machine = await world.machine()
        assert machine.metadata.annotations["theirs"] == "kept"
        spec = machine.spec.template.spec
        assert spec.domain.cpu.cores == 6
        assert [each.name for each in spec.domain.devices.interfaces] == ["default", "lan", "late", "wan"]
        assert {each.name: each.disk.bus for each in spec.domain.devices.disks if each.disk}["root"] == "virtio"


def by_name(items: list[JSONValue]) -> dict[str, JSONValue]:
    return {str(item["name"]): item for item in items if isinstance(item, dict) and "name" in item}


def put_on(live: JSONValue, more: JSONValue) -> None:
    """Add to an object, items of lists by their names."""
    assert isinstance(live, dict)
    assert isinstance(more, dict)
    for name, value in more.items():
        there = live.get(name)
        if isinstance(value, dict) and isinstance(there, dict):
            put_on(there, value)
        elif isinstance(value, list) and isinstance(there, list):
            named = by_name(there)
            for item_name, item in by_name(value).items():
                if item_name in named:
                    put_on(named[item_name], item)
                else:
                    there.append(item)
        else:
            live[name] = value


@virtual
async def test_what_somebody_changes_in_the_machine_is_put_back() -> None:
    async with virtual_world() as world:
        await world.running(cpu=2)
        patch = {"spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"cpu": {"cores": 16}}}}}}
        await world.client.patch(VirtualMachine, "web-vm", MergePatch(patch))
        await world.settled()
        machine = await world.machine()
        assert (machine.spec.template.spec.domain.cpu.cores, machine.spec.run_strategy) == (2, "Always")


@virtual
async def test_a_binding_that_somebody_has_changed_is_replaced() -> None:
    """KubeVirt refuses interfaces with two bindings, and likewise disks, networks and volumes with two of a kind."""
    async with virtual_world() as world:
        await world.running(networks=[Network(name="lan", type="bridge")], cloud_init_user=CloudInitUser(name="me"))
        before = to_json((await world.machine()).spec.template.spec)
        live = to_json(await world.client.get(Stored, "web-vm"))
        assert isinstance(live, dict)
        spec = json.loads(json.dumps(live["spec"]))
        guest = spec["template"]["spec"]
        root, lan = guest["domain"]["devices"]["disks"][0], guest["domain"]["devices"]["interfaces"][1]
        del root["disk"], lan["bridge"], guest["networks"][1]["multus"]
        root["cdrom"], lan["slirp"], guest["networks"][1]["pod"] = {"bus": "sata", "readonly": True}, {}, {}
        (volume,) = [each for each in guest["volumes"] if each["name"] == "cloudinitdisk"]
        volume["cloudInitConfigDrive"] = volume.pop("cloudInitNoCloud")
        await world.client.patch(Stored, "web-vm", MergePatch({"spec": spec}))
        await world.settled()
        assert to_json((await world.machine()).spec.template.spec) == before
        stored = json.dumps(to_json(await world.client.get(Stored, "web-vm")))
        assert not [name for name in ("cdrom", "slirp", "cloudInitConfigDrive") if f'"{name}":' in stored]


@virtual
async def test_what_the_spec_no_longer_says_leaves_the_machine() -> None:
    async with virtual_world() as world:
        tolerations = [Toleration(key="x", operator="Exists")]
        availability = HighAvailability(anti_affinity=True, node_selector={"zone": "a"}, tolerations=tolerations)
        await world.running(high_availability=availability, gpus=[GPU(name="gpu0", device_name="a/b")])
        theirs = {"spec": {"template": {"spec": {"nodeSelector": {"theirs": "kept"}}}}}
        await world.client.patch(VirtualMachine, "web-vm", MergePatch(theirs))
        await world.change({"highAvailability": None, "gpus": []})
        await world.settled()
        spec = (await world.machine()).spec.template.spec
        assert (spec.node_selector, spec.tolerations, spec.affinity) == ({"theirs": "kept"}, [], None)
        assert spec.domain.devices.gpus == []


@virtual
async def test_a_manual_machine_is_started_and_stopped_by_users() -> None:
    async with virtual_world() as world:
        manual = StartStrategy(run_strategy="Manual")
        await world.create(start_strategy=manual)
        await world.reaches("Stopped")
        await start(world.client, "web-vm")
        await world.reaches("Running")
        await world.client.patch(VirtualMachine, "web-vm", MergePatch({"spec": {"runStrategy": "Always"}}))
        await world.settled()
        assert (await world.machine()).spec.run_strategy == "Always", "what a user has changed is not reset"
        await world.change({"startStrategy": {"runStrategy": None, "autoStart": False}})
        await world.reaches("Stopped")
        assert (await world.machine()).spec.run_strategy == "Halted"


@virtual
async def test_a_machine_that_is_stopped_from_outside_runs_again() -> None:
    async with virtual_world() as world:
        await world.running()
        first = await world.instance()
        await stop(world.client, "web-vm")
        another = Field("metadata.uid").satisfies(lambda uid: uid not in (None, first.metadata.uid), "is another")
        await world.client.wait_for(VirtualMachineInstance, "web-vm", another)
        await world.reaches("Running")
        assert (await world.machine()).spec.run_strategy == "Always"


@virtual
async def test_a_machine_of_somebody_else_is_left_alone() -> None:
    async with virtual_world() as world:
        theirs = VirtualMachine(metadata=ObjectMeta(name="web-vm"), spec=VirtualMachineSpec(run_strategy="Halted"))
        await world.client.create(theirs)
        await world.create()
        await world.settled()
        refused = await world.get()
        assert refused.status.phase == "Error"
        found = verdict(refused, "Ready")
        assert found is not None
        assert found[1] == "NameTaken"
        assert APPLIED not in (await world.machine()).spec.template.metadata.annotations
        await asyncio.sleep(90)
        assert await world.warnings("NameTaken") == [found[2]], "once, though it is not of a step"


@virtual
async def test_a_damaged_annotation_does_no_harm() -> None:
    async with virtual_world() as world:
        await world.running(cpu=2)
        for damaged in ("not json", "[1]"):
            patch = {"spec": {"template": {"metadata": {"annotations": {APPLIED: damaged}}}}}
            await world.client.patch(VirtualMachine, "web-vm", MergePatch(patch))
            await world.settled()
            template = (await world.machine()).spec.template
            assert template.metadata.annotations[APPLIED].startswith('{"runStrategy"')


@virtual
async def test_without_kubevirt_a_condition_says_so_and_its_installation_is_noticed() -> None:
    async with virtual_world(kinds=["multus"]) as world:
        await world.create(disks=[world.disk("root")])
        await world.settled()
        found = await world.get()
        assert verdict(found, "Ready") == ("False", "KubeVirtMissing", "KubeVirt is not installed")
        assert verdict(found, "VolumesBound") == ("True", "VolumesReady", "1 volumes are ready")
        assert found.status.phase == "Creating"
        await world.install("kubevirt")
        await world.client.wait_for(VirtualMachine, "web-vm", lambda machine: True, timeout=15)  # the requeue is later


@virtual
async def test_when_kubevirt_is_removed_the_volumes_stay_and_nothing_keeps_a_deletion_back() -> None:
    async with virtual_world(kinds=["kubevirt"]) as world:
        created = await world.running()
        before = await world.client.get(PersistentVolumeClaim, "web-root")
        for loaded in load_definitions([definition("kubevirt")]):
            await world.client.delete(loaded.value)
        missing = ("False", "KubeVirtMissing", "KubeVirt is not installed")
        found = await world.becomes(lambda wukong: verdict(wukong, "Ready") == missing)
        assert (found.status.phase, found.status.vm_name, found.status.node_name) == ("Creating", None, None)
        assert (await world.client.get(before)).metadata.uid == before.metadata.uid
        await world.client.delete(created)
        await world.client.wait_for(created, deleted)
        assert await world.names(PersistentVolumeClaim) == set()


@virtual
async def test_a_machine_that_is_as_it_should_be_costs_nothing() -> None:
    async with virtual_world(kinds=ALL) as world:
        await world.running(networks=[Network(name="lan", type="bridge")])
        with count_requests(world.own) as requests:
            await world.client.patch(Wukong, "web", MergePatch({"metadata": {"labels": {"x": "y"}}}))
            await world.settled()
        assert requests.attempts == []
