"""The objects that belong to a Wukong: what they are called, and how they are recognized.

Each has a label with the uid and a controlling owner reference: an object that merely has the name of a child is
somebody else's, and is neither changed nor deleted.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TypeVar

from kubewright import CachedClient, Client, ObjectMeta
from kubewright.api import Object
from kubewright.cache import Cache

from .failures import NameTaken
from .types import Wukong

WUKONG_LABEL = "vm.novasphere.dev/wukong"
UID_LABEL = "vm.novasphere.dev/wukong-uid"
RETAINED_LABEL = "vm.novasphere.dev/retained-from"
"""On volumes that outlive their Wukong: its name."""

OWNER = "controllerUid"
"""An index of children: labels get lost."""

C = TypeVar("C", bound=Object)


def machine_name(wukong: Wukong) -> str:
    """The VirtualMachine, and the VirtualMachineInstance that it makes."""
    return f"{wukong.metadata.name}-vm"


def volume_name(wukong: Wukong, disk: str) -> str:
    """The DataVolume and PersistentVolumeClaim of a disk."""
    return f"{wukong.metadata.name}-{disk}"


def attachment_name(wukong: Wukong, network: str) -> str:
    """The NetworkAttachmentDefinition of a network."""
    return f"{wukong.metadata.name}-{network}-nad"


def secret_name(wukong: Wukong) -> str:
    """The Secret that cloud-init reads."""
    return f"{wukong.metadata.name}-cloudinit"


def mac_address(wukong: Wukong, network: str) -> str:
    """A locally administered address, the same for as long as the Wukong exists: cloud-init finds interfaces by it."""
    digest = sha256(f"{wukong.metadata.uid}/{network}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))


def metadata_of(wukong: Wukong, name: str) -> ObjectMeta:
    """The metadata of a child."""
    labels = {WUKONG_LABEL: wukong.metadata.name, UID_LABEL: wukong.metadata.uid}
    return ObjectMeta(name=name, namespace=wukong.metadata.namespace, labels=labels)


def belongs_to(child: Object, wukong: Wukong) -> bool:
    """Whether the Wukong controls it."""
    return any(each.controller and each.uid == wukong.metadata.uid for each in child.metadata.owner_references)


async def find_child(client: Client, kind: type[C], name: str, wukong: Wukong) -> C | None:
    """The child of that name. Raises `NameTaken` when that is somebody else's."""
    found = await client.find(kind, name, namespace=wukong.metadata.namespace)
    if found is not None and not belongs_to(found, wukong):
        raise name_taken(found)
    return found


def name_taken(found: Object) -> NameTaken:
    """What is wrong when somebody else's object has the name of a child."""
    name = found.metadata.name
    return NameTaken(f"{found.kind} {name} exists and does not belong to this Wukong: rename the Wukong, or delete it")


async def children_of(client: CachedClient, kind: type[C], wukong: Wukong) -> list[C]:
    """All that belong to it, whatever its spec and their labels say now."""
    uid, namespace = wukong.metadata.uid, wukong.metadata.namespace
    try:
        found = await client.list(kind, namespace=namespace, index=(OWNER, uid))
    except LookupError:  # nothing watches them
        found = await client.list(kind, namespace=namespace, labels={UID_LABEL: uid})
    return [child for child in found if belongs_to(child, wukong)]


def index_children(cache: Cache, *kinds: type[Object]) -> None:
    """Let the children of a Wukong be found without a search through those of all."""
    for kind in kinds:
        cache.index(kind, OWNER, _owner)


def _owner(child: Object) -> list[str]:
    return [each.uid for each in child.metadata.owner_references if each.controller]
