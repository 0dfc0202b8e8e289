"""The objects that belong to a Wukong: what they are called, and how they are recognized.

Each has a label with the uid and a controlling owner reference: an object that merely has the name of a child is
not one, and is neither changed nor deleted. One that has lost its owner is taken over by the Wukong of its label.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TypeVar

from kubewright import CachedClient, Client, ObjectMeta, set_controller_reference
from kubewright.api import Object
from kubewright.cache import Cache
from kubewright.patterns import check_adoption

from .failures import NameTaken
from .types import Wukong

WUKONG_LABEL = "vm.novasphere.dev/wukong"
UID_LABEL = "vm.novasphere.dev/wukong-uid"
RETAINED_LABEL = "vm.novasphere.dev/retained-from"
"""On volumes that outlive their Wukong: its name."""
DISK_LABEL = "vm.novasphere.dev/disk"
"""On claims of a restore, which are not named after their disk: which one that is."""
PART_LABEL = "vm.novasphere.dev/part"
"""On our Secrets, so that only these are kept whole in the cache."""

MADE_FOR = "madeFor"
"""An index of children, by the uid of their controller, `retained_by`, `restored_for` and `orphaned_by`."""

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


def is_orphan(child: Object, wukong: Wukong) -> bool:
    """Whether nothing controls it, and it was made for this Wukong, or for an earlier one of the name."""
    metadata = child.metadata
    is_controlled = any(each.controller for each in metadata.owner_references)
    return not is_controlled and metadata.labels.get(WUKONG_LABEL) == wukong.metadata.name


async def find_child(client: Client, kind: type[C], name: str, wukong: Wukong) -> C | None:
    """The child of that name, or one to be taken over. Raises `NameTaken` when an object that is neither has it."""
    found = await client.find(kind, name, namespace=wukong.metadata.namespace)
    if found is not None and not belongs_to(found, wukong) and not is_orphan(found, wukong):
        raise name_taken(found)
    if found is not None:
        await check_adoption(client, wukong, found)
    return found


async def taken_over(client: Client, child: C, wukong: Wukong) -> C:
    """What `find_child` has found, as a child of this Wukong."""
    if belongs_to(child, wukong):
        return child
    child.metadata.labels |= metadata_of(wukong, child.metadata.name).labels
    set_controller_reference(wukong, child)
    return await client.patch(child)


def name_taken(found: Object) -> NameTaken:
    """The failure when an object that is not a child has the name of one."""
    name = found.metadata.name
    return NameTaken(f"{found.kind} {name} exists and does not belong to this Wukong: rename the Wukong, or delete it")


async def children_of(client: CachedClient, kind: type[C], wukong: Wukong) -> list[C]:
    """All that belong to it, whatever its spec and their labels say now."""
    return await made_for(client, kind, wukong, wukong.metadata.uid)


def retained_by(wukong: Wukong) -> str:
    """The value of `MADE_FOR` of volumes that it retains, and has not left to a later one yet."""
    return f"retained/{wukong.metadata.uid}"


def restored_for(wukong: Wukong) -> str:
    """The value of `MADE_FOR` of claims with a `DISK_LABEL`, for any Wukong of the name."""
    return f"restored/{wukong.metadata.name}"


def orphaned_by(wukong: Wukong) -> str:
    """The value of `MADE_FOR` of what has lost its owner, a Wukong of the name."""
    return f"orphaned/{wukong.metadata.name}"


async def made_for(client: CachedClient, kind: type[C], wukong: Wukong, value: str) -> list[C]:
    """The objects in the namespace of the Wukong with a value of `MADE_FOR`."""
    namespace = wukong.metadata.namespace
    try:
        return list(await client.list(kind, namespace=namespace, index=(MADE_FOR, value)))
    except LookupError:  # nothing watches them
        return [child for child in await client.list(kind, namespace=namespace) if value in _made_for(child)]


def index_children(cache: Cache, *kinds: type[Object]) -> None:
    """Let the children of a Wukong be found without a search through those of all."""
    for kind in kinds:
        cache.index(kind, MADE_FOR, _made_for)


def _made_for(child: Object) -> list[str]:
    metadata = child.metadata
    values = [each.uid for each in metadata.owner_references if each.controller]
    if not values:  # CDI puts the labels of a DataVolume on its claim, too
        values += [f"orphaned/{metadata.labels[WUKONG_LABEL]}"] if WUKONG_LABEL in metadata.labels else []
        values += [f"retained/{metadata.labels.get(UID_LABEL)}"] if RETAINED_LABEL in metadata.labels else []
    if DISK_LABEL in metadata.labels:
        values.append(f"restored/{metadata.labels.get(WUKONG_LABEL)}")
    return values
