"""What the operator consists of."""

from __future__ import annotations

from typing import Annotated, Literal

from kubewright import Manager, Meta, Model, Permission, controller_for, serve_webhooks
from kubewright.api.core.v1 import PersistentVolumeClaim, Secret
from kubewright.api.storage.v1 import StorageClass
from kubewright.controller.builder import Builder

from .bridges import Bridges
from .cdi import DataVolume
from .children import PART_LABEL, index_children
from .context import NodeNetworks, NoNodeNetworks
from .kubevirt import VirtualMachine, VirtualMachineInstance
from .kubevirt_snapshots import (
    VirtualMachineRestore,
    VirtualMachineRestoreV1Alpha1,
    VirtualMachineSnapshot,
    VirtualMachineSnapshotV1Alpha1,
)
from .multus import NetworkAttachmentDefinition
from .nmstate import NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy
from .reconciler import WukongReconciler
from .snapshot_types import WukongSnapshot
from .snapshots import WukongSnapshotReconciler
from .types import Wukong
from .watches import enactment_users, index_references, instance_owner, policy_users, referring
from .webhooks import check_wukong, default_wukong


class Options(Model):
    """The options of the operator."""

    nmstate: Annotated[
        Literal["off", "before", "after"],
        Meta(description="Make bridges on nodes by NMState, before or after the attachments of networks"),
    ] = "off"


DEFAULTS = Options()


def setup(manager: Manager, options: Options = DEFAULTS) -> None:
    """A controller of Wukongs, which all that they depend on wakes, one of their snapshots, and the webhooks."""
    index_references(manager.cache)
    nodes = NoNodeNetworks() if options.nmstate == "off" else Bridges(manager)
    set_up_wukongs(manager, nodes, nodes_first=options.nmstate != "after")
    set_up_snapshots(manager)
    serve_webhooks(manager, default_wukong, check_wukong)


def set_up_wukongs(manager: Manager, nodes: NodeNetworks, *, nodes_first: bool) -> None:
    """The controller of Wukongs, with what is done to nodes for them."""
    client = manager.client
    index_children(
        manager.cache,
        VirtualMachine,
        DataVolume,
        PersistentVolumeClaim,
        NetworkAttachmentDefinition,
        VirtualMachineRestore,
        VirtualMachineRestoreV1Alpha1,
    )
    reconciler = WukongReconciler(client, manager.recorder("wukong"), nodes, nodes_first=nodes_first)
    builder = (
        controller_for(manager, Wukong, workers=8)
        .owns(Secret, labels={PART_LABEL: True})
        .owns(VirtualMachine, NetworkAttachmentDefinition, optional=True)
        .owns(VirtualMachineRestore, VirtualMachineRestoreV1Alpha1, optional=True)
        .watches(VirtualMachineInstance, instance_owner, optional=True)
        .watches(PersistentVolumeClaim, referring(manager, PersistentVolumeClaim))
        .watches(DataVolume, referring(manager, DataVolume), optional=True)
        .watches(NetworkAttachmentDefinition, referring(manager, NetworkAttachmentDefinition), optional=True)
        .watches(StorageClass, referring(manager, StorageClass))
        .watches(WukongSnapshot, referring(manager, WukongSnapshot))
        .watches_metadata(Secret, referring(manager, Secret))
    )
    if isinstance(nodes, Bridges):
        watch_nodes(manager, builder)
    builder.complete(reconciler)
    manager.require(
        Permission(VirtualMachine, "create", "patch", "delete"),
        Permission(DataVolume, "create", "patch", "delete"),
        Permission(PersistentVolumeClaim, "create", "patch", "delete"),
        Permission(NetworkAttachmentDefinition, "create", "patch", "delete"),
        Permission(Secret, "create", "patch"),
        Permission(VirtualMachineRestore, "create", "delete"),
    )


def watch_nodes(manager: Manager, builder: Builder[Wukong]) -> None:
    """What bridges need besides."""
    builder.watches(NodeNetworkConfigurationPolicy, policy_users(manager), optional=True)
    builder.watches(NodeNetworkConfigurationEnactment, enactment_users(manager), optional=True)
    manager.require(Permission(NodeNetworkConfigurationPolicy, "create", "patch", "delete"))


def set_up_snapshots(manager: Manager) -> None:
    """The controller of snapshots."""
    reconciler = WukongSnapshotReconciler(manager.client, manager.recorder("wukong"))
    (
        controller_for(manager, WukongSnapshot)
        .owns(VirtualMachineSnapshot, VirtualMachineSnapshotV1Alpha1, optional=True)
        .watches(Wukong, referring(manager, Wukong, by=WukongSnapshot))
        .complete(reconciler)
    )
    manager.require(Permission(VirtualMachineSnapshot, "create"))
