"""Bridges on nodes: made when the first Wukong needs them, removed with the last one."""

from __future__ import annotations

import asyncio
import json

import pytest
from operators.wukong import Wukong
from operators.wukong.bridges import USER_PREFIX, Bridge, Bridges, users_of
from operators.wukong.multus import NetworkAttachmentDefinition
from operators.wukong.nmstate import NodeNetworkConfigurationPolicy, PolicySpec
from operators.wukong.tests.worlds import Kinds, Scripts, World, verdict, virtual_world
from operators.wukong.types import Network

from kubewright import ObjectMeta, Request
from kubewright.api.codec import to_json
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import MergePatch
from kubewright.client.wait import deleted
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.testing import virtual

LAN = Network(name="lan", type="bridge", physical_interface="eth1")
TAGGED = Network(name="lan", type="bridge", physical_interface="eth1", vlan_id=7)

KINDS: tuple[Kinds, ...] = ("kubevirt", "multus", "nmstate")


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
    async with virtual_world(kinds=KINDS) as world:
        await world.running(networks=[TAGGED])
        assert await policies(world) == []
        found = await world.client.get(NetworkAttachmentDefinition, "web-lan-nad")
        assert json.loads(found.spec.config)["vlan"] == 7


@virtual
async def test_a_bridge_is_shared_and_removed_from_the_nodes_with_its_last_user() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
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
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
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
    async with virtual_world(nmstate="before", kinds=KINDS, scripts=scripts) as world:
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
async def test_a_network_that_is_removed_leaves_its_bridge_when_the_guest_no_longer_uses_it() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        await world.running(networks=[LAN])
        await world.change({"networks": []})
        await world.settled()
        assert world.scripts.nmstate.interfaces["node-1"] == {"br-lan"}, "the guest runs with it"
        await world.client.delete(await world.instance())
        await world.client.wait_for(NodeNetworkConfigurationPolicy, Bridge.of(LAN).policy_name, deleted)
        await world.settled()
        assert (await world.get()).status.phase == "Running"


@virtual
async def test_a_bridge_that_cannot_be_made_is_an_error_that_names_the_reason() -> None:
    scripts = Scripts()
    scripts.nmstate.failing = {"br-lan"}
    async with virtual_world(nmstate="before", kinds=KINDS, scripts=scripts) as world:
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
async def test_a_bridge_that_cannot_be_removed_keeps_its_wukong_and_says_why() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        created = await world.running(networks=[LAN])
        world.scripts.nmstate.failing = {"br-lan"}
        await world.client.delete(created)
        failed = await world.reaches("Error")
        found = verdict(failed, "Ready")
        assert found is not None
        assert found[1] == "BridgeFailed"
        results = world.manager.controllers[0].statistics.results
        errors = sum(count for result, count in results.items() if "error" in str(result))
        await asyncio.sleep(90)
        assert sum(count for result, count in results.items() if "error" in str(result)) == errors == 0
        await world.client.delete(NodeNetworkConfigurationPolicy, Bridge.of(LAN).policy_name)
        await world.client.wait_for(created, deleted, timeout=9)


@virtual
async def test_a_bridge_that_is_wanted_on_another_interface_is_refused() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        await world.running("a", networks=[LAN])
        await world.create("b", networks=[TAGGED])
        await world.settled()
        found = verdict(await world.get("b"), "NetworksConfigured")
        assert found is not None
        assert found[1] == "BridgeConflict"
        assert "the bridge br-lan on eth1.7 is wanted, and default/a has br-lan on eth1" in found[2]


@virtual
async def test_a_bridge_of_others_is_neither_changed_nor_removed() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        bond: JSONObject = {"link-aggregation": {"port": ["eth1", "eth2"]}}
        port: JSONObject = {"bridge": {"port": [{"name": "eth1"}]}}
        theirs: list[JSONValue] = [{"name": "br-lan"}, {"name": "bond0", **bond}, {"name": "br-ex", **port}]
        theirs.append({"name": "eth1"})
        for number, interface in enumerate(theirs):
            policy = NodeNetworkConfigurationPolicy(
                metadata=ObjectMeta(name="theirs"), spec=PolicySpec(desired_state={"interfaces": [interface]})
            )
            created = await world.client.create(policy)
            await world.create(f"web-{number}", networks=[LAN])
            await world.settled()
            found = verdict(await world.get(f"web-{number}"), "NetworksConfigured")
            assert found is not None
            if number < 3:
                assert found[1] == "BridgeConflict"
                assert "and the policy theirs, which no Wukong has made, has one of them" in found[2]
            else:
                assert found[1] == "NetworksReady", "an interface below the bridge may be configured by others"
            await world.client.delete(created)
            await world.client.delete(Wukong, f"web-{number}")
            await world.client.wait_for(Wukong, f"web-{number}", deleted)


