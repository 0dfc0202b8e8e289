"""Which Wukongs are concerned by objects that do not name them as their owner."""

from __future__ import annotations

from kubewright import Manager, Request, mapped
from kubewright.api import Object
from kubewright.api.resources import resource_info
from kubewright.cache import Cache
from kubewright.controller import Handler

from .bridges import users_of
from .kubevirt import VirtualMachineInstance
from .nmstate import POLICY_LABEL, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy
from .retention import claim_names
from .snapshot_types import WukongSnapshot
from .types import Wukong

REFERENCES = "references"
"""The index of Wukongs and snapshots, by kind and name of what they refer to: see `references`."""


def index_references(cache: Cache) -> None:
    """Let Wukongs and snapshots be found by what they refer to."""
    cache.index(Wukong, REFERENCES, references)
    cache.index(WukongSnapshot, REFERENCES, lambda snapshot: [f"Wukong/{snapshot.spec.wukong_name}"])


def references(wukong: Wukong) -> list[str]:
    """What a Wukong refers to, and the names of its volumes."""
    spec = wukong.spec
    found = [("Secret", spec.ssh_key_secret), ("WukongSnapshot", spec.restore_from_snapshot)]
    found += [("NetworkAttachmentDefinition", network.nad_name) for network in spec.networks]
    found += [("StorageClass", disk.storage_class_name) for disk in spec.disks]
    found += [(kind, name) for name in claim_names(wukong) for kind in ("PersistentVolumeClaim", "DataVolume")]
    return [f"{kind}/{name}" for kind, name in found if name is not None]


def referring(manager: Manager, referred: type[Object], *, by: type[Object] = Wukong) -> Handler[Request]:
    """The Wukongs, or objects of another kind, that refer to an object of this kind by its name."""
    kind = resource_info(referred).gvk.kind

    async def referring_to(there: Object) -> list[Request]:
        name, namespace = there.metadata.name, there.metadata.namespace or None
        found = await manager.client.list(by, namespace=namespace, index=(REFERENCES, f"{kind}/{name}"))
        return [each.key for each in found]

    return mapped(referring_to)


@mapped
def instance_owner(instance: VirtualMachineInstance) -> list[Request]:
    """The Wukong of a guest, which is called as its machine is."""
    name, suffix, rest = instance.metadata.name.rpartition("-vm")
    return [Request(instance.metadata.namespace, name)] if suffix and not rest and name else []


def policy_users(manager: Manager) -> Handler[Request]:
    """The Wukongs that use a bridge."""

    def wukongs(policy: NodeNetworkConfigurationPolicy) -> list[Request]:
        return _watched_users(manager, policy)

    return mapped(wukongs)


def enactment_users(manager: Manager) -> Handler[Request]:
    """The Wukongs that use the bridge that a node has been given."""

    async def wukongs(enactment: NodeNetworkConfigurationEnactment) -> list[Request]:
        name = enactment.metadata.labels.get(POLICY_LABEL, "")
        policy = await manager.client.find(NodeNetworkConfigurationPolicy, name) if name else None
        return _watched_users(manager, policy) if policy is not None else []

    return mapped(wukongs)


def _watched_users(manager: Manager, policy: NodeNetworkConfigurationPolicy) -> list[Request]:
    """Those in the namespaces of this program: a bridge may have users of other programs as well."""
    namespaces = manager.cache.namespaces
    return [user for user in users_of(policy) if not namespaces or user.namespace in namespaces]
