"""Bridges on nodes: made when the first Wukong needs them, removed with the last one."""

from __future__ import annotations

import asyncio
import json

import pytest
from operators.wukong.bridges import Bridge, users_of
from operators.wukong.multus import NetworkAttachmentDefinition
from operators.wukong.nmstate import NodeNetworkConfigurationPolicy
from operators.wukong.tests.worlds import Scripts, World, definition, verdict, virtual_world
from operators.wukong.types import Network

from kubewright import Client
from kubewright.client.wait import deleted
from kubewright.controlplane.definitions import load_definitions
from kubewright.testing import virtual

LAN = Network(name="lan", type="bridge", physical_interface="eth1")
TAGGED = Network(name="lan", type="bridge", physical_interface="eth1", vlan_id=7)


async def policies(world: World) -> list[NodeNetworkConfigurationPolicy]:
    return list(await world.client.list(NodeNetworkConfigurationPolicy))


def test_the_state_of_a_plain_bridge() -> None:
    bridge = Bridge.of(LAN)
    assert bridge.desired_state() == {
        "interfaces": [
            {
                "name": "br-lan",
                "type": "linux-bridge",
                "state": "up",
                "bridge": {"options": {"stp": {"enabled": False}}, "port": [{"name": "eth1"}]},
                "ipv4": {"enabled": False},
                "ipv6": {"enabled": False},
            }
        ]
    }
    assert bridge.absent_state() == {"interfaces": [{"name": "br-lan", "type": "linux-bridge", "state": "absent"}]}


def test_a_vlan_is_below_its_bridge_and_goes_with_it() -> None:
    up, absent = Bridge.of(TAGGED).desired_state(), Bridge.of(TAGGED).absent_state()
    vlan, bridge = json.loads(json.dumps(up))["interfaces"]
    assert vlan == {"name": "eth1.7", "type": "vlan", "state": "up", "vlan": {"base-iface": "eth1", "id": 7}}
    assert bridge["bridge"]["port"] == [{"name": "eth1.7"}]
    names = [each["name"] for each in json.loads(json.dumps(absent))["interfaces"]]
    assert names == ["br-lan", "eth1.7"]


@pytest.mark.parametrize(
    ("other", "conflicts"),
    [
        (LAN, False),
        (TAGGED, True),
        (Network(name="lan", type="bridge", physical_interface="eth2"), True),
        (Network(name="lan", type="bridge", physical_interface="eth2", node_selector={"rack": "b"}), True),
        (Network(name="other", type="bridge", physical_interface="eth2"), False),
        (Network(name="other", type="bridge", physical_interface="eth1"), True),
        (Network(name="other", type="bridge", physical_interface="eth1", vlan_id=7), False),
    ],
)
def test_one_bridge_is_on_one_interface(other: Network, conflicts: bool) -> None:
    assert Bridge.of(LAN).conflicts(Bridge.of(other)) == conflicts


def test_nodes_that_differ_may_have_different_bridges_of_one_name() -> None:
    first, second = (
        Network(name="lan", type="bridge", physical_interface=interface, node_selector={"rack": rack})
        for interface, rack in (("eth1", "a"), ("eth2", "b"))
    )
    assert not Bridge.of(first).conflicts(Bridge.of(second))
    assert Bridge.of(first).policy_name != Bridge.of(second).policy_name


@virtual
async def test_by_default_nodes_are_left_alone() -> None:
    async with virtual_world() as world:
        await world.running(networks=[TAGGED])
        assert await policies(world) == []
        found = await world.client.get(NetworkAttachmentDefinition, "web-lan-nad")
        assert json.loads(found.spec.config)["vlan"] == 7


@virtual
async def test_a_bridge_is_shared_and_removed_from_the_nodes_with_its_last_user() -> None:
    async with virtual_world(nmstate="before") as world:
        first = await world.running("a", networks=[TAGGED])
        second = await world.running("b", networks=[TAGGED])
        (policy,) = await policies(world)
        assert sorted(map(str, users_of(policy))) == ["default/a", "default/b"]
        assert world.scripts.nmstate.interfaces["node-1"] == {"br-lan", "eth1.7"}
        nad = await world.client.get(NetworkAttachmentDefinition, "a-lan-nad")
        assert "vlan" not in json.loads(nad.spec.config), "it is tagged below the bridge"

        await world.client.delete(first)
        await world.client.wait_for(first, deleted)
        (policy,) = await policies(world)
        assert list(map(str, users_of(policy))) == ["default/b"]
        assert world.scripts.nmstate.interfaces["node-1"] == {"br-lan", "eth1.7"}

        await world.client.delete(second)
        await world.client.wait_for(second, deleted)
        assert await policies(world) == []
        assert world.scripts.nmstate.interfaces == {"node-1": set(), "node-2": set()}


