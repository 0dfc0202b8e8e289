"""The VirtualMachine of a Wukong.

Fields of the spec are set again when they were changed in the machine; what others have added to the machine stays.
Which claim a disk has, and with the strategy Manual whether it runs, is left to others once the machine is there.
"""

from __future__ import annotations

import json
from typing import cast

from kubewright import Quantity
from kubewright.api.codec import decode_model, encode, to_json
from kubewright.api.core.v1 import (
    Affinity,
    LocalObjectReference,
    PodAffinityTerm,
    PodAntiAffinity,
    Secret,
    WeightedPodAffinityTerm,
)
from kubewright.api.markers import JSONObject
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.patterns import NotYet, create_or_update

from .children import WUKONG_LABEL, mac_address, machine_name, metadata_of
from .cloud_init import NETWORK_DATA, cloud_init_secret
from .context import Attachment, DiskVolume, WukongContext
from .kubevirt import (
    CPU,
    HALTED,
    MANUAL,
    ONCE,
    Binding,
    ClaimVolume,
    DataVolumeVolume,
    Devices,
    DiskDevice,
    DiskTarget,
    Domain,
    GPUDevice,
    Interface,
    Memory,
    MultusNetwork,
    NoCloud,
    PluginBinding,
    PodNetwork,
    VirtualMachine,
    VirtualMachineInstanceSpec,
    VirtualMachineNetwork,
    VirtualMachineSpec,
    VirtualMachineTemplate,
    Volume,
)
from .merging import merged_fields
from .types import CLOUD_INIT_DISK, Wukong

APPLIED = "vm.novasphere.dev/last-applied"
"""The annotation with the spec that was wanted last. It is on the template: a restore puts the spec of the machine back
to what it was when the snapshot was taken, and what had been wanted then comes back with it.
"""
SPREAD_LABEL = "vm.novasphere.dev/spread"
"""On machines that avoid each other."""
HOSTNAME = "kubernetes.io/hostname"
_STRATEGIES = {"Always": "Always", "OnFailure": "RerunOnFailure", "Never": ONCE}


async def ensure_machine(context: WukongContext) -> VirtualMachine:
    """Make the machine as the spec says, and return it."""
    wukong = context.object
    if not await context.client.serves(VirtualMachine):
        raise NotYet("KubeVirt is not installed", reason="KubeVirtMissing", after=60)
    secret = await cloud_init_secret(context)
    wanted = machine_spec(wukong, context.attachments, context.volumes, secret)
    initial = VirtualMachine(metadata=metadata_of(wukong, machine_name(wukong)), spec=VirtualMachineSpec())
    change = create_or_update(context.client, initial, owner=wukong)
    async with change as machine:
        machine.metadata.labels |= initial.metadata.labels
        settle(machine, wanted)
    if change.outcome == "created":
        context.created(change.object)
    return change.object


def settle(machine: VirtualMachine, wanted: VirtualMachineSpec) -> None:
    """Put what is wanted into the machine."""
    before, applied = _applied(machine), _fields(wanted)
    if wanted.run_strategy == MANUAL and before.get("runStrategy") == MANUAL:
        wanted.run_strategy = machine.spec.run_strategy
    there = {volume.name: volume for volume in machine.spec.template.spec.volumes if volume.name != CLOUD_INIT_DISK}
    volumes = wanted.template.spec.volumes
    wanted.template.spec.volumes = [there.get(volume.name, volume) for volume in volumes]
    settled = merged_fields(_fields(machine.spec), before, _fields(wanted))
    machine.spec = decode_model(VirtualMachineSpec, encode(settled))
    machine.spec.template.metadata.annotations[APPLIED] = json.dumps(applied, sort_keys=True, separators=(",", ":"))


def _fields(spec: VirtualMachineSpec) -> JSONObject:
    return cast(JSONObject, to_json(spec))


def _applied(machine: VirtualMachine) -> JSONObject:
    """The spec that was wanted last; empty for a new machine, and where the annotation is damaged."""
    try:
        found = json.loads(machine.spec.template.metadata.annotations.get(APPLIED, "{}"))
    except ValueError:
        return {}
    return cast(JSONObject, found) if isinstance(found, dict) else {}


