"""Owner references: an object that is owned goes when its owner goes.

    set_controller_reference(widget, config_map)

The garbage collector looks for an owner in the namespace of what it owns, and deletes the child of an owner that it
does not find there. References that it would misunderstand so are refused: here, and by a client that is to write
them. The lower-level equivalent is `child.metadata.owner_references.append(owner.as_owner())`.
"""

from __future__ import annotations

from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import OWNER_NAMESPACE, LocatedOwnerReference, OwnerReference
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


def check_owners(child: Object, namespace: str) -> None:
    """Raise ValueError for an owner in another namespace than the one that `child` is written to.

    That of references which were not made by `as_owner`, but decoded or written out, is not known.
    """
    references: object = child.metadata.owner_references
    if not isinstance(references, list | tuple):
        raise TypeError(f"{child.kind} {child.key}: owner_references is a list: write [owner.as_owner()]")
    for reference in references:
        if isinstance(reference, LocatedOwnerReference):
            where = reference.__dict__.get(OWNER_NAMESPACE)
            if where and where != namespace:
                key = ObjectKey(namespace, child.metadata.name or child.metadata.generate_name)
                raise _unfindable(child.kind, key, reference.kind, ObjectKey(where, reference.name))


def _set(reference: OwnerReference, owner: Object, child: Object) -> None:
    _check_scope(owner, child)
    others = [other for other in child.metadata.owner_references if other.uid != reference.uid]
    child.metadata.owner_references = [*others, reference]


def _check_scope(owner: Object, child: Object) -> None:
    namespace, key = owner.metadata.namespace, child.key
    if resource_info(type(child)).namespaced is False:
        key = ObjectKey("", key.name)
    elif not key.namespace:
        return  # not known yet: it is checked again when the child is written
    if namespace and key.namespace != namespace:
        raise _unfindable(child.kind, key, owner.kind, owner.key)


def _unfindable(kind: str, key: ObjectKey, owner_kind: str, owner: ObjectKey) -> ValueError:
    """The error for an owner that the garbage collector would not find."""
    instead = "delete it in the cleanup of the owner instead, behind a finalizer"
    if key.namespace:
        reason, fix = "they are in different namespaces", f'create the child in "{owner.namespace}", or {instead}'
    else:
        reason, fix = "the owner has a namespace and the child has none", instead
    return ValueError(
        f"{kind} {key} cannot be owned by {owner_kind} {owner}: {reason}, so that the garbage collector would not find "
        f"the owner and would delete the child; {fix}"
    )
