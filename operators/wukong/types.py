"""The kind Wukong, a virtual machine with its disks and networks: `kubectl get wukongs`.

What a rule can say is a rule of the API server, with and without webhooks. Values are not checked when they are
decoded: what was stored before there was a rule has to be readable, so that the reconciler can report it.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from kubewright import Column, Condition, Meta, Model, Resource, Rule, resource
from kubewright.api.core.v1 import Toleration
from kubewright.api.markers import Choice, ListMap

DEFAULT_NETWORK = "default"
"""The network that is the pod's own."""
CLOUD_INIT_DISK = "cloudinitdisk"
"""The disk that cloud-init reads, which no disk of the spec may be called."""

MAX_NAME = 60
"""The machine is called `<name>-vm`, which has to be a label value and a host name."""
MAX_INTERFACE = 15
"""Characters that Linux takes for the name of a network interface."""
MAX_CPU = 64
MAX_VLAN = 4094
MAX_DISKS, MAX_NETWORKS, MAX_GPUS = 32, 16, 16

LABEL_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
NAME_PATTERN = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"
QUANTITY_PATTERN = "^[0-9]+(\\.[0-9]+)?([KMGTPE]i|[kMGTPE])?$"
INTERFACE_PATTERN = "^[a-zA-Z0-9][-_.a-zA-Z0-9]*$"

IPMode: TypeAlias = Literal["static", "dhcp"]
NetworkType: TypeAlias = Literal["bridge", "macvlan", "sriov", "ovs"]
Phase: TypeAlias = Literal["Pending", "Creating", "Running", "Stopped", "Error"]
RunStrategy: TypeAlias = Literal["Always", "RerunOnFailure", "Manual"]
RestartPolicy: TypeAlias = Literal["Always", "OnFailure", "Never"]
Retention: TypeAlias = Literal["Delete", "Retain"]

# Schemas only: see above.
Label: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": LABEL_PATTERN, "maxLength": 63})]
Name: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": NAME_PATTERN, "maxLength": 253})]
Amount: TypeAlias = Annotated[
    str,
    Meta(extra_json_schema={"pattern": QUANTITY_PATTERN, "maxLength": 32}),
    Rule("quantity(self).isGreaterThan(quantity('0'))", message="must be a quantity above 0, such as 10Gi"),
]
InterfaceName: TypeAlias = Annotated[
    str, Meta(extra_json_schema={"pattern": INTERFACE_PATTERN, "maxLength": MAX_INTERFACE})
]
Text: TypeAlias = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 1024})]
Address: TypeAlias = Annotated[
    str,
    Meta(extra_json_schema={"maxLength": 64}),
    Rule("isIP(self)", message="must be an IP address, such as 192.168.1.1"),
]


_NO_PORT = "!has(self.physicalInterface) || !has(self.type) || !(self.type in ['bridge', 'ovs']) || has(self.nadName)"


class CloudInitUser(Model, redacted=["password", "password_hash"]):
    """The user that cloud-init makes."""

    name: Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 32})]
    password: str | None = None
    """In clear; better give its hash."""
    password_hash: str | None = None
    """As in /etc/shadow; it takes precedence over the password."""
    sudo: str = "ALL=(ALL) NOPASSWD:ALL"
    shell: str = "/bin/bash"
    groups: list[str] = ["sudo", "adm", "dialout", "cdrom", "floppy", "audio", "dip", "video", "plugdev", "netdev"]
    lock_passwd: bool = False


class IPConfig(
    Model,
    rules=[
        Rule(
            "self.mode != 'static' || has(self.address)", message="a static address is needed, such as 192.168.1.5/24"
        ),
        Rule(
            "!has(self.gateway) || !has(self.address) || !isCIDR(self.address) || !isIP(self.gateway) || "
            "cidr(self.address).containsIP(ip(self.gateway))",
            message="the gateway must be in the subnet of the address",
            field_path=".gateway",
        ),
    ],
):
    """How the guest gets its address."""

    mode: Choice[IPMode]
    address: (
        Annotated[
            str,
            Meta(extra_json_schema={"maxLength": 64}),
            Rule("isCIDR(self)", message="must be an address with its prefix, such as 192.168.1.5/24"),
        ]
        | None
    ) = None
    gateway: Address | None = None
    dns_servers: Annotated[list[Address], Meta(extra_json_schema={"maxItems": 8})] = []


