"""Whose an object is that has the name of one that a User needs.

A User never takes over what it did not make: with a service account `default` or a namespace `ns-prod` that was there
before, those who may create Users would get its rights, or its content.
"""

from __future__ import annotations

from kubewright import Client
from kubewright.api import Object
from kubewright.patterns import NotYet

from .names import CREATOR
from .types import User


def is_of(user: User, found: Object) -> bool:
    """Whether this very User controls the object."""
    return any(owner.controller and owner.uid == user.metadata.uid for owner in found.metadata.owner_references)


def is_left_by(user: User, found: Object) -> bool:
    """Whether the object is the User's, or was: the garbage collector takes the owner of what is to be orphaned."""
    is_controlled = any(owner.controller for owner in found.metadata.owner_references)
    return is_of(user, found) if is_controlled else found.metadata.annotations.get(CREATOR) == user.metadata.name


def is_of_predecessor(user: User, found: Object) -> bool:
    """Whether an earlier User of the same name controlled the object: the garbage collector is to delete it."""
    return any(
        owner.controller
        and (owner.kind, owner.api_version, owner.name) == (user.kind, user.api_version, user.metadata.name)
        and owner.uid != user.metadata.uid
        for owner in found.metadata.owner_references
    )


async def take_over(client: Client, user: User, found: Object | None) -> None:
    """Have nothing else control an object in the workspace of the User, where its members may write everything.

    Else one of them could keep it from being repaired: what another object controls is not changed.
    """
    owners = found.metadata.owner_references if found is not None else []
    if found is not None and any(owner.controller and owner.uid != user.metadata.uid for owner in owners):
        found.metadata.owner_references = [owner for owner in owners if not owner.controller]
        await client.patch(found)


def check_usable(user: User, found: Object | None, *, may_adopt: bool = False) -> None:
    """Return when the object is this User's, does not exist, or may be adopted and has no controller.

    Raises `NotYet` for what is being deleted, and with a warning for what belongs to others.
    """
    if found is None:
        return
    called = f"the {found.kind} {found.key}"
    if is_of_predecessor(user, found):
        raise NotYet(f"{called} is that of an earlier User of this name, and not garbage-collected yet", after=5)
    if found.metadata.deletion_timestamp is not None:
        raise NotYet(f"{called} is being deleted", after=5, reason="Terminating")
    controllers = [owner for owner in found.metadata.owner_references if owner.controller]
    if is_of(user, found) or (may_adopt and not controllers):
        return
    whose = f"is controlled by the {controllers[0].kind} {controllers[0].name}" if controllers else "is no User's"
    problem = f"{called} exists already and {whose}: delete it, or choose another name for the User"
    raise NotYet(problem, after=30, reason="NameTaken", warn=True)
