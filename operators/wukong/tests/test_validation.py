"""What a Wukong may say: refused by the API server, by the webhook, and by the reconciler where neither was asked."""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import pytest
from operators.wukong import Wukong, WukongSnapshot
from operators.wukong.validation import check, check_change
from operators.wukong.webhooks import check_wukong, default_wukong

from kubewright import Client, Invalid, Manager, Review, serve_webhooks
from kubewright.api.codec import from_json
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.testing import Install, LocalWebhooks, Running

ROOT: JSONObject = {
    "name": "root",
    "size": "10Gi",
    "storageClassName": "fast",
    "boot": True,
    "image": "ubuntu:24.04",
}
DATA: JSONObject = {"name": "data", "size": "1Gi", "storageClassName": "fast"}
VALID: JSONObject = {
    "cpu": 2,
    "memory": "4Gi",
    "disks": [ROOT, DATA],
    "networks": [
        {"name": "default"},
        {
            "name": "lan",
            "type": "bridge",
            "vlanId": 7,
            "ipConfig": {
                "mode": "static",
                "address": "192.168.1.5/24",
                "gateway": "192.168.1.1",
                "dnsServers": ["1.1.1.1", "fd00::1"],
            },
        },
        {"name": "tap", "type": "macvlan", "nadName": "tap"},
    ],
    "cloudInitUser": {"name": "me"},
    "gpus": [{"name": "gpu0", "deviceName": "nvidia.com/A100"}],
}


class Mistake(NamedTuple):
    """A part of a spec that is wrong, where it is said to be wrong, and what servers say about it."""

    path: str
    value: JSONValue
    field: str
    says: str