def run_strategy(wukong: Wukong) -> str:
    """When the machine is to run, as KubeVirt says it."""
    start, availability = wukong.spec.start_strategy, wukong.spec.high_availability
    chosen = start.run_strategy if start is not None else None
    if chosen == MANUAL:
        return MANUAL
    if start is not None and start.auto_start is False:
        return HALTED
    if chosen is not None:
        return chosen
    policy = availability.restart_policy if availability is not None else None
    return _STRATEGIES[policy or "Always"]


def machine_spec(
    wukong: Wukong, attachments: list[Attachment], volumes: list[DiskVolume], secret: Secret | None
) -> VirtualMachineSpec:
    """The machine as a Wukong wants it."""
    availability = wukong.spec.high_availability
    labels = {WUKONG_LABEL: wukong.metadata.name}
    spec = VirtualMachineInstanceSpec(
        domain=_domain(wukong, attachments, secret),
        networks=[_network(each) for each in attachments],
        volumes=[_volume(each) for each in volumes],
    )
    if secret is not None:
        reference = LocalObjectReference(name=secret.metadata.name)
        no_cloud = NoCloud(secret_ref=reference)
        if NETWORK_DATA in secret.data:
            no_cloud.network_data_secret_ref = reference
        spec.volumes.append(Volume(name=CLOUD_INIT_DISK, cloud_init_no_cloud=no_cloud))
    if availability is not None:
        spec.node_selector = availability.node_selector
        spec.tolerations = availability.tolerations
        if availability.anti_affinity:
            labels[SPREAD_LABEL] = "true"
            spec.affinity = spread()
    template = VirtualMachineTemplate(metadata=ObjectMeta(labels=labels), spec=spec)
    return VirtualMachineSpec(run_strategy=run_strategy(wukong), template=template)


def spread() -> Affinity:
    """Other nodes are preferred, not required: with more machines than nodes some would never start."""
    selector = LabelSelector(match_labels={SPREAD_LABEL: "true"})
    term = PodAffinityTerm(label_selector=selector, topology_key=HOSTNAME)
    preferred = [WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)]
    return Affinity(pod_anti_affinity=PodAntiAffinity(preferred_during_scheduling_ignored_during_execution=preferred))


def _domain(wukong: Wukong, attachments: list[Attachment], secret: Secret | None) -> Domain:
    disks = [
        DiskDevice(name=disk.name, disk=DiskTarget(bus="virtio"), boot_order=1 if disk.boot else None)
        for disk in wukong.spec.disks
    ]
    if secret is not None:
        disks.append(DiskDevice(name=CLOUD_INIT_DISK, disk=DiskTarget(bus="virtio")))
    return Domain(
        cpu=CPU(cores=wukong.spec.cpu),
        memory=Memory(guest=str(Quantity(wukong.spec.memory))),  # as KubeVirt writes it, whatever it is given
        devices=Devices(
            disks=disks,
            interfaces=[_interface(wukong, each) for each in attachments],
            gpus=[GPUDevice(name=gpu.name, device_name=gpu.device_name) for gpu in wukong.spec.gpus],
        ),
    )


def _interface(wukong: Wukong, attachment: Attachment) -> Interface:
    interface = Interface(name=attachment.network, mac_address=mac_address(wukong, attachment.network))
    match attachment.binding:
        case "masquerade":
            interface.masquerade = Binding()
        case "bridge":
            interface.bridge = Binding()
        case "sriov":
            interface.sriov = Binding()
        case "macvtap":
            interface.binding = PluginBinding(name="macvtap")
    return interface


def _network(attachment: Attachment) -> VirtualMachineNetwork:
    if not attachment.nad:
        return VirtualMachineNetwork(name=attachment.network, pod=PodNetwork())
    multus = MultusNetwork(network_name=attachment.nad, default=attachment.is_primary)
    return VirtualMachineNetwork(name=attachment.network, multus=multus)


def _volume(volume: DiskVolume) -> Volume:
    if volume.is_imported:
        return Volume(name=volume.disk.name, data_volume=DataVolumeVolume(name=volume.claim_name))
    return Volume(name=volume.disk.name, persistent_volume_claim=ClaimVolume(claim_name=volume.claim_name))
