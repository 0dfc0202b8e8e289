"""The networks of a Wukong: a NetworkAttachmentDefinition for each that does not name one.

Whether Multus is there is known before any of its objects is read. Without it networks fall back to the pod's own.
"""

from __future__ import annotations

import json
from ipaddress import ip_interface

from kubewright.patterns import Done, NotYet, check_adoption, ensure, step

from .children import attachment_name, children_of, find_child, made_for, metadata_of, orphaned_by, taken_over
from .context import Attachment, BindingName, WukongContext
from .kubevirt import VirtualMachineInstance
from .multus import RESOURCE_NAME, NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from .types import DEFAULT_NETWORK, IPConfig, Network, bridge_of

CNI_VERSION = "0.3.1"
POD_NETWORK = Attachment(DEFAULT_NETWORK, "", "masquerade")

_BINDINGS: dict[str, BindingName] = {"sriov": "sriov", "macvlan": "macvtap"}


@step("NetworksConfigured")
async def networks(context: WukongContext) -> Done:
    """Make the attachments, and say what the machine is to be attached to."""
    wukong = context.object
    if context.nodes_first:
        await context.nodes.configure(wukong)
    wanted = [network for network in wukong.spec.networks if network.name != DEFAULT_NETWORK]
    has_multus = not wanted or await context.client.serves(NetworkAttachmentDefinition)
    attached, missing = list[Attachment](), list[str]()
    for network in wanted:
        if network.nad_name is not None:
            if not has_multus or not await _exists(context, network.nad_name):
                missing.append(network.nad_name)
        elif has_multus:
            await _ensure(context, network)
        else:
            continue
        nad = network.nad_name or attachment_name(wukong, network.name)
        attached.append(Attachment(network.name, nad, _BINDINGS.get(network.type or "", "bridge"), network.primary))
    if not context.nodes_first:
        await context.nodes.configure(wukong)
    if missing:
        names = ", ".join(missing)
        why = "" if has_multus else ": Multus is not installed"
        raise NotYet(f"NetworkAttachmentDefinition {names} does not exist{why}", reason="NADNotFound")
    is_replaced = any(each.is_primary for each in attached)
    context.attachments = attached if is_replaced else [POD_NETWORK, *attached]
    if not has_multus:
        names = ", ".join(network.name for network in wanted)
        return Done(
            f"Multus is not installed: the pod's own network is used instead of {names}", "MultusMissing", degraded=True
        )
    return Done(f"{len(wukong.spec.networks)} networks configured", "NetworksReady")


async def _exists(context: WukongContext, name: str) -> bool:
    namespace = context.object.metadata.namespace
    return await context.client.find(NetworkAttachmentDefinition, name, namespace=namespace) is not None


async def _ensure(context: WukongContext, network: Network) -> None:
    wukong, name = context.object, attachment_name(context.object, network.name)
    await find_child(context.client, NetworkAttachmentDefinition, name, wukong)
    metadata = metadata_of(wukong, name)
    if network.type == "sriov" and network.resource_name:
        metadata.annotations[RESOURCE_NAME] = network.resource_name
    # On a bridge that was put on a VLAN interface, frames are not to be tagged twice.
    vlan_id = None if context.nodes.tags(network) else network.vlan_id
    spec = NetworkAttachmentDefinitionSpec(config=cni_config(name, network, vlan_id))
    wanted = NetworkAttachmentDefinition(metadata=metadata, spec=spec)
    ensured = await ensure(context.client, wanted, owner=wukong)
    if ensured.outcome == "created":
        context.created(ensured.object)


def cni_config(name: str, network: Network, vlan_id: int | None) -> str:
    """The configuration of the CNI plugin, the same bytes each time.

    The guest asks for an address by DHCP itself, so that only a static one is given to the plugin.
    """
    config: dict[str, object] = {"cniVersion": CNI_VERSION, "name": name, "type": network.type}
    if network.type in ("bridge", "ovs"):
        config["bridge"] = bridge_of(network)
    if vlan_id is not None:
        config["vlan"] = vlan_id
    if network.ip_config is not None and network.ip_config.mode == "static":
        config["ipam"] = _static(network.ip_config)
    return json.dumps(config, sort_keys=True)


def _static(config: IPConfig) -> dict[str, object]:
    ipam: dict[str, object] = {"type": "static", "addresses": [{"address": config.address}]}
    if config.gateway is not None:
        anywhere = "0.0.0.0/0" if ip_interface(config.address or "").version == 4 else "::/0"
        ipam["routes"] = [{"dst": anywhere, "gw": config.gateway}]
    if config.dns_servers:
        ipam["dns"] = {"nameservers": config.dns_servers}
    return ipam


async def prune_networks(context: WukongContext, instance: VirtualMachineInstance | None) -> bool:
    """Delete attachments that neither the spec nor the guest that runs now uses. False when the guest keeps some.

    Also those that an earlier Wukong of the name has orphaned.
    """
    wukong = context.object
    wanted = {network.nad_name or attachment_name(wukong, network.name) for network in wukong.spec.networks}
    networks = instance.spec.networks if instance is not None else []
    used = {network.multus.network_name for network in networks if network.multus is not None}
    children = await children_of(context.client, NetworkAttachmentDefinition, wukong)
    unwanted = [child for child in children if child.metadata.name not in wanted]
    for orphan in await made_for(context.client, NetworkAttachmentDefinition, wukong, orphaned_by(wukong)):
        if orphan.metadata.name not in wanted:
            await check_adoption(context.client, wukong, orphan)
            unwanted.append(await taken_over(context.client, orphan, wukong))
    for child in unwanted:
        if child.metadata.name not in used and child.metadata.deletion_timestamp is None:
            await context.client.delete(child, uid=child.metadata.uid, missing_ok=True)
            context.deleted(child)
    return used.isdisjoint(child.metadata.name for child in unwanted)
