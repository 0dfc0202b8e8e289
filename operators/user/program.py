"""What the operator consists of."""

from __future__ import annotations

from kubewright import Manager, Permission, Request, controller_for, mapped, serve_webhooks
from kubewright.api.core.v1 import Namespace, Secret, ServiceAccount
from kubewright.api.rbac.v1 import ClusterRole, Role, RoleBinding
from kubewright.manager import SetupError

from .context import Quota
from .deployed import required_objects
from .kubeconfig import public_config
from .names import OWNER, ROLE_LABEL, ROLE_NAMES, SYSTEM_NAMESPACE, cluster_role_of
from .options import Options
from .request_controllers import add_requests
from .types import User
from .user_reconciler import UserReconciler
from .webhooks import check_user, default_user

# Its ServiceAccount and its namespace are called after it, and must not be those of a User.
NAME = "user-operator"


def setup(manager: Manager, options: Options | None = None, *, quota: Quota | None = None) -> None:
    """Users with their workspaces. A `quota` decides whether there may be one more."""
    if manager.cache.namespaces:
        raise SetupError("users have namespaces of their own: run the operator for all of them, without --namespace")
    options = options or Options()
    add_users(manager, options, quota)
    add_requests(manager, options)


def add_users(manager: Manager, options: Options, quota: Quota | None) -> None:
    """One controller, which is also woken by what a User owns, and by the ClusterRoles that roles are made of."""
    client = manager.client

    async def every_user(_: ClusterRole) -> list[Request]:
        return [user.key for user in await client.list(User)]

    reconciler = UserReconciler(
        client,
        manager.recorder(NAME),
        public_config(client.config, options.api_server_url),
        privileged_users=frozenset(options.privileged_user),
        quota=quota,
    )
    (
        controller_for(manager, User, workers=4)
        .owns(Namespace, Role, RoleBinding)
        .owns(ServiceAccount, namespace=SYSTEM_NAMESPACE)
        .owns(Secret, namespace=SYSTEM_NAMESPACE, labels={OWNER: True})
        .watches(ClusterRole, mapped(every_user), labels={ROLE_LABEL: True})
        .complete(reconciler)
    )
    manager.require(
        Permission(Namespace, "create", "patch", "delete"),
        Permission(ServiceAccount, "create", "patch", "delete", namespace=SYSTEM_NAMESPACE),
        Permission(ServiceAccount, "create", subresource="token", namespace=SYSTEM_NAMESPACE),
        Permission(Secret, "create", "patch", "delete", namespace=SYSTEM_NAMESPACE),
        Permission(Role, "create", "patch"),
        Permission(RoleBinding, "create", "patch", "delete"),
        *(Permission(Role, "escalate", name=role) for role in ROLE_NAMES),
        *(Permission(ClusterRole, "bind", name=cluster_role_of(role)) for role in ROLE_NAMES),
    )
    manager.require_objects(*required_objects())
    serve_webhooks(manager, default_user, check_user)
