"""The networks of a Wukong, and the attachments that are made for them."""

from __future__ import annotations

import json

import pytest
from operators.wukong.multus import RESOURCE_NAME, NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from operators.wukong.networks import cni_config
from operators.wukong.tests.worlds import verdict, virtual_world
from operators.wukong.types import IPConfig, Network

from kubewright import Client, ObjectMeta, condition
from kubewright.client.wait import deleted
from kubewright.testing import virtual

STATIC = IPConfig(mode="static", address="192.168.1.5/24", gateway="192.168.1.1", dns_servers=["192.168.1.2"])
LAN = Network(name="lan", type="bridge")
TAGGED = Network(name="lan", type="bridge", bridge_name="br0", vlan_id=7)
IPAM = {
    "type": "static",
    "addresses": [{"address": "192.168.1.5/24"}],
    "routes": [{"dst": "0.0.0.0/0", "gw": "192.168.1.1"}],
    "dns": {"nameservers": ["192.168.1.2"]},
}


@pytest.mark.parametrize(
    ("network", "config"),
    [
        (LAN, {"type": "bridge", "bridge": "br-lan"}),
        (
            Network(name="lan", type="bridge", bridge_name="br0", vlan_id=7),
            {"type": "bridge", "bridge": "br0", "vlan": 7},
        ),
        (Network(name="lan", type="ovs", vlan_id=7), {"type": "ovs", "bridge": "br-lan", "vlan": 7}),
        (Network(name="lan", type="sriov", vlan_id=7, resource_name="intel.com/vf"), {"type": "sriov", "vlan": 7}),
        (Network(name="lan", type="bridge", ip_config=STATIC), {"type": "bridge", "bridge": "br-lan", "ipam": IPAM}),
        (Network(name="lan", type="bridge", ip_config=IPConfig(mode="dhcp")), {"type": "bridge", "bridge": "br-lan"}),
    ],
)
def test_the_configuration_of_each_type(network: Network, config: dict[str, object]) -> None:
    written = cni_config("web-lan-nad", network, network.vlan_id)
    assert json.loads(written) == {"cniVersion": "0.3.1", "name": "web-lan-nad", **config}


def test_the_default_route_of_an_ipv6_gateway() -> None:
    config = IPConfig(mode="static", address="fd00::5/64", gateway="fd00::1")
    written = json.loads(cni_config("n", Network(name="lan", type="bridge", ip_config=config), None))
    assert written["ipam"]["routes"] == [{"dst": "::/0", "gw": "fd00::1"}]


@virtual
async def test_each_type_is_bound_in_its_way() -> None:
    async with virtual_world() as world:
        await attachment(world.client, "tap")
        networks = [
            Network(name="lan", type="bridge"),
            Network(name="fast", type="sriov", resource_name="intel.com/vf"),
            Network(name="outside", type="macvlan", nad_name="tap"),
        ]
        await world.running(networks=networks)
        spec = (await world.machine()).spec.template.spec
        bindings = {
            each.name: [
                name for name in ("masquerade", "bridge", "sriov", "binding") if getattr(each, name) is not None
            ]
            for each in spec.domain.devices.interfaces
        }
        assert bindings == {"default": ["masquerade"], "lan": ["bridge"], "fast": ["sriov"], "outside": ["binding"]}
        attached = {each.name: each.multus.network_name if each.multus else None for each in spec.networks}
        assert attached == {"default": None, "lan": "web-lan-nad", "fast": "web-fast-nad", "outside": "tap"}
        pool = await world.client.get(NetworkAttachmentDefinition, "web-fast-nad")
        assert pool.metadata.annotations[RESOURCE_NAME] == "intel.com/vf"


@virtual
async def test_a_primary_network_replaces_that_of_the_pod() -> None:
    async with virtual_world() as world:
        created = await world.running(networks=[Network(name="lan", type="bridge", primary=True)])
        spec = (await world.machine()).spec.template.spec
        assert [(each.name, each.pod, each.multus and each.multus.default) for each in spec.networks] == [
            ("lan", None, True)
        ]
        assert [(each.name, each.primary) for each in created.status.networks] == [("lan", True)]


@virtual
async def test_a_changed_network_changes_its_attachment() -> None:
    async with virtual_world() as world:
        await world.running(networks=[LAN])
        await world.change({"networks": [{"name": "lan", "type": "bridge", "vlanId": 9}]})
        await world.settled()
        found = await world.client.get(NetworkAttachmentDefinition, "web-lan-nad")
        assert json.loads(found.spec.config)["vlan"] == 9