class Network(
    Model,
    rules=[
        Rule(
            f"has(self.type) || self.name == '{DEFAULT_NETWORK}'",
            message=f"the type is needed (bridge, macvlan, sriov or ovs), unless it is called {DEFAULT_NETWORK}",
            field_path=".type",
            reason="FieldValueRequired",
        ),
        Rule(
            f"self.name != '{DEFAULT_NETWORK}' || !(has(self.type) || has(self.nadName) || has(self.vlanId) || "
            "has(self.bridgeName) || has(self.ipConfig) || has(self.physicalInterface) || has(self.resourceName) || "
            "(has(self.primary) && self.primary))",
            message=f"the network {DEFAULT_NETWORK} is the pod's own, and takes no other field",
        ),
        Rule(
            "!has(self.type) || self.type != 'macvlan' || has(self.nadName)",
            message="macvlan does not carry the frames of a guest: name an attachment of type macvtap in nadName, or "
            "use bridge",
            field_path=".nadName",
            reason="FieldValueRequired",
        ),
        Rule(
            "!has(self.type) || self.type != 'sriov' || has(self.nadName) || has(self.resourceName)",
            message="sriov needs the resourceName of its device pool, or an attachment in nadName",
            field_path=".resourceName",
            reason="FieldValueRequired",
        ),
        Rule(
            "!has(self.type) || !(self.type in ['bridge', 'ovs']) || has(self.nadName) || has(self.bridgeName) || "
            f"size(self.name) <= {MAX_INTERFACE - 3}",
            message=f"br-NAME has more than {MAX_INTERFACE} characters: give a bridgeName",
            field_path=".bridgeName",
            reason="FieldValueRequired",
        ),
        Rule(
            f"{_NO_PORT} || self.type != 'bridge' || !has(self.vlanId) || size(self.physicalInterface) + "
            f"(self.vlanId > 999 ? 5 : self.vlanId > 99 ? 4 : self.vlanId > 9 ? 3 : 2) <= {MAX_INTERFACE}",
            message=f"physicalInterface.vlanId has more than {MAX_INTERFACE} characters",
            field_path=".physicalInterface",
        ),
        Rule(
            f"{_NO_PORT} || (has(self.bridgeName) ? self.bridgeName != self.physicalInterface && "
            "!self.bridgeName.startsWith(self.physicalInterface + '.') : 'br-' + self.name != self.physicalInterface)",
            message="a bridge cannot be called as the interface below it: choose another bridgeName",
            field_path=".bridgeName",
        ),
    ],
):
    """A network that the machine is attached to."""

    name: Label
    type: Choice[NetworkType] | None = None
    nad_name: Name | None = None
    """A NetworkAttachmentDefinition that is there already. It is used as it is, never changed and never deleted."""
    vlan_id: Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MAX_VLAN})] | None = None
    bridge_name: InterfaceName | None = None
    """By default `br-<name>`."""
    ip_config: IPConfig | None = None
    physical_interface: InterfaceName | None = None
    """The interface of the nodes that the bridge is put on, where the operator makes bridges (`--nmstate`)."""
    node_selector: dict[str, str] = {}
    """The nodes on which that is done."""
    resource_name: Text | None = None
    """The device pool of an sriov network, such as `intel.com/sriov`."""
    primary: bool = False
    """Whether it replaces the pod's own network."""


class Disk(
    Model,
    rules=[
        Rule(
            "has(self.storageClassName)",
            message="the storage class is needed",
            field_path=".storageClassName",
            reason="FieldValueRequired",
        ),
        Rule(
            "!has(oldSelf.storageClassName) || (has(self.storageClassName) && "
            "self.storageClassName == oldSelf.storageClassName)",
            message="the storage class of a disk cannot be changed",
            field_path=".storageClassName",
        ),
        Rule(
            "has(self.image) == has(oldSelf.image) && (!has(self.image) || self.image == oldSelf.image)",
            message="the image of a disk cannot be changed",
            field_path=".image",
        ),
        Rule(
            "!isQuantity(self.size) || !isQuantity(oldSelf.size) || "
            "quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
            message="a disk cannot shrink",
            field_path=".size",
        ),
    ],
):
    """A disk of the machine."""

    name: Annotated[
        Label,
        Rule(f"self != '{CLOUD_INIT_DISK}'", message=f"the name {CLOUD_INIT_DISK} is taken by cloud-init"),
    ]
    size: Amount
    storage_class_name: Name | None = None
    boot: bool = False
    image: Text | None = None
    """What it begins with: an http(s) URL, or an image of a registry. Without it the disk is empty."""


class HighAvailability(Model):
    """Where the machine runs, and what happens when it ends."""

    restart_policy: Choice[RestartPolicy] | None = None
    """What `startStrategy.runStrategy` takes precedence over."""
    anti_affinity: bool = False
    """Prefer nodes that run no other machine with anti-affinity of this namespace."""
    node_selector: dict[str, str] = {}
    tolerations: Annotated[list[Toleration], Meta(extra_json_schema={"maxItems": 64})] = []


