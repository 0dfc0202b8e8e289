"""Carries out Operationrequests: gives, changes and takes the roles of users in workspaces."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from functools import cached_property
from weakref import WeakValueDictionary

from kubewright.api import metadata_only
from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.rbac.v1 import RoleBinding
from kubewright.patterns import Permanent

from .guarded_reconciler import GuardedReconciler
from .membership import Members, hand_over, take_back, take_role
from .names import ROLE_NAMES, SYSTEM_NAMESPACE, RoleName, role_of, user_of
from .ownership import is_of
from .request_types import Operationrequest, OperationrequestSpec
from .types import User


class OperationReconciler(GuardedReconciler[Operationrequest]):
    """Carries out Operationrequests, for one user of a workspace at a time, the oldest first.

    Guarantees, whatever is interrupted:
    - A user has at most one role in a workspace when a Grant or Update is completed, and is never without one on the
      way from one to another.
    - A workspace has an Owner, and its own User stays one.
    - Roles are given in namespaces that are the workspace of a User, and to Users, not to names without one, nor to
      those who have a name, or a workspace, only since the request does not wait for them any more.
    """

    @cached_property
    def _changes(self) -> WeakValueDictionary[str, asyncio.Lock]:
        return WeakValueDictionary()

    def change_of(self, workspace: str) -> asyncio.Lock:
        """Held from the checks of a request to its last write: what was checked before another change may be over.

        Of two Owners who lose their role at a time one may be the last, and a workspace may be that of another User.
        """
        return self._changes.setdefault(workspace, asyncio.Lock())

    def serialize_by(self, request: Operationrequest) -> Hashable:
        """One user of a workspace at a time."""
        return request.spec.namespace, request.spec.user

    def describe(self, request: Operationrequest) -> Mapping[str, str]:
        """What is requested, for audit records."""
        spec = request.spec
        return {"action": spec.action, "user": spec.user, "role": spec.role or "", "namespace": spec.namespace}

    async def carry_out(self, request: Operationrequest) -> str:
        """Give, change or take the role."""
        spec = request.spec
        async with self.change_of(spec.namespace):
            match spec.action:
                case "Grant" | "Update":
                    owner = await self.check_workspace(request)
                    user = await self.member(request)
                    given = await self.give(user, spec)
                    await self.check_stays(user, owner, spec)
                    return given
                case "Deprive":
                    await self.check_workspace(request)
                    return await self.deprive(spec)
        raise Permanent(f'there is no action "{spec.action}": expected Grant, Update or Deprive')

    async def give(self, user: User, spec: OperationrequestSpec) -> str:
        """Have the user have this role and no other one; the new one comes before the old ones go."""
        role = checked_role(spec)
        if spec.user == user_of(spec.namespace):
            if role != "Owner":
                raise Permanent(own_workspace(spec))
            await hand_over(self.client, spec.namespace, spec.user)
            return own_workspace(spec)
        members = await Members.of(self.client, spec.namespace)
        if role != "Owner":
            check_not_last_owner(members, spec)
        is_new = await members.give(self.client, user, role)
        former = members.of_user_besides(spec.user, role)
        for binding in former:
            await take_role(self.client, binding)
        if role == "Owner":
            await hand_over(self.client, spec.namespace, spec.user)
        else:
            await take_back(self.client, spec.namespace, spec.user)
        if former:
            return f"{spec.user} is {role} of {spec.namespace} now, and was {named(former)}"
        if not is_new:
            return f"{spec.user} is {role} of {spec.namespace} already"
        had_none = ", and had no role before" if spec.action == "Update" else ""
        return f"{spec.user} is {role} of {spec.namespace} now{had_none}"

    async def check_stays(self, user: User, owner: User, spec: OperationrequestSpec) -> None:
        """Return when the User is there still, and not being deleted, and the workspace is that of the same `owner`.

        If its deletion has begun meanwhile, it may have taken the roles of the User before this one was given. And what
        is written late may be written into the workspace of somebody else.
        """
        there = await self.client.find(metadata_only(User), spec.user, consistency="live")
        stays = there is not None and there.metadata.uid == user.metadata.uid and not there.metadata.deletion_timestamp
        found = await self.find(User, owner.metadata.name)
        is_its = found is not None and found.metadata.uid == owner.metadata.uid
        if stays and is_its:
            return
        for binding in (await Members.of(self.client, spec.namespace)).of_user(spec.user):
            await take_role(self.client, binding)
        await take_back(self.client, spec.namespace, spec.user)
        raise Permanent(f"the User {owner.metadata.name if stays else spec.user} was deleted meanwhile")

    async def deprive(self, spec: OperationrequestSpec) -> str:
        """Take the role, or any role when none is given; that the user does not have it is all right."""
        role = checked_role(spec) if spec.role is not None else None
        if spec.user == user_of(spec.namespace) and role in (None, "Owner"):
            raise Permanent(own_workspace(spec))
        members = await Members.of(self.client, spec.namespace)
        taken = [each for each in members.of_user(spec.user) if role in (None, role_of(each.role_ref))]
        if any(role_of(binding.role_ref) == "Owner" for binding in taken):
            check_not_last_owner(members, spec)
        for binding in taken:
            await take_role(self.client, binding)
        if role in (None, "Owner"):
            await take_back(self.client, spec.namespace, spec.user)
        if taken:
            return f"{spec.user} is not {named(taken)} of {spec.namespace} any more"
        return f"{spec.user} has no role{f' {role}' if role else ''} in {spec.namespace}"

    async def check_workspace(self, request: Operationrequest) -> User:
        """The User whose workspace the namespace is, and who is not being deleted."""
        workspace = request.spec.namespace
        name = user_of(workspace)
        if name is None:
            raise Permanent(f"{workspace} is no workspace: expected a namespace that begins with ns-")
        owner = await self.find(User, name)
        if owner is None:
            raise self.missing(request, f"there is no User {name}, whose workspace {workspace} would be", "NotFound")
        self.check_meant(request, owner, by=self.grace)
        namespace = await self.find(Namespace, workspace)
        if namespace is None:
            raise self.missing(request, f"there is no workspace {workspace}", "NotFound")
        if not is_of(owner, namespace):
            raise Permanent(f"the namespace {workspace} is not the workspace of the User {name}: it was made otherwise")
        if owner.metadata.deletion_timestamp is not None or namespace.metadata.deletion_timestamp is not None:
            raise Permanent(f"the workspace {workspace} is being deleted")
        return owner

    async def member(self, request: Operationrequest) -> User:
        """The User who is to have the role."""
        name = request.spec.user
        user = await self.find(User, name)
        if user is None:
            raise self.missing(request, f"there is no User {name}", "NotFound")
        self.check_meant(request, user, by=self.grace)
        deletion = await self.gate.deletion_of(self.client, user)
        if deletion is not None or user.metadata.deletion_timestamp is not None:
            by = f" by the Deleterequest {deletion.metadata.name}" if deletion is not None else ""
            raise Permanent(f"the User {name} is being deleted{by}")
        account = await self.client.find(ServiceAccount, name, namespace=SYSTEM_NAMESPACE)
        if account is not None and not is_of(user, account):
            raise Permanent(f"the ServiceAccount {account.key} is not that of the User {name}, and is to get no rights")
        return user


def checked_role(spec: OperationrequestSpec) -> RoleName:
    """The role; `Permanent` for one that the schema does not admit."""
    if spec.role not in ROLE_NAMES:
        found = f'there is no role "{spec.role}"' if spec.role is not None else f"{spec.action} needs a role"
        raise Permanent(f"{found}: expected {', '.join(ROLE_NAMES)}")
    return spec.role


def check_not_last_owner(members: Members, spec: OperationrequestSpec) -> None:
    """Return when the workspace has another Owner, or the user is none."""
    if members.owners == {spec.user}:
        raise Permanent(f"{spec.user} is the last Owner of {spec.namespace}: give that role to another user first")


def named(bindings: list[RoleBinding]) -> str:
    """The roles that bindings give."""
    return ", ".join(sorted(role_of(binding.role_ref) or binding.metadata.name for binding in bindings))


def own_workspace(spec: OperationrequestSpec) -> str:
    """Why the role of a User in its own workspace stays."""
    return f"{spec.namespace} is the workspace of {spec.user}, who stays its Owner"
