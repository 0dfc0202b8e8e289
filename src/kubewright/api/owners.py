"""Owner references: an object that is owned goes when its owner goes.

    set_controller_reference(widget, config_map)

The garbage collector looks for an owner in the namespace of what it owns, and deletes the child of an owner that it
does not find there. References that it would misunderstand so are refused here. The lower-level equivalent is
`child.metadata.owner_references.append(owner.as_owner())`.
"""

from __future__ import annotations

from kubewright.api.meta import OwnerReference
from kubewright.api.resources import Object, resource_info


def set_controller_reference(owner: Object, child: Object) -> None:
    """Make `owner` the controller of `child`: it goes with it, and changes of it enqueue the owner (`owns`).

    Raises ValueError when another object controls the child already, and for owners in another namespace.
    """
    reference = owner.as_owner()
    check_controller(owner, child)
    _set(reference, owner, child)


def check_controller(owner: Object, child: Object) -> None:
    """Raise ValueError when another object than `owner` controls the child."""
    for other in child.metadata.owner_references:
        if other.controller and other.uid != owner.metadata.uid:
            raise ValueError(
                f"{child.kind} {child.key} is controlled by {other.kind} {other.name} already, and an object has one "
                f"controller: choose another name for it, or use set_owner_reference"
            )


def set_owner_reference(owner: Object, child: Object) -> None:
    """Make `owner` one of the owners of `child`: it goes when all of them are gone.

    Raises ValueError for owners in another namespace.
    """
    _set(owner.as_owner(controller=False), owner, child)


def _set(reference: OwnerReference, owner: Object, child: Object) -> None:
    _check_scope(owner, child)
    others = [other for other in child.metadata.owner_references if other.uid != reference.uid]
    child.metadata.owner_references = [*others, reference]


def _check_scope(owner: Object, child: Object) -> None:
    namespace = owner.metadata.namespace
    if not namespace:
        return
    what = f"{child.kind} {child.key} cannot be owned by {owner.kind} {owner.key}"
    instead = "delete it in the cleanup of the owner instead, behind a finalizer"
    if resource_info(type(child)).namespaced is False:
        raise ValueError(
            f"{what}: the owner has a namespace and the child has none, so that the garbage collector would not find "
            f"the owner and would delete the child; {instead}"
        )
    if child.metadata.namespace not in ("", namespace):
        raise ValueError(
            f"{what}: they are in different namespaces, so that the garbage collector would not find the owner and "
            f'would delete the child; create the child in "{namespace}", or {instead}'
        )
