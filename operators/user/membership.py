"""Who has which role in a workspace: role bindings.

A role that was given by a request is the binding `USER-ROLE`, which has the label `user.sealos.io/owner=USER` and goes
with the User. That of the User whose workspace it is, is made by the User's own pipeline, and nothing here touches it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from kubewright import CachedClient, Client, NotFound, ObjectMeta, OwnerReference
from kubewright.api.rbac.v1 import RoleBinding
from kubewright.client import MergePatch

from .names import OWNER, ROLE_NAMES, RoleName, binding_of, role_of, role_reference, subjects_of, user_of, workspace_of
from .types import User


class Members:
    """The role bindings of a workspace, as the server has them.

    A cache may be behind: a role that was given a moment ago would not be taken, and the request completed.
    """

    def __init__(self, workspace: str, bindings: Iterable[RoleBinding]) -> None:
        self._workspace = workspace
        self._bindings = list(bindings)

    @classmethod
    async def of(cls, client: CachedClient, workspace: str) -> Members:
        """Those of now."""
        return cls(workspace, await client.list(RoleBinding, namespace=workspace, consistency="live"))

    def of_user(self, user: str) -> list[RoleBinding]:
        """By which requests have given roles to a user. One that has lost its label still gives rights."""
        names = [binding_of(user, role) for role in ROLE_NAMES]
        return [
            each
            for each in self._bindings
            if each.metadata.name in names
            or (each.metadata.labels.get(OWNER) == user and role_of(each.role_ref) is not None)
        ]

    def of_user_besides(self, user: str, role: RoleName) -> list[RoleBinding]:
        """Those that go when a user is given the role: not the one whose name the new binding has by then."""
        name = binding_of(user, role)
        return [each for each in self.of_user(user) if each.metadata.name != name and role_of(each.role_ref) != role]

    @property
    def owners(self) -> set[str]:
        """The users with the role Owner, the one whose workspace it is included."""
        own, owners = user_of(self._workspace), set[str]()
        for binding in self._bindings:
            owner = own if binding.metadata.name == own else binding.metadata.labels.get(OWNER)
            if owner and role_of(binding.role_ref) == "Owner":
                owners.add(owner)
        return owners

    async def give(self, client: CachedClient, user: User, role: RoleName) -> bool:
        """Have the binding as it should be. False when it was so already, and nothing was written."""
        wanted = _binding(user, self._workspace, role)
        found = next((each for each in self._bindings if each.metadata.name == wanted.metadata.name), None)
        is_going = found is not None and found.metadata.deletion_timestamp is not None
        if found is not None and (is_going or found.role_ref != wanted.role_ref):
            # What a binding refers to cannot be changed.
            await take_role(client, found)
            found = None
        if found is None:
            await client.create(wanted)
            return True
        if _is_as(found, wanted):
            return False
        found.subjects = wanted.subjects
        found.metadata.labels[OWNER] = user.metadata.name
        # Those of an earlier User of this name would have it garbage-collected.
        found.metadata.owner_references = wanted.metadata.owner_references
        await client.patch(found)
        return True


async def take_role(client: Client, binding: RoleBinding) -> None:
    """Delete just this binding, not one that has taken its name since.

    Finalizers do not hold it: it would go on giving the role, and who writes role bindings can put them on, too.
    """
    await client.delete(binding, uid=binding.metadata.uid, missing_ok=True)
    if binding.metadata.finalizers:
        # Nothing else, not even a revision: whoever changes more of a binding must be permitted to bind its role.
        released = MergePatch({"metadata": {"uid": binding.metadata.uid, "finalizers": None}})
        with suppress(NotFound):
            await client.patch(RoleBinding, binding.key, released)


async def hand_over(client: CachedClient, workspace: str, owner: str) -> None:
    """Name the owner of a workspace in the annotation of its User, from which the namespace gets its label."""
    found = await client.find(User, user_of(workspace) or "")
    if found is not None and found.metadata.annotations.get(OWNER) != owner:
        found.metadata.annotations[OWNER] = owner
        await client.patch(found)


async def take_back(client: CachedClient, workspace: str, owner: str) -> None:
    """Name the User of the workspace as its owner, if it is `owner` so far."""
    found = await client.find(User, user_of(workspace) or "")
    if found is not None and found.metadata.annotations.get(OWNER) == owner:
        await hand_over(client, workspace, found.metadata.name)


async def take_roles_elsewhere(client: CachedClient, user: str) -> None:
    """Take the roles that a user has in the workspaces of others, and name it as the owner of none of them."""
    for other in await client.list(User):
        if other.metadata.name != user and other.metadata.annotations.get(OWNER) == user:
            await take_back(client, workspace_of(other.metadata.name), user)  # unless it has a new owner by now
    found = list(await client.list(RoleBinding, labels={OWNER: user}, consistency="live"))
    for role in ROLE_NAMES:  # those of the seed have no label, and are no object's that would take them along
        found += await client.list(RoleBinding, fields={"metadata.name": binding_of(user, role)})
    for binding in {each.metadata.uid: each for each in found}.values():
        workspace = binding.metadata.namespace
        is_elsewhere = user_of(workspace) is not None and workspace != workspace_of(user)
        if is_elsewhere and role_of(binding.role_ref) is not None:
            await take_role(client, binding)


def _binding(user: User, workspace: str, role: RoleName) -> RoleBinding:
    name = user.metadata.name
    # It goes with the User and does not block its deletion, and a later User of that name has no part in it.
    owner = user.as_owner(controller=False)
    metadata = ObjectMeta(
        name=binding_of(name, role), namespace=workspace, labels={OWNER: name}, owner_references=[owner]
    )
    return RoleBinding(metadata=metadata, role_ref=role_reference(role), subjects=subjects_of(name))


def _is_as(found: RoleBinding, wanted: RoleBinding) -> bool:
    def uids(owners: list[OwnerReference]) -> list[str]:
        return [owner.uid for owner in owners]

    return (
        found.subjects == wanted.subjects
        and found.metadata.labels.get(OWNER) == wanted.metadata.labels[OWNER]
        and uids(found.metadata.owner_references) == uids(wanted.metadata.owner_references)
    )