LAN, IP = "networks.1", "networks.1.ipConfig"
MISTAKES = {
    "no cpu": Mistake("cpu", 0, "spec.cpu", "greater than or equal to 1"),
    "many cpus": Mistake("cpu", 65, "spec.cpu", "less than or equal to 64"),
    "memory that is no quantity": Mistake("memory", "much", "spec.memory", "should match"),
    "memory with a wrong suffix": Mistake("memory", "4K", "spec.memory", "should match"),
    "no memory": Mistake("memory", "0Gi", "spec.memory", "must be a quantity above 0"),
    "no disk": Mistake("disks", [], "spec.disks", "should have at least 1 items"),
    "a disk without a name": Mistake("disks.0.name", "", "spec.disks[0].name", "should match"),
    "a disk with a bad name": Mistake("disks.0.name", "Root_1", "spec.disks[0].name", "should match"),
    "a disk with the name of another": Mistake("disks.1.name", "root", "spec.disks[1].name", "Duplicate value"),
    "a disk with the name of cloud-init": Mistake(
        "disks.0.name", "cloudinitdisk", "spec.disks[0].name", "is taken by cloud-init"
    ),
    "a disk without a size": Mistake("disks.0.size", "0", "spec.disks[0].size", "must be a quantity above 0"),
    "a size that is no quantity": Mistake("disks.0.size", "10 GB", "spec.disks[0].size", "should match"),
    "a disk without a class": Mistake(
        "disks.0.storageClassName", None, "spec.disks[0].storageClassName", "the storage class is needed"
    ),
    "two boot disks": Mistake("disks.1.boot", True, "spec.disks", "at most one disk can be the boot disk"),
    "a network with a bad name": Mistake(f"{LAN}.name", "LAN", "spec.networks[1].name", "should match"),
    "a network with the name of another": Mistake(f"{LAN}.name", "tap", "spec.networks[2].name", "Duplicate value"),
    "a network without a type": Mistake(f"{LAN}.type", None, "spec.networks[1].type", "the type is needed"),
    "a network of an unknown type": Mistake(f"{LAN}.type", "vxlan", "spec.networks[1].type", "Unsupported value"),
    "a reserved name": Mistake("networks.0.type", "bridge", "spec.networks[0].type", "is the pod's own"),
    "a small vlan": Mistake(f"{LAN}.vlanId", 0, "spec.networks[1].vlanId", "greater than or equal to 1"),
    "a large vlan": Mistake(f"{LAN}.vlanId", 4095, "spec.networks[1].vlanId", "less than or equal to 4094"),
    "an unknown mode": Mistake(f"{IP}.mode", "auto", "spec.networks[1].ipConfig.mode", "Unsupported value"),
    "no static address": Mistake(
        f"{IP}.address", None, "spec.networks[1].ipConfig.address", "a static address is needed"
    ),
    "an address without a prefix": Mistake(
        f"{IP}.address", "192.168.1.5", "spec.networks[1].ipConfig.address", "must be an address with its prefix"
    ),
    "an address that is none": Mistake(
        f"{IP}.address", "192.168.1.500/24", "spec.networks[1].ipConfig.address", "must be an address with its prefix"
    ),
    "an address with a netmask": Mistake(
        f"{IP}.address",
        "192.168.1.5/255.255.255.0",
        "spec.networks[1].ipConfig.address",
        "must be an address with its prefix",
    ),
    "an address with a zone": Mistake(
        f"{IP}.address", "fe80::1%eth0/64", "spec.networks[1].ipConfig.address", "must be an address with its prefix"
    ),
    "an IPv4 address in one of IPv6": Mistake(
        f"{IP}.dnsServers.0", "::ffff:1.1.1.1", "spec.networks[1].ipConfig.dnsServers[0]", "must be an IP address"
    ),
    "a gateway that is no address": Mistake(
        f"{IP}.gateway", "router", "spec.networks[1].ipConfig.gateway", "must be an IP address"
    ),
    "a gateway outside the subnet": Mistake(
        f"{IP}.gateway", "192.168.2.1", "spec.networks[1].ipConfig.gateway", "must be in the subnet of the address"
    ),
    "a server that is no address": Mistake(
        f"{IP}.dnsServers.0", "dns", "spec.networks[1].ipConfig.dnsServers[0]", "must be an IP address"
    ),
    "a macvlan of our own": Mistake(
        "networks.2.nadName", None, "spec.networks[2].nadName", "macvlan does not carry the frames of a guest"
    ),
    "an sriov without its pool": Mistake(
        f"{LAN}.type", "sriov", "spec.networks[1].resourceName", "sriov needs the resourceName"
    ),
    "a bridge with a long name": Mistake(
        f"{LAN}.name", "a-quite-long-name", "spec.networks[1].bridgeName", "give a bridgeName"
    ),
    "a VLAN interface with a long name": Mistake(
        f"{LAN}.physicalInterface",
        "enp129s0f0np10",
        "spec.networks[1].physicalInterface",
        "physicalInterface.vlanId has more than 15 characters",
    ),
    "a bridge on itself": Mistake(
        "networks.1",
        {"name": "lan", "type": "ovs", "bridgeName": "eth1", "physicalInterface": "eth1"},
        "spec.networks[1].bridgeName",
        "a bridge cannot be called as the interface below it",
    ),
    "a bridge on its own VLAN": Mistake(
        "networks.1",
        {"name": "lan", "type": "bridge", "bridgeName": "eth1.7", "physicalInterface": "eth1", "vlanId": 7},
        "spec.networks[1].bridgeName",
        "a bridge cannot be called as the interface below it",
    ),
    "two primary networks": Mistake(
        "networks",
        [{"name": name, "type": "bridge", "primary": True} for name in ("a", "b")],
        "spec.networks",
        "at most one network can be primary",
    ),
    "a primary network beside the pod's own": Mistake(
        f"{LAN}.primary", True, "spec.networks", "a primary network replaces the network default"
    ),
    "a user without a name": Mistake("cloudInitUser.name", "", "spec.cloudInitUser.name", "at least 1 chars"),
    "a gpu without a device": Mistake("gpus.0.deviceName", "", "spec.gpus[0].deviceName", "at least 1 chars"),
    "a secret with a bad name": Mistake("sshKeySecret", "My Keys", "spec.sshKeySecret", "should match"),
    "an unknown run strategy": Mistake(
        "startStrategy", {"runStrategy": "Sometimes"}, "spec.startStrategy.runStrategy", "Unsupported value"
    ),
    "an unknown restart policy": Mistake(
        "highAvailability", {"restartPolicy": "Maybe"}, "spec.highAvailability.restartPolicy", "Unsupported value"
    ),
    "an unknown retention": Mistake("volumeRetention", "Forget", "spec.volumeRetention", "Unsupported value"),
    "a snapshot with a bad name": Mistake("restoreFromSnapshot", "-", "spec.restoreFromSnapshot", "should match"),
}
CHANGES = {
    "fewer cpus": Mistake("cpu", 1, "spec.cpu", "the number of CPUs cannot shrink"),
    "a smaller disk": Mistake("disks.1.size", "900Mi", "spec.disks[1].size", "a disk cannot shrink"),
    "another class": Mistake(
        "disks.1.storageClassName",
        "slow",
        "spec.disks[1].storageClassName",
        "storage class of a disk cannot be changed",
    ),
    "another image": Mistake("disks.0.image", "debian:13", "spec.disks[0].image", "image of a disk cannot be changed"),
    "no image": Mistake("disks.0.image", None, "spec.disks[0].image", "image of a disk cannot be changed"),
    "a disk less": Mistake("disks", [ROOT], "spec.disks", "disks cannot be removed"),
}


def changed(mistake: Mistake) -> JSONObject:
    """The valid spec with one change."""
    spec = put(VALID, mistake.path.split("."), mistake.value)
    assert isinstance(spec, dict)
    return spec


def put(there: JSONValue, path: list[str], value: JSONValue) -> JSONValue:
    """A copy with another value at the path; None removes the field."""
    if not path:
        return value
    first, *rest = path
    if isinstance(there, list):
        return [put(item, rest, value) if str(number) == first else item for number, item in enumerate(there)]
    assert isinstance(there, dict)
    result = {**there, first: put(there.get(first), rest, value)}
    return {name: each for name, each in result.items() if each is not None}