@virtual
async def test_a_bridge_that_no_node_has_keeps_no_wukong() -> None:
    """Its nodes were removed, or have other labels now: NMState ignores the policy."""
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        world.scripts.nmstate.nodes = ()
        created = await world.create(networks=[LAN])
        await world.settled()
        waits = "the bridge br-lan is not on all nodes yet: no node matches its nodeSelector"
        assert verdict(await world.get(), "NetworksConfigured") == ("False", "NMStatePending", waits)
        await world.client.delete(created)
        await world.client.wait_for(created, deleted)
        assert await policies(world) == []


@virtual
async def test_without_nmstate_a_condition_says_so_and_its_installation_is_noticed() -> None:
    async with virtual_world(nmstate="before") as world:
        created = await world.create(networks=[LAN])
        await world.settled()
        found = verdict(await world.get(), "NetworksConfigured")
        assert found is not None
        assert found[:2] == ("False", "NMStateMissing")
        await world.install("nmstate")
        await world.becomes(lambda wukong: verdict(wukong, "NetworksConfigured") != found, timeout=9)
        await world.client.delete(created)


def test_nodes_that_are_selected_by_different_labels_may_be_the_same() -> None:
    first, second = (
        Network(name="lan", type="bridge", physical_interface=interface, node_selector={label: "a"})
        for interface, label in (("eth1", "rack"), ("eth2", "zone"))
    )
    assert Bridge.of(first).conflicts(Bridge.of(second))


@virtual
async def test_of_two_that_want_one_bridge_differently_at_once_one_is_refused() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        await world.create("a", networks=[LAN])
        await world.create("b", networks=[Network(name="lan", type="bridge", physical_interface="eth2")])
        await world.settled()
        assert len(await world.names(NodeNetworkConfigurationPolicy)) == 1
        assert sorted([(await world.get(name)).status.phase for name in ("a", "b")]) == ["Error", "Running"]


async def annotate(world: World, annotations: dict[str, str]) -> None:
    patch = MergePatch({"metadata": {"annotations": annotations}})
    await world.client.patch(NodeNetworkConfigurationPolicy, Bridge.of(LAN).policy_name, patch)


@virtual
async def test_users_of_a_bridge_in_namespaces_of_other_operators_are_not_reconciled_and_keep_it() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS, namespaces=["default"]) as world:
        created = await world.running(networks=[LAN])
        await annotate(world, {f"{USER_PREFIX}1": "elsewhere/other"})
        await world.settled()
        assert Request("elsewhere", "other") not in world.manager.controllers[0].recent
        await world.client.delete(created)
        await world.client.wait_for(created, deleted)
        (policy,) = await policies(world)
        assert list(map(str, users_of(policy))) == ["elsewhere/other"]
        assert world.scripts.nmstate.interfaces["node-1"] == {"br-lan"}


async def vanish(world: World, name: str) -> None:
    """Delete a Wukong as when no operator makes bridges: it does not leave its own."""
    wukong = await world.get(name)
    await world.client.patch(Wukong, name, MergePatch({"metadata": {"finalizers": None}}))
    await world.client.delete(wukong)
    await world.client.wait_for(wukong, deleted)


@virtual
async def test_a_user_that_was_deleted_without_leaving_does_not_keep_the_bridge() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        last = await world.running("a", networks=[LAN])
        await world.running("b", networks=[LAN])
        await annotate(world, {f"{USER_PREFIX}1": "damaged"})
        await vanish(world, "b")
        await world.client.delete(last)
        await world.client.wait_for(last, deleted)
        assert await policies(world) == []
        assert world.scripts.nmstate.interfaces["node-1"] == set()


