"""The admission of Wukongs: defaults that a schema cannot express, and all mistakes at once."""

from __future__ import annotations

from kubewright import FieldCause, Review, defaults, validates

from .types import DEFAULT_NETWORK, NetworkType, Wukong
from .validation import check, check_change, memory_shrinks

STORAGE_CLASS = "longhorn"
NETWORK_TYPE: NetworkType = "bridge"


@defaults(Wukong)
def default_wukong(review: Review[Wukong]) -> None:
    """Disks without a storage class are on longhorn, networks without a type are bridges."""
    if _is_as_it_was(review):
        return
    for disk in review.object.spec.disks:
        disk.storage_class_name = disk.storage_class_name or STORAGE_CLASS
    for network in review.object.spec.networks:
        if network.name != DEFAULT_NETWORK:
            network.type = network.type or NETWORK_TYPE


@validates(Wukong)
def check_wukong(review: Review[Wukong]) -> list[FieldCause]:
    """Refuse what the reconciler would refuse, and changes that it cannot make."""
    if _is_as_it_was(review):
        return []
    causes = check(review.object)
    if review.old is not None:
        causes += check_change(review.old, review.object)
        if memory_shrinks(review.old, review.object):
            review.warn("less memory takes effect when the machine is restarted")
    return causes


def _is_as_it_was(review: Review[Wukong]) -> bool:
    """Whether the spec is that which is stored: whatever it says, the finalizer goes on and off."""
    return review.old is not None and review.old.spec == review.object.spec