class StartStrategy(Model):
    """When the machine runs."""

    run_strategy: Choice[RunStrategy] | None = None
    auto_start: bool | None = None
    """With false the machine is kept halted; with the run strategy Manual it is left to users."""


class GPU(Model):
    """A device of the host."""

    name: Label
    device_name: Text


class WukongSpec(Model):
    """The machine that is wanted."""

    cpu: Annotated[
        int,
        Meta(extra_json_schema={"minimum": 1, "maximum": MAX_CPU}),
        Rule("self >= oldSelf", message="the number of CPUs cannot shrink"),
    ]
    memory: Amount = "2Gi"
    os_image: str | None = None
    """Says that the guest has cloud-init, and nothing else."""
    ssh_key_secret: Name | None = None
    """A Secret with the public keys that may log in."""
    cloud_init_user: CloudInitUser | None = None
    networks: Annotated[
        list[Network],
        ListMap("name"),
        Meta(extra_json_schema={"maxItems": MAX_NETWORKS}),
        Rule(
            "self.filter(network, has(network.primary) && network.primary).size() <= 1",
            message="at most one network can be primary",
        ),
        Rule(
            f"!self.exists(network, network.name == '{DEFAULT_NETWORK}') || "
            "!self.exists(network, has(network.primary) && network.primary)",
            message=f"a primary network replaces the network {DEFAULT_NETWORK}: remove one of them",
        ),
    ] = []
    disks: Annotated[
        list[Disk],
        ListMap("name"),
        Meta(extra_json_schema={"minItems": 1, "maxItems": MAX_DISKS}),
        Rule(
            "self.filter(disk, has(disk.boot) && disk.boot).size() <= 1",
            message="at most one disk can be the boot disk",
        ),
        Rule("oldSelf.all(old, self.exists(disk, disk.name == old.name))", message="disks cannot be removed"),
    ]
    high_availability: HighAvailability | None = None
    start_strategy: StartStrategy | None = None
    gpus: Annotated[list[GPU], ListMap("name"), Meta(extra_json_schema={"maxItems": MAX_GPUS})] = []
    restore_from_snapshot: Name | None = None
    """A WukongSnapshot of this machine, which is restored once the machine is stopped."""
    volume_retention: Choice[Retention] = "Delete"
    """Whether the volumes are deleted with the Wukong, or stay for the next one of the same name."""


class NetworkStatus(Model):
    """A network, as the guest has it."""

    name: str
    interface: str | None = None
    ip_address: str | None = None
    mac_address: str | None = None
    nad_name: str | None = None
    primary: bool | None = None


class VolumeStatus(Model):
    """A disk, as the storage has it."""

    name: str
    pvc_name: str
    bound: bool = False
    size: str | None = None
    """The capacity of the volume, once there is one."""


class RestoreStatus(Model):
    """The restore that `restoreFromSnapshot` asks for."""

    snapshot: str
    phase: Literal["Waiting", "Restoring", "Succeeded", "Failed"] = "Waiting"
    message: str = ""


class WukongStatus(Model):
    """The machine that there is."""

    phase: Phase = "Pending"
    vm_name: str | None = None
    node_name: str | None = None
    networks: Annotated[list[NetworkStatus], ListMap("name")] = []
    volumes: Annotated[list[VolumeStatus], ListMap("name")] = []
    restore: RestoreStatus | None = None
    observed_generation: int = 0
    conditions: Annotated[list[Condition], ListMap("type")] = []


@resource(
    "vm.novasphere.dev/v1alpha1",
    columns=[
        Column("Phase", ".status.phase"),
        Column("Node", ".status.nodeName"),
        Column("IP", ".status.networks[0].ipAddress"),
        Column("CPU", ".spec.cpu", priority=1),
        Column("Memory", ".spec.memory", priority=1),
    ],
    rules=[
        Rule(
            f"size(self.metadata.name) <= {MAX_NAME}",
            message=f"the name must have at most {MAX_NAME} characters, as the machine is called NAME-vm",
        )
    ],
)
class Wukong(Resource[WukongSpec, WukongStatus]):
    """A virtual machine on KubeVirt, with its disks and networks."""


def bridge_of(network: Network) -> str:
    """The bridge of a network of type bridge or ovs."""
    return network.bridge_name or f"br-{network.name}"


def vlan_interface(interface: str, vlan_id: int | None) -> str:
    """What the interface for a VLAN is called; itself without one."""
    return interface if vlan_id is None else f"{interface}.{vlan_id}"