def wukong(spec: JSONObject, name: str = "web") -> Wukong:
    return from_json(Wukong, {"metadata": {"name": name}, "spec": spec})


def test_a_valid_spec_is_valid() -> None:
    assert check(wukong(VALID)) == []
    assert check_change(wukong(VALID), wukong(VALID)) == []


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_found_and_named(mistake: Mistake) -> None:
    found = check(wukong(changed(mistake)))
    assert [cause.path for cause in found] == [mistake.field]


@pytest.mark.parametrize("mistake", CHANGES.values(), ids=CHANGES)
def test_each_change_that_cannot_be_made_is_found_and_named(mistake: Mistake) -> None:
    found = check_change(wukong(VALID), wukong(changed(mistake)))
    assert [cause.path for cause in found] == [mistake.field]


def test_more_of_everything_may_be_had() -> None:
    spec = deepcopy(VALID)
    spec["cpu"] = 4
    more: JSONObject = {"name": "more", "size": "1Gi", "storageClassName": "slow"}
    spec["disks"] = [{**ROOT, "size": "20Gi"}, {**DATA, "size": "1024Mi"}, more]
    assert check_change(wukong(VALID), wukong(spec)) == []


def test_a_name_that_is_too_long_for_its_machine() -> None:
    assert [cause.path for cause in check(wukong(VALID, "n" * 61))] == ["metadata.name"]
    assert check(wukong(VALID, "n" * 60)) == []


async def test_the_rules_of_the_types_refuse_every_mistake(admin: Client, namespace: str, install: Install) -> None:
    """On both servers, without webhooks."""
    await install(Wukong)
    client = admin.in_namespace(namespace)
    await client.create(wukong(VALID), dry_run=True, field_validation="Strict")
    refusals: dict[str, str] = {}
    for name, mistake in MISTAKES.items():
        try:
            await client.create(wukong(changed(mistake)), dry_run=True)
            refusals[name] = "accepted"
        except Invalid as error:
            refusals[name] = str(error)
    assert {name: refusals[name] for name in MISTAKES if MISTAKES[name].says not in refusals[name]} == {}
    with pytest.raises(Invalid, match="the name must have at most 60 characters"):
        await client.create(wukong(VALID, "n" * 61), dry_run=True)

    stored = await client.create(wukong(VALID))
    refusals = {}
    for name, mistake in CHANGES.items():
        new = wukong(changed(mistake))
        new.metadata.resource_version = stored.metadata.resource_version
        try:
            await client.update(new, dry_run=True)
            refusals[name] = "accepted"
        except Invalid as error:
            refusals[name] = str(error)
    assert {name: refusals[name] for name in CHANGES if CHANGES[name].says not in refusals[name]} == {}


def test_the_webhook_fills_in_what_a_schema_cannot() -> None:
    spec = deepcopy(VALID)
    spec["disks"] = [{"name": "root", "size": "1Gi"}]
    spec["networks"] = [{"name": "default"}, {"name": "lan"}]
    given = wukong(spec)
    default_wukong.function(Review(given))
    assert given.spec.disks[0].storage_class_name == "longhorn"
    assert [network.type for network in given.spec.networks] == [None, "bridge"]
    assert given.spec.memory == "4Gi"
    assert check(given) == []


def test_less_memory_is_a_warning() -> None:
    spec = deepcopy(VALID)
    spec["memory"] = "2Gi"
    review = Review(wukong(spec), old=wukong(VALID))
    assert check_wukong.function(review) == []
    assert review.warnings == ["less memory takes effect when the machine is restarted"]


def test_what_is_not_valid_and_stays_as_it_was_is_left_alone() -> None:
    """Or its finalizer could neither go on nor come off."""
    spec = changed(MISTAKES["a disk without a class"])
    old, new = wukong(spec), wukong(spec)
    new.metadata.finalizers.append("wukong.novasphere.dev/finalizer")
    review = Review(new, old=old)
    default_wukong.function(review)
    assert check_wukong.function(review) == []
    assert new.spec == old.spec


async def test_the_webhooks_are_asked_by_both_servers(
    admin: Client, namespace: str, install: Install, running: Running, local_webhooks: LocalWebhooks
) -> None:
    await install(Wukong, WukongSnapshot)
    manager = Manager(admin, **local_webhooks.options)
    serve_webhooks(manager, default_wukong, check_wukong)
    client = admin.in_namespace(namespace)
    spec = deepcopy(VALID)
    spec["disks"] = [{"name": "root", "size": "1Gi"}]
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        created = await client.create(wukong(spec))
        assert created.spec.disks[0].storage_class_name == "longhorn"
        created.spec.cpu = 1
        with pytest.raises(Invalid, match="cannot shrink"):
            await client.update(created)
