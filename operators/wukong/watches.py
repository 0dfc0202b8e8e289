"""Which Wukongs are concerned by objects that do not name them as their owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubewright import CachedClient, Manager, Request, mapped
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

SECRETS, ATTACHMENTS, CLASSES, SNAPSHOTS = "sshKeySecret", "nadNames", "storageClassNames", "restoreFromSnapshot"
CLAIMS = "pvcNames"
"""Indexes of Wukongs."""
WUKONGS = "wukongName"
"""An index of WukongSnapshots."""


def index_references(cache: Cache) -> None:
    """Let Wukongs and snapshots be found by what they refer to."""
    indexes: dict[str, Callable[[Wukong], Iterable[str | None]]] = {
        SECRETS: lambda wukong: [wukong.spec.ssh_key_secret],
        ATTACHMENTS: lambda wukong: [network.nad_name for network in wukong.spec.networks],
        CLAIMS: claim_names,
        CLASSES: lambda wukong: [disk.storage_class_name for disk in wukong.spec.disks],
        SNAPSHOTS: lambda wukong: [wukong.spec.restore_from_snapshot],
    }
    for name, values in indexes.items():
        cache.index(Wukong, name, _given(values))
    cache.index(WukongSnapshot, WUKONGS, lambda snapshot: [snapshot.spec.wukong_name])


def _given(values: Callable[[Wukong], Iterable[str | None]]) -> Callable[[Wukong], Iterable[str]]:
    return lambda wukong: [value for value in values(wukong) if value is not None]


def referring(manager: Manager, index: str, kind: type[Object] = Wukong) -> Handler[Request]:
    """The Wukongs, or objects of another kind, that refer to an object by its name."""

    async def referring_to(referred: Object) -> list[Request]:
        informers = manager.cache.informers(resource_info(kind).gvk)
        if not informers or not all(informer.is_settled for informer in informers):
            return []  # all of them are reconciled once they are known
        metadata = referred.metadata
        found = await manager.client.list(kind, namespace=metadata.namespace or None, index=(index, metadata.name))
        return [each.key for each in found]

    return mapped(referring_to)


@mapped
def instance_owner(instance: VirtualMachineInstance) -> list[Request]:
    """The Wukong of a guest, which is called as its machine is."""
    name, suffix, rest = instance.metadata.name.rpartition("-vm")
    return [Request(instance.metadata.namespace, name)] if suffix and not rest and name else []


@mapped
def policy_users(policy: NodeNetworkConfigurationPolicy) -> list[Request]:
    """The Wukongs that use a bridge."""
    return users_of(policy)


def enactment_users(client: CachedClient) -> Handler[Request]:
    """The Wukongs that use the bridge that a node has been given."""

    async def wukongs(enactment: NodeNetworkConfigurationEnactment) -> list[Request]:
        name = enactment.metadata.labels.get(POLICY_LABEL, "")
        policy = await client.find(NodeNetworkConfigurationPolicy, name) if name else None
        return users_of(policy) if policy is not None else []

    return mapped(wukongs)