@virtual
async def test_the_attachment_of_a_removed_network_goes_when_the_guest_no_longer_uses_it() -> None:
    async with virtual_world() as world:
        await world.running(networks=[LAN])
        await world.change({"networks": []})
        await world.settled()
        assert [each.name for each in (await world.machine()).spec.template.spec.networks] == ["default"]
        assert await world.names(NetworkAttachmentDefinition) == {"web-lan-nad"}, "the guest runs with it"
        restart = verdict(await world.get(), "RestartRequired")
        assert restart is not None
        await world.client.delete(await world.instance())
        await world.client.wait_for(NetworkAttachmentDefinition, "web-lan-nad", deleted)
        await world.reaches("Running")
        await world.settled()
        assert verdict(await world.get(), "RestartRequired") is None


@virtual
async def test_an_attachment_that_is_deleted_is_made_again() -> None:
    async with virtual_world() as world:
        await world.running(networks=[LAN])
        await world.client.delete(NetworkAttachmentDefinition, "web-lan-nad")
        await world.settled()
        assert await world.names(NetworkAttachmentDefinition) == {"web-lan-nad"}


@virtual
async def test_a_given_attachment_that_does_not_exist_is_waited_for() -> None:
    async with virtual_world() as world:
        await world.create(networks=[Network(name="lan", type="bridge", nad_name="campus")])
        await world.settled()
        waiting = await world.get()
        assert verdict(waiting, "NetworksConfigured") == (
            "False",
            "NADNotFound",
            "NetworkAttachmentDefinition campus does not exist",
        )
        assert waiting.status.phase == "Creating"
        assert waiting.status.vm_name is None
        await attachment(world.client, "campus")
        await world.reaches("Running", timeout=3)  # before the next requeue: it is watched


@virtual
async def test_without_multus_networks_fall_back_to_that_of_the_pod_until_it_is_installed() -> None:
    async with virtual_world(kinds=["kubevirt", "cdi"]) as world:
        created = await world.running(networks=[LAN])
        assert verdict(created, "NetworksConfigured") == (
            "False",
            "MultusMissing",
            "Multus is not installed: the pod's own network is used instead of lan",
        )
        assert [(each.name, each.nad_name) for each in created.status.networks] == [("default", None), ("lan", None)]
        assert [each.name for each in (await world.machine()).spec.template.spec.networks] == ["default"]
        await world.install("multus")
        await world.client.wait_for(created, condition("NetworksConfigured"))
        assert [each.name for each in (await world.machine()).spec.template.spec.networks] == ["default", "lan"]


@virtual
async def test_a_given_attachment_cannot_be_there_without_multus() -> None:
    async with virtual_world(kinds=["kubevirt", "cdi"]) as world:
        await world.create(networks=[Network(name="lan", type="bridge", nad_name="campus")])
        await world.settled()
        found = verdict(await world.get(), "NetworksConfigured")
        assert found is not None
        assert found[1:] == (
            "NADNotFound",
            "NetworkAttachmentDefinition campus does not exist: Multus is not installed",
        )


@virtual
async def test_an_attachment_of_somebody_else_is_left_alone() -> None:
    async with virtual_world() as world:
        await attachment(world.client, "web-lan-nad")
        await world.create(networks=[LAN])
        await world.settled()
        refused = await world.get()
        assert refused.status.phase == "Error"
        found = verdict(refused, "NetworksConfigured")
        assert found is not None
        assert found[1] == "NameTaken"
        assert "NetworkAttachmentDefinition web-lan-nad exists and does not belong to this Wukong" in found[2]
        await world.client.delete(refused)
        await world.client.wait_for(refused, deleted)
        assert (await world.client.get(NetworkAttachmentDefinition, "web-lan-nad")).spec.config == "{}"


async def attachment(client: Client, name: str) -> NetworkAttachmentDefinition:
    spec = NetworkAttachmentDefinitionSpec(config="{}")
    return await client.create(NetworkAttachmentDefinition(metadata=ObjectMeta(name=name), spec=spec))


@virtual
async def test_an_attachment_of_our_own_that_is_given_by_its_name_stays() -> None:
    async with virtual_world() as world:
        await world.running(networks=[LAN])
        await world.change({"networks": [{"name": "wan", "type": "bridge", "nadName": "web-lan-nad"}]})
        await world.settled()
        await world.client.delete(await world.instance())
        await world.settled()
        assert await world.names(NetworkAttachmentDefinition) == {"web-lan-nad"}
