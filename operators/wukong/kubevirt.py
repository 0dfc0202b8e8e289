"""The kinds of KubeVirt, as far as the operator reads and writes them. Other fields survive its writes."""

from __future__ import annotations

from typing import Annotated

from kubewright import ObjectMeta, Resource, Time, field, resource
from kubewright.api.core.v1 import Affinity, LocalObjectReference, Toleration
from kubewright.api.markers import ListMap
from kubewright.api.model import BuiltIn

GROUP = "kubevirt.io"

HALTED = "Halted"
MANUAL = "Manual"
ONCE = "Once"
RESTART_REQUIRED = "RestartRequired"
"""The condition of a machine whose template has changes that a restart brings into effect."""


ALTERNATIVES = (
    frozenset({"masquerade", "bridge", "sriov", "binding", "slirp", "macvtap", "passt"}),
    frozenset({"disk", "lun", "cdrom"}),
    frozenset({"pod", "multus"}),
    frozenset({"cloudInitNoCloud", "cloudInitConfigDrive"}),
)
"""Fields of interfaces, disks, networks and volumes of which KubeVirt accepts one at a time."""


class KubeVirtCondition(BuiltIn):
    """A condition of an object of KubeVirt, CDI or NMState."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: Time | None = None


class Binding(BuiltIn):
    """How a guest is connected; which way is the name of the field that has it."""


class PluginBinding(BuiltIn):
    """A way of connecting guests that a plugin of KubeVirt adds."""

    name: str


class Interface(BuiltIn):
    """A network interface of the guest. One of its bindings is set."""

    name: str
    mac_address: str | None = None
    masquerade: Binding | None = None
    bridge: Binding | None = None
    sriov: Binding | None = None
    binding: PluginBinding | None = None
    slirp: Binding | None = None
    macvtap: Binding | None = None
    passt: Binding | None = None


class DiskTarget(BuiltIn):
    """The bus of a disk."""

    bus: str = ""


class DiskDevice(BuiltIn):
    """A disk of the guest, with the content of the volume of the same name. One of its targets is set."""

    name: str
    disk: DiskTarget | None = None
    lun: DiskTarget | None = None
    cdrom: DiskTarget | None = None
    boot_order: int | None = None


class GPUDevice(BuiltIn):
    """A device of the host that the guest gets."""

    name: str
    device_name: str = ""


class Devices(BuiltIn):
    """The devices of the guest."""

    disks: Annotated[list[DiskDevice], ListMap("name")] = []
    interfaces: Annotated[list[Interface], ListMap("name")] = []
    gpus: Annotated[list[GPUDevice], ListMap("name")] = []


class CPU(BuiltIn):
    """The processor."""

    cores: int = 0


class Memory(BuiltIn):
    """The memory."""

    guest: str | None = None


class Domain(BuiltIn):
    """The hardware of the guest."""

    cpu: CPU = field(default_factory=CPU)
    memory: Memory = field(default_factory=Memory)
    devices: Devices = field(default_factory=Devices)


class PodNetwork(BuiltIn):
    """The network of the pod itself."""


class MultusNetwork(BuiltIn):
    """A network that Multus attaches the pod to; with `default`, instead of its own."""

    network_name: str
    default: bool = False


class VirtualMachineNetwork(BuiltIn):
    """What an interface of the same name is connected to."""

    name: str
    pod: PodNetwork | None = None
    multus: MultusNetwork | None = None


class ClaimVolume(BuiltIn):
    """The volume of a PersistentVolumeClaim."""

    claim_name: str


class DataVolumeVolume(BuiltIn):
    """The volume of a DataVolume: the machine starts when it is filled."""

    name: str


class NoCloud(BuiltIn):
    """A disk that is made for cloud-init from Secrets; a config drive is described in the same way."""

    secret_ref: LocalObjectReference | None = None
    network_data_secret_ref: LocalObjectReference | None = None


class Volume(BuiltIn):
    """The content of a disk of the same name. One of its sources is set."""

    name: str
    persistent_volume_claim: ClaimVolume | None = None
    data_volume: DataVolumeVolume | None = None
    cloud_init_no_cloud: NoCloud | None = None
    cloud_init_config_drive: NoCloud | None = None


def claim_of(volume: Volume) -> str | None:
    """The claim that a volume has its content in; None when it has it from elsewhere."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return volume.data_volume.name if volume.data_volume is not None else None


class VirtualMachineInstanceSpec(BuiltIn):
    """A guest, and where it runs."""

    domain: Domain = field(default_factory=Domain)
    networks: Annotated[list[VirtualMachineNetwork], ListMap("name")] = []
    volumes: Annotated[list[Volume], ListMap("name")] = []
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []
    affinity: Affinity | None = None


class VirtualMachineTemplate(BuiltIn):
    """What instances of a machine are made of."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: VirtualMachineInstanceSpec = field(default_factory=VirtualMachineInstanceSpec)


class VirtualMachineSpec(BuiltIn):
    """A machine, and when it runs."""

    run_strategy: str | None = None
    template: VirtualMachineTemplate = field(default_factory=VirtualMachineTemplate)


class VirtualMachineStatus(BuiltIn):
    """What has become of it."""

    created: bool = False
    ready: bool = False
    printable_status: str | None = None
    conditions: Annotated[list[KubeVirtCondition], ListMap("type")] = []


@resource("kubevirt.io/v1")
class VirtualMachine(Resource[VirtualMachineSpec, VirtualMachineStatus]):
    """A machine that may be stopped and started."""


class InterfaceStatus(BuiltIn):
    """An interface of a guest that runs."""

    name: str | None = None
    ip_address: str | None = None
    mac: str | None = None
    interface_name: str | None = None


class VirtualMachineInstanceStatus(BuiltIn):
    """A guest that runs, or has run."""

    phase: str = ""
    reason: str | None = None
    node_name: str | None = None
    interfaces: list[InterfaceStatus] = []
    conditions: Annotated[list[KubeVirtCondition], ListMap("type")] = []


@resource("kubevirt.io/v1")
class VirtualMachineInstance(Resource[VirtualMachineInstanceSpec, VirtualMachineInstanceStatus]):
    """One run of a machine."""
