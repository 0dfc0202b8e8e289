"""What a Wukong may say, and how it may change.

The types have the same rules for the API server. They are here again for the reconciler, as an object may have been
stored before there was a rule, and for the webhook, which says what is found and names every mistake at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_interface
from typing import get_args

from kubewright import FieldCause, Quantity

from .types import (
    CLOUD_INIT_DISK,
    DEFAULT_NETWORK,
    INTERFACE_PATTERN,
    LABEL_PATTERN,
    MAX_CPU,
    MAX_DISKS,
    MAX_GPUS,
    MAX_INTERFACE,
    MAX_NAME,
    MAX_NETWORKS,
    MAX_VLAN,
    NAME_PATTERN,
    QUANTITY_PATTERN,
    Disk,
    IPConfig,
    IPMode,
    Network,
    NetworkType,
    RestartPolicy,
    Retention,
    RunStrategy,
    Wukong,
    WukongSpec,
    bridge_of,
    vlan_interface,
)

NETWORK_TYPES: tuple[str, ...] = get_args(NetworkType)

MAX_LABEL = 63


def check(wukong: Wukong) -> list[FieldCause]:
    """What is wrong with it, whatever it was before."""
    return [*_name(wukong.metadata.name), *_spec(wukong.spec)]


def check_change(old: Wukong, new: Wukong) -> list[FieldCause]:
    """What about it cannot become so: disks and CPUs do not shrink, and the content of a disk stays."""
    causes: list[FieldCause] = []
    if new.spec.cpu < old.spec.cpu:
        causes.append(FieldCause.forbidden("spec.cpu", f"cannot shrink, from {old.spec.cpu} to {new.spec.cpu}"))
    disks = {disk.name: (number, disk) for number, disk in enumerate(new.spec.disks)}
    for before in old.spec.disks:
        if before.name not in disks:
            causes.append(FieldCause.forbidden("spec.disks", f"disks cannot be removed, and {before.name} is missing"))
            continue
        number, disk = disks[before.name]
        causes += _disk_change(f"spec.disks[{number}]", before, disk)
    return causes


def memory_shrinks(old: Wukong, new: Wukong) -> bool:
    """Whether there is less memory than before, which needs a restart and is not refused."""
    return _shrinks(old.spec.memory, new.spec.memory)


def _disk_change(path: str, old: Disk, new: Disk) -> Iterator[FieldCause]:
    if old.storage_class_name is not None and new.storage_class_name != old.storage_class_name:
        yield FieldCause.forbidden(f"{path}.storageClassName", f"cannot be changed from {old.storage_class_name}")
    if new.image != old.image:
        yield FieldCause.forbidden(f"{path}.image", f"cannot be changed from {old.image or 'none'}")
    if _shrinks(old.size, new.size):
        yield FieldCause.forbidden(f"{path}.size", f"a disk cannot shrink, from {old.size} to {new.size}")


def _name(name: str) -> Iterator[FieldCause]:
    if len(name) > MAX_NAME:
        yield FieldCause.invalid(
            "metadata.name", name, f"must have at most {MAX_NAME} characters, as the machine is called NAME-vm"
        )


def _spec(spec: WukongSpec) -> Iterator[FieldCause]:
    if not 1 <= spec.cpu <= MAX_CPU:
        yield FieldCause.invalid("spec.cpu", spec.cpu, f"must be from 1 to {MAX_CPU}")
    yield from _amount("spec.memory", spec.memory)
    if spec.ssh_key_secret is not None:
        yield from _named("spec.sshKeySecret", spec.ssh_key_secret)
    if spec.cloud_init_user is not None and not spec.cloud_init_user.name:
        yield FieldCause.required("spec.cloudInitUser.name")
    yield from _networks(spec.networks)
    yield from _disks(spec.disks)
    yield from _labels("spec.gpus", [gpu.name for gpu in spec.gpus], MAX_GPUS)
    for number, gpu in enumerate(spec.gpus):
        if not gpu.device_name:
            yield FieldCause.required(f"spec.gpus[{number}].deviceName")
    if spec.high_availability is not None:
        policy = spec.high_availability.restart_policy
        yield from _choice("spec.highAvailability.restartPolicy", policy, get_args(RestartPolicy))
    if spec.start_strategy is not None:
        yield from _choice("spec.startStrategy.runStrategy", spec.start_strategy.run_strategy, get_args(RunStrategy))
    if spec.restore_from_snapshot is not None:
        yield from _named("spec.restoreFromSnapshot", spec.restore_from_snapshot)
    yield from _choice("spec.volumeRetention", spec.volume_retention, get_args(Retention))


def _disks(disks: list[Disk]) -> Iterator[FieldCause]:
    if not disks:
        yield FieldCause.required("spec.disks", "a machine needs at least one disk")
    yield from _labels("spec.disks", [disk.name for disk in disks], MAX_DISKS)
    for number, disk in enumerate(disks):
        path = f"spec.disks[{number}]"
        if disk.name == CLOUD_INIT_DISK:
            yield FieldCause.invalid(f"{path}.name", disk.name, "is taken by cloud-init")
        yield from _amount(f"{path}.size", disk.size)
        if not disk.storage_class_name:
            yield FieldCause.required(f"{path}.storageClassName")
        else:
            yield from _named(f"{path}.storageClassName", disk.storage_class_name)
        if disk.image == "":
            yield FieldCause.invalid(f"{path}.image", "", "must be a URL or an image; leave it out for an empty disk")
    boot = [disk.name for disk in disks if disk.boot]
    if len(boot) > 1:
        yield FieldCause.invalid("spec.disks", ", ".join(boot), "at most one disk can be the boot disk")


def _networks(networks: list[Network]) -> Iterator[FieldCause]:
    yield from _labels("spec.networks", [network.name for network in networks], MAX_NETWORKS)
    for number, network in enumerate(networks):
        path = f"spec.networks[{number}]"
        yield from _pod_network(path, network) if network.name == DEFAULT_NETWORK else _network(path, network)
    primary = [network.name for network in networks if network.primary]
    if len(primary) > 1:
        yield FieldCause.invalid("spec.networks", ", ".join(primary), "at most one network can be primary")
    if primary and any(network.name == DEFAULT_NETWORK for network in networks):
        detail = f"a primary network replaces the network {DEFAULT_NETWORK}: remove one of them"
        yield FieldCause.invalid("spec.networks", primary[0], detail)


def _pod_network(path: str, network: Network) -> Iterator[FieldCause]:
    given = {
        "type": network.type,
        "nadName": network.nad_name,
        "vlanId": network.vlan_id,
        "bridgeName": network.bridge_name,
        "ipConfig": network.ip_config,
        "physicalInterface": network.physical_interface,
        "resourceName": network.resource_name,
        "primary": network.primary or None,
    }
    for name, value in given.items():
        if value is not None:
            yield FieldCause.forbidden(f"{path}.{name}", f"the network {DEFAULT_NETWORK} is the pod's own")


def _network(path: str, network: Network) -> Iterator[FieldCause]:
    if network.type is None:
        yield FieldCause.required(f"{path}.type", f"one of {', '.join(NETWORK_TYPES)}")
    yield from _choice(f"{path}.type", network.type, NETWORK_TYPES)
    if network.nad_name is not None:
        yield from _named(f"{path}.nadName", network.nad_name)
    if network.vlan_id is not None and not 1 <= network.vlan_id <= MAX_VLAN:
        yield FieldCause.invalid(f"{path}.vlanId", network.vlan_id, f"must be from 1 to {MAX_VLAN}")
    if network.type == "macvlan" and network.nad_name is None:
        detail = "macvlan does not carry the frames of a guest: name an attachment of type macvtap, or use bridge"
        yield FieldCause.required(f"{path}.nadName", detail)
    if network.type == "sriov" and network.nad_name is None and not network.resource_name:
        detail = "sriov needs the device pool, or an attachment in nadName"
        yield FieldCause.required(f"{path}.resourceName", detail)
    for name, value in (("bridgeName", bridge_of(network)), ("physicalInterface", network.physical_interface)):
        is_used = name == "physicalInterface" or (network.type in ("bridge", "ovs") and network.nad_name is None)
        if is_used and value is not None and not _is_interface(value):
            detail = f"must be the name of an interface, with at most {MAX_INTERFACE} characters"
            yield FieldCause.invalid(f"{path}.{name}", value, detail)
    if network.physical_interface is not None and network.type in ("bridge", "ovs") and network.nad_name is None:
        yield from _port(path, network, network.physical_interface)
    if network.ip_config is not None:
        yield from _ip_config(f"{path}.ipConfig", network.ip_config)


def _port(path: str, network: Network, interface: str) -> Iterator[FieldCause]:
    port = vlan_interface(interface, network.vlan_id if network.type == "bridge" else None)
    if len(port) > MAX_INTERFACE >= len(interface):
        detail = f"its VLAN is called {port}, which has more than {MAX_INTERFACE} characters"
        yield FieldCause.invalid(f"{path}.physicalInterface", interface, detail)
    if bridge_of(network) == interface or bridge_of(network).startswith(f"{interface}."):
        detail = "a bridge cannot be called as the interface below it: choose another bridgeName"
        yield FieldCause.invalid(f"{path}.bridgeName", bridge_of(network), detail)


def _ip_config(path: str, config: IPConfig) -> Iterator[FieldCause]:
    yield from _choice(f"{path}.mode", config.mode, get_args(IPMode))
    subnet = None
    if config.address is None:
        if config.mode == "static":
            yield FieldCause.required(f"{path}.address", "such as 192.168.1.5/24")
    else:
        subnet = _subnet(config.address)
        if subnet is None:
            detail = "must be an address with its prefix, such as 192.168.1.5/24"
            yield FieldCause.invalid(f"{path}.address", config.address, detail)
    addresses = {f"{path}.dnsServers[{number}]": server for number, server in enumerate(config.dns_servers)}
    if config.gateway is not None:
        addresses[f"{path}.gateway"] = config.gateway
    wrong = [where for where, address in addresses.items() if not _is_address(address)]
    for where in wrong:
        yield FieldCause.invalid(where, addresses[where], "must be an IP address, such as 192.168.1.1")
    gateway = f"{path}.gateway"
    is_given = gateway in addresses and gateway not in wrong and subnet is not None
    if is_given and ip_address(addresses[gateway]) not in (subnet or ()):
        yield FieldCause.invalid(gateway, addresses[gateway], f"must be in the subnet {subnet}")


def _labels(path: str, names: list[str], limit: int) -> Iterator[FieldCause]:
    if len(names) > limit:
        yield FieldCause.too_many(path, len(names), limit)
    for number, name in enumerate(names):
        if not re.fullmatch(LABEL_PATTERN, name) or len(name) > MAX_LABEL:
            detail = f"must have lower-case letters, digits and -, at most {MAX_LABEL}, such as data-1"
            yield FieldCause.invalid(f"{path}[{number}].name", name, detail)
    for name, count in Counter(names).items():
        if count > 1:
            yield FieldCause.duplicate(f"{path}[{len(names) - 1 - names[::-1].index(name)}].name", name)


def _named(path: str, name: str) -> Iterator[FieldCause]:
    if not re.fullmatch(NAME_PATTERN, name) or len(name) > 253:
        yield FieldCause.invalid(path, name, "must be the name of an object")


def _amount(path: str, text: str) -> Iterator[FieldCause]:
    if not _is_amount(text) or Quantity(text) <= 0:
        yield FieldCause.invalid(path, text, "must be a quantity above 0, such as 10Gi")


def _choice(path: str, value: str | None, choices: Iterable[str]) -> Iterator[FieldCause]:
    if value is not None and value not in choices:
        yield FieldCause.not_supported(path, value, choices)


def _is_amount(text: str) -> bool:
    return re.fullmatch(QUANTITY_PATTERN, text) is not None


def _shrinks(old: str, new: str) -> bool:
    return _is_amount(old) and _is_amount(new) and Quantity(new) < Quantity(old)


def _is_interface(name: str) -> bool:
    return re.fullmatch(INTERFACE_PATTERN, name) is not None and len(name) <= MAX_INTERFACE


def _subnet(text: str) -> IPv4Network | IPv6Network | None:
    """The subnet of an address with its prefix; None if it is none. The API server takes no netmask for a prefix."""
    address, _, prefix = text.partition("/")
    if not _is_address(address) or re.fullmatch("0|[1-9][0-9]*", prefix) is None:
        return None
    try:
        return ip_interface(text).network
    except ValueError:
        return None


def _is_address(text: str) -> bool:
    """As the API server says it: one of IPv6 has no zone, and is none of IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return "%" not in text and (isinstance(address, IPv4Address) or address.ipv4_mapped is None)
