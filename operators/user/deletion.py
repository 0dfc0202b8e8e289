"""Carries out Deleterequests: deletes a User, the rights it has in the workspaces of others, and its own workspace."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from kubewright.api import metadata_only
from kubewright.api.core.v1 import Namespace, Secret
from kubewright.patterns import NotYet, Permanent

from .guarded_reconciler import WAIT, GuardedReconciler
from .membership import take_roles_elsewhere
from .names import API_VERSION, CREATOR, KEEP_WORKSPACE, OWNER, STATUS, SYSTEM_NAMESPACE, TYPE, workspace_of
from .ownership import is_of
from .request_types import PROTECTED_USER, Deleterequest, Operationrequest, is_open
from .types import User


class DeletionReconciler(GuardedReconciler[Deleterequest]):
    """Carries out Deleterequests, for one User at a time.

    Guarantees, whatever is interrupted:
    - No right of the User outlives it, in any workspace: one of that name who comes later has none of them.
    - It is completed when the User is gone, and the workspace unless that is kept; until then it says what is left.
    - A namespace that is not the User's own is never deleted, nor a User who was created after the request.
    """

    def serialize_by(self, request: Deleterequest) -> Hashable:
        """One for a User at a time."""
        return request.spec.user

    def describe(self, request: Deleterequest) -> Mapping[str, str]:
        """What is requested, for audit records."""
        dependents = "true" if request.spec.delete_dependents else "false"
        return {"action": "Delete", "user": request.spec.user, "deleteDependents": dependents}

    async def carry_out(self, request: Deleterequest) -> str:
        """Take what the User has elsewhere, then delete it with what it owns: the request remembers what is left."""
        name = request.spec.user
        if name == PROTECTED_USER:
            raise Permanent(f"the User {PROTECTED_USER} cannot be deleted")
        user = await self.find(User, name)
        if user is not None:
            self.check_meant(request, user)
        if user is None or user.metadata.deletion_timestamp is None:
            if user is not None and not self.gate.admits(user):
                unmarked = f"it has neither the label {STATUS}=Deleted nor {TYPE}=Group"
                raise self.missing(request, f"the User {name} is not marked as deleted: {unmarked}", "UserNotDeleted")
            await self.end_requests(name)
            await take_roles_elsewhere(self.client, name)
            await self.delete_secrets(name, user)
        if user is not None:
            await (self.delete_all(user) if request.spec.delete_dependents else self.delete_alone(user))
        is_kept = await self.check_gone(name)
        return f"the User {name} is gone" + (f", and {workspace_of(name)} was kept" if is_kept else "")

    async def end_requests(self, name: str) -> None:
        """Wait until nobody gives the User a role any more: its open Operationrequests fail now, of themselves."""
        found = await self.client.list(Operationrequest, namespace=SYSTEM_NAMESPACE, fields={"spec.user": name})
        are_open = sorted(each.metadata.name for each in found if is_open(each))
        if are_open:
            raise NotYet(f"Operationrequests of {name} are open: {', '.join(are_open)}", after=WAIT)

    async def delete_secrets(self, name: str, user: User | None) -> None:
        """Delete the tokens of the User, but for its kubeconfig, which goes with it. What is in them is not read."""
        secrets = self.client.list(metadata_only(Secret), namespace=SYSTEM_NAMESPACE, labels={OWNER: name})
        for secret in await secrets:
            if user is None or not is_of(user, secret):
                await self.client.delete(secret, uid=secret.metadata.uid, missing_ok=True)

    async def delete_all(self, user: User) -> None:
        """Delete the User, which stays until its workspace and everything else that it owns is gone, and the workspace.

        The other way round, what is deleted would be made again as long as the User is not being deleted.
        """
        if user.metadata.deletion_timestamp is None:
            if user.metadata.annotations.pop(KEEP_WORKSPACE, None) is not None:
                # Of an earlier request that came to nothing: the finalizer would leave the workspace behind.
                await self.client.patch(user)
            await self.client.delete(user, uid=user.metadata.uid, propagation="Foreground", missing_ok=True)
        workspace = await self.client.find(Namespace, workspace_of(user.metadata.name))
        if workspace is not None and is_of(user, workspace) and workspace.metadata.deletion_timestamp is None:
            await self.client.delete(workspace, uid=workspace.metadata.uid, missing_ok=True)

    async def delete_alone(self, user: User) -> None:
        """Have the finalizer of the User leave the workspace behind.

        Not in the foreground: the garbage collector would not wait for that.
        """
        if user.metadata.deletion_timestamp is None:
            user.metadata.annotations[KEEP_WORKSPACE] = "true"
            await self.client.patch(user)
            await self.client.delete(user, uid=user.metadata.uid, propagation="Background", missing_ok=True)

    async def check_gone(self, name: str) -> bool:
        """Return when the User is gone, and its workspace: True when that was kept."""
        user = await self.find(User, name)
        workspace = await self.find(Namespace, workspace_of(name))
        left = [] if user is None else [f"the User {name}"]
        if workspace is not None and (workspace.metadata.deletion_timestamp is not None or _is_of(name, workspace)):
            reasons = [
                condition.message
                for condition in workspace.status.conditions
                if condition.status == "True" and condition.message
            ]
            left.append(f"the namespace {workspace.metadata.name}" + (f" ({'; '.join(reasons)})" if reasons else ""))
        if left:
            raise NotYet(f"waiting until these are gone: {', '.join(left)}", after=WAIT)
        return workspace is not None and workspace.metadata.annotations.get(CREATOR) == name


def _is_of(name: str, workspace: Namespace) -> bool:
    """Whether the namespace belongs to a User of that name, who may be gone already."""
    return any(
        (owner.api_version, owner.kind, owner.name) == (API_VERSION, "User", name)
        for owner in workspace.metadata.owner_references
    )
