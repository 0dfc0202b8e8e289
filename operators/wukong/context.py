"""What the steps of one reconcile of a Wukong share."""

from __future__ import annotations

import logging
from typing import Literal, NamedTuple, Protocol, TypeAlias

from kubewright import CachedClient, Quantity
from kubewright.api import Object
from kubewright.api.core.v1 import PersistentVolumeClaim
from kubewright.patterns import Context

from .failures import Failure
from .kubevirt import VirtualMachine
from .ssh_keys import SSHKeys
from .types import Disk, Network, Wukong

_log = logging.getLogger(__name__)

BindingName: TypeAlias = Literal["masquerade", "bridge", "sriov", "macvtap"]


class Attachment(NamedTuple):
    """An interface of the machine."""

    network: str
    nad: str
    """The NetworkAttachmentDefinition; empty for the pod's own network."""
    binding: BindingName
    is_primary: bool = False


class DiskVolume(NamedTuple):
    """The volume of a disk, as it was found."""

    disk: Disk
    claim_name: str
    claim: PersistentVolumeClaim | None
    is_imported: bool
    """Whether the machine refers to its DataVolume."""
    is_usable: bool
    """Whether the machine can be made: it is bound, or waits for its first consumer."""
    problem: str = ""
    """What it waits for."""
    failure: Failure | None = None

    @property
    def is_bound(self) -> bool:
        """Whether there is a volume behind the claim, and it is to stay."""
        return self.claim is not None and is_bound(self.claim)

    @property
    def capacity(self) -> Quantity | None:
        """The size of the volume."""
        return self.claim.status.capacity.get("storage") if self.claim is not None else None


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether there is a volume behind it, and it is to stay."""
    return claim.status.phase == "Bound" and claim.metadata.deletion_timestamp is None


class NodeNetworks(Protocol):
    """What is done to the interfaces of nodes for the networks of a Wukong."""

    async def configure(self, wukong: Wukong) -> None:
        """Provide for its networks; raises `NotYet` and `Failure`."""

    async def release(self, wukong: Wukong, *, everything: bool = False) -> None:
        """Undo what its networks no longer need, or all of it; raises `NotYet`."""

    def tags(self, network: Network) -> bool:
        """Whether frames of the network get their VLAN tag on the node, below its bridge."""
        ...


class NoNodeNetworks:
    """The interfaces of nodes are left alone, also those that were made when they were not."""

    async def configure(self, wukong: Wukong) -> None:
        """See `NodeNetworks`."""

    async def release(self, wukong: Wukong, *, everything: bool = False) -> None:
        """See `NodeNetworks`."""
        names = [network.name for network in wukong.spec.networks if network.physical_interface is not None]
        if everything and names:
            _log.warning(
                "%s is deleted with --nmstate off: bridges that were made on nodes for its networks %s stay there",
                wukong.key,
                ", ".join(names),
            )

    def tags(self, network: Network) -> bool:
        """See `NodeNetworks`."""
        return False


class WukongContext(Context[Wukong]):
    """One reconcile of a Wukong."""

    client: CachedClient
    nodes: NodeNetworks
    nodes_first: bool
    """Whether nodes are configured before the attachments are made."""
    keys: SSHKeys
    machine: VirtualMachine | None
    """As it is when the reconcile begins."""
    attachments: list[Attachment]
    volumes: list[DiskVolume]
    is_to_retry: bool
    """Whether a request failed that the machine does not depend on: it is sent again after a while."""

    def created(self, child: Object) -> None:
        """Emit an event that a child was created."""
        self.events.normal(self.object, "Created", f"Created {child.kind} {child.metadata.name}")

    def deleted(self, child: Object) -> None:
        """Emit an event that a child was deleted."""
        self.events.normal(self.object, "Deleted", f"Deleted {child.kind} {child.metadata.name}")
