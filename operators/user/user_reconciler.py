"""Makes what a User has, and takes it away."""

from __future__ import annotations

from kubewright import CachedClient, Config, Recorder, Result, now
from kubewright.api import Object
from kubewright.api.core.v1 import Namespace, Secret, ServiceAccount
from kubewright.api.rbac.v1 import Role, RoleBinding
from kubewright.patterns import NotYet, ObjectReconciler, get_condition, set_condition
from kubewright.patterns.conditions import is_lost_race, message_of, reason_of

from .context import Quota, UserContext
from .membership import take_role, take_roles_elsewhere
from .names import FINALIZER, KEEP_WORKSPACE, ROLE_NAMES, SYSTEM_NAMESPACE, kubeconfig_of, workspace_of
from .ownership import is_left_by, is_of
from .steps import pipeline
from .types import User


class UserReconciler(ObjectReconciler[User]):
    """Reconciles Users."""

    finalizer = FINALIZER

    def __init__(
        self,
        client: CachedClient,
        events: Recorder,
        config: Config,
        *,
        privileged_users: frozenset[str] = frozenset(),
        quota: Quota | None = None,
    ) -> None:
        super().__init__(client)
        self.events = events
        self.config = config
        self.privileged_users = privileged_users
        self.quota = quota

    async def converge(self, user: User) -> Result | None:
        """Run the steps, and say by the phase whether all of them succeeded."""
        context = UserContext(user, self.client, self.events)
        context.config, context.quota = self.config, self.quota
        context.is_privileged = context.name in self.privileged_users
        try:
            await pipeline.run(context)
        finally:
            # Not `is_true`: a run that lost a race has not set it for this generation, and says nothing about it.
            ready = get_condition(user, "Ready")
            user.status.phase = "Active" if ready is not None and ready.status == "True" else "Pending"
        if context.next_change is None:
            return None
        return Result(requeue_after=max(1.0, (context.next_change - now()).total_seconds()))

    async def cleanup(self, user: User) -> None:
        """Take away what the User has, and report what that waits for, or what it fails by."""
        try:
            await self.take_away(user)
        except Exception as problem:
            if not is_lost_race(problem):
                self.report_deletion(user, problem)
            raise

    def report_deletion(self, user: User, problem: Exception) -> None:
        """Have a User that is being deleted not be Active: what it had is going, or should be."""
        user.status.phase = "Pending"
        reason, message = reason_of(problem), message_of(problem)
        if set_condition(user, "Ready", False, reason, message) and not isinstance(problem, NotYet):
            self.events.warning(user, reason, f"the deletion failed: {message}")

    async def take_away(self, user: User) -> None:
        """Revoke kubeconfig, identity and roles elsewhere, delete the workspace or leave it behind, and wait for that.

        Everything else goes by its owner references. These do not wait for that: who deletes a User and has its
        dependents orphaned would leave them to a later User of that name, or keep that one from having its own.
        """
        name = user.metadata.name
        for child in (
            await self.client.find(Secret, kubeconfig_of(name), namespace=SYSTEM_NAMESPACE),
            await self.client.find(ServiceAccount, name, namespace=SYSTEM_NAMESPACE),
        ):
            if child is not None and is_left_by(user, child):
                await self.client.delete(child, uid=child.metadata.uid, missing_ok=True)
        workspace = await self.client.find(Namespace, workspace_of(name))
        if workspace is None or workspace.metadata.deletion_timestamp is None:
            await take_roles_elsewhere(self.client, name)
        if workspace is None:
            return
        if not is_of(user, workspace) or user.metadata.annotations.get(KEEP_WORKSPACE) == "true":
            await self.leave(user, workspace)
            return
        if workspace.metadata.deletion_timestamp is None:
            await self.client.delete(workspace, uid=workspace.metadata.uid, missing_ok=True)
        raise NotYet(f"the workspace {workspace.metadata.name} is being deleted", after=5, reason="Terminating")

    async def leave(self, user: User, workspace: Namespace) -> None:
        """Keep the workspace and its roles from being garbage-collected, and take the rights of the User there.

        The workspace comes last: as long as it is the User's, an interrupted cleanup is done again.
        """
        binding = await self.client.find(RoleBinding, user.metadata.name, namespace=workspace.metadata.name)
        if binding is not None and is_left_by(user, binding):
            await take_role(self.client, binding)
        for name in ROLE_NAMES:
            role = await self.client.find(Role, name, namespace=workspace.metadata.name)
            if role is not None:
                await self.orphan(user, role)
        await self.orphan(user, workspace)

    async def orphan(self, user: User, child: Object) -> None:
        """Take the User from the owners of the object."""
        owners = child.metadata.owner_references
        child.metadata.owner_references = [owner for owner in owners if owner.uid != user.metadata.uid]
        await self.client.patch(child)