@virtual
async def test_a_bridge_without_users_makes_room_for_another_one() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        await world.running("a", networks=[LAN])
        await vanish(world, "a")
        await world.running("b", networks=[TAGGED])
        (policy,) = await policies(world)
        assert list(map(str, users_of(policy))) == ["default/b"]
        assert world.scripts.nmstate.interfaces["node-1"] == {"br-lan", "eth1.7"}


@virtual
async def test_a_user_that_the_cache_does_not_know_yet_keeps_the_bridge() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        first = await world.running("a", networks=[LAN])
        world.faults.silence_open_watches(lambda target: target.resource == "wukongs")
        second = await world.create("b", networks=[LAN])
        await annotate(world, {USER_PREFIX + second.metadata.uid: "default/b"})
        await world.settled()
        await Bridges(world.manager).release(first, everything=True)
        (policy,) = await policies(world)
        assert list(map(str, users_of(policy))) == ["default/b"]
        assert policy.spec.desired_state == Bridge.of(LAN).desired_state()


@pytest.mark.parametrize("verb", ["patch", "delete"])
@virtual
async def test_a_bridge_that_is_joined_while_its_last_user_leaves_stays(verb: str) -> None:
    """Both requests of the one that leaves are refused when another Wukong was faster."""
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        first = await world.running("a", networks=[LAN])
        (before,) = await policies(world)
        leaving, joined = asyncio.Event(), asyncio.Event()

        def leaves(target: Target) -> bool:
            is_it = (target.verb, target.resource) == (verb, "nodenetworkconfigurationpolicies")
            if is_it:
                leaving.set()
            return is_it

        world.faults.delay(leaves, until=joined)
        await world.client.delete(first)
        await leaving.wait()
        await world.create("b", networks=[LAN])
        await world.client.wait_for(before, lambda policy: len(users_of(policy)) == 2)
        joined.set()
        await world.client.wait_for(first, deleted)
        await world.reaches("Running", "b")
        (after,) = await policies(world)
        assert after.metadata.uid == before.metadata.uid
        assert list(map(str, users_of(after))) == ["default/b"]
        assert world.scripts.nmstate.interfaces["node-1"] == {"br-lan"}
        if verb == "patch":
            assert after.metadata.generation == before.metadata.generation, "it was never to be absent"


@virtual
async def test_a_wukong_may_move_its_bridge_to_another_interface_unless_others_use_it() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        await world.running("a", networks=[LAN])
        await world.change({"networks": [to_json(TAGGED)]}, "a")
        await world.settled()
        (policy,) = await policies(world)
        assert (policy.metadata.name, list(map(str, users_of(policy)))) == (
            Bridge.of(TAGGED).policy_name,
            ["default/a"],
        )
        assert world.scripts.nmstate.interfaces["node-1"] == {"br-lan", "eth1.7"}
        assert verdict(await world.get("a"), "NetworksConfigured") == ("True", "NetworksReady", "1 networks configured")

        await world.running("b", networks=[TAGGED])
        await world.change({"networks": [to_json(LAN)]}, "a")
        await world.settled()
        found = verdict(await world.get("a"), "NetworksConfigured")
        assert found is not None
        assert "the bridge br-lan on eth1 is wanted, and default/b has br-lan on eth1.7" in found[2]
        assert world.scripts.nmstate.interfaces["node-1"] == {"br-lan", "eth1.7"}


@virtual
async def test_two_networks_of_a_wukong_cannot_have_one_bridge_on_two_interfaces() -> None:
    async with virtual_world(nmstate="before", kinds=KINDS) as world:
        other = Network(name="wan", type="bridge", bridge_name="br-lan", physical_interface="eth2")
        await world.create(networks=[LAN, other])
        await world.settled()
        found = verdict(await world.get(), "NetworksConfigured")
        assert found is not None
        assert "the bridge br-lan on eth2 is wanted, and default/web has br-lan on eth1" in found[2]
        assert len(await policies(world)) == 1


@virtual
async def test_with_nmstate_off_the_bridges_that_stay_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with virtual_world() as world:
        created = await world.running(networks=[LAN])
        await world.client.delete(created)
        await world.client.wait_for(created, deleted)
    assert (
        "default/web is deleted with --nmstate off: bridges that were made on nodes for its networks lan stay"
        in caplog.text
    )