@virtual
async def test_two_users_that_leave_at_once_remove_the_bridge() -> None:
    async with virtual_world(nmstate="before") as world:
        both = [await world.running(name, networks=[LAN]) for name in ("a", "b")]
        await asyncio.gather(*(world.client.delete(each) for each in both))
        for each in both:
            await world.client.wait_for(each, deleted)
        assert await policies(world) == []
        assert world.scripts.nmstate.interfaces["node-1"] == set()


@virtual
async def test_a_bridge_that_is_being_removed_is_made_again_for_a_new_user() -> None:
    scripts = Scripts()
    scripts.nmstate.step = 30
    async with virtual_world(nmstate="before", scripts=scripts) as world:
        first = await world.client.create(world.wukong("a", networks=[LAN]))
        await world.reaches("Running", "a")
        await world.client.delete(first)
        await world.client.wait_for(
            NodeNetworkConfigurationPolicy,
            Bridge.of(LAN).policy_name,
            lambda policy: policy.spec.desired_state == Bridge.of(LAN).absent_state(),
        )
        await world.create("b", networks=[LAN])
        await world.client.wait_for(first, deleted, timeout=300)
        await world.reaches("Running", "b", timeout=300)
        (policy,) = await policies(world)
        assert list(map(str, users_of(policy))) == ["default/b"]
        assert world.scripts.nmstate.interfaces["node-1"] == {"br-lan"}


@virtual
async def test_a_network_that_is_removed_leaves_its_bridge() -> None:
    async with virtual_world(nmstate="before") as world:
        await world.running(networks=[LAN])
        await world.change({"networks": []})
        await world.client.wait_for(NodeNetworkConfigurationPolicy, Bridge.of(LAN).policy_name, deleted)
        await world.settled()
        assert (await world.get()).status.phase == "Running"


@virtual
async def test_a_bridge_that_cannot_be_made_is_an_error_that_names_the_reason() -> None:
    scripts = Scripts()
    scripts.nmstate.failing = {"br-lan"}
    async with virtual_world(nmstate="before", scripts=scripts) as world:
        await world.create(networks=[LAN])
        await world.settled()
        failed = await world.get()
        assert failed.status.phase == "Error"
        found = verdict(failed, "NetworksConfigured")
        assert found is not None
        assert found[1] == "BridgeFailed"
        assert found[2].endswith("failed: interface br-lan not found")
        assert await world.names(NetworkAttachmentDefinition) == set()


@virtual
async def test_a_bridge_that_is_wanted_on_another_interface_is_refused() -> None:
    async with virtual_world(nmstate="before") as world:
        await world.running("a", networks=[LAN])
        await world.create("b", networks=[TAGGED])
        await world.settled()
        found = verdict(await world.get("b"), "NetworksConfigured")
        assert found is not None
        assert found[1] == "BridgeConflict"
        assert "the bridge br-lan on eth1.7 is wanted, and default/a has br-lan on eth1" in found[2]


@virtual
async def test_without_nmstate_a_condition_says_so_and_its_installation_is_noticed() -> None:
    async with virtual_world(nmstate="before", kinds=["kubevirt", "cdi", "multus"]) as world:
        created = await world.create(networks=[LAN])
        await world.settled()
        found = verdict(await world.get(), "NetworksConfigured")
        assert found is not None
        assert found[:2] == ("False", "NMStateMissing")
        await install_nmstate(world.client)
        await world.becomes(lambda wukong: verdict(wukong, "NetworksConfigured") != found, timeout=9)
        await world.client.delete(created)


async def install_nmstate(client: Client) -> None:
    for loaded in load_definitions([definition("nmstate")]):
        await client.create(loaded.value)


def test_nodes_that_are_selected_by_different_labels_may_be_the_same() -> None:
    first, second = (
        Network(name="lan", type="bridge", physical_interface=interface, node_selector={label: "a"})
        for interface, label in (("eth1", "rack"), ("eth2", "zone"))
    )
    assert Bridge.of(first).conflicts(Bridge.of(second))


@virtual
async def test_of_two_that_want_one_bridge_differently_at_once_one_is_refused() -> None:
    async with virtual_world(nmstate="before") as world:
        await world.create("a", networks=[LAN])
        await world.create("b", networks=[Network(name="lan", type="bridge", physical_interface="eth2")])
        await world.settled()
        assert len(await world.names(NodeNetworkConfigurationPolicy)) == 1
        assert sorted([(await world.get(name)).status.phase for name in ("a", "b")]) == ["Error", "Running"]
