"""How the objects of users are called and marked: facts of the API that other programs rely on."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from kubewright.api.rbac.v1 import RoleRef, Subject

GROUP: Final = "user.sealos.io"
API_VERSION: Final = f"{GROUP}/v1"
RBAC: Final = "rbac.authorization.k8s.io"

FINALIZER: Final = "sealos.io/user.finalizers"

SYSTEM_NAMESPACE: Final = "user-system"
"""Has the service accounts and kubeconfigs of all users, and requests."""

WORKSPACE_PREFIX: Final = "ns-"
MAX_USER_LENGTH: Final = 63 - len(WORKSPACE_PREFIX)

OWNER: Final = f"{GROUP}/owner"
"""A label and an annotation. Of a workspace and a User: who owns the workspace. Of a role binding: whom it is for."""
CREATOR: Final = f"{GROUP}/creator"
"""An annotation: the User that an object was made for."""
DISPLAY_NAME: Final = f"{GROUP}/display-name"
"""An annotation of Users: how people call them."""
KEEP_WORKSPACE: Final = f"{GROUP}/keep-workspace"
"""An annotation of Users: with "true", a deleted User leaves its workspace behind."""
STATUS: Final = f"{GROUP}/status"
"""A label of Users; "Deleted" permits to delete one."""
TYPE: Final = f"{GROUP}/type"
"""A label of Users; "Group" permits to delete one."""

ROLE_LABEL: Final = f"{GROUP}/role"
"""A label of the ClusterRoles that say what roles may do."""
CREDENTIAL: Final = f"{GROUP}/credential"
"""An annotation of the Secrets with kubeconfigs: what the token in it was issued for, and until when."""

RoleName: TypeAlias = Literal["Owner", "Manager", "Developer"]
ROLE_NAMES: Final[tuple[RoleName, ...]] = ("Owner", "Manager", "Developer")


def workspace_of(user: str) -> str:
    """The namespace of a user."""
    return f"{WORKSPACE_PREFIX}{user}"


def user_of(workspace: str) -> str | None:
    """The User whose workspace a namespace is; None for a namespace that is none."""
    user = workspace.removeprefix(WORKSPACE_PREFIX)
    return user if user and user != workspace else None


def kubeconfig_of(user: str) -> str:
    """The Secret in `user-system` with the kubeconfig of a user."""
    return f"kubeconfig-{user}"


def binding_of(user: str, role: RoleName) -> str:
    """The role binding by which a request has given a role to a user."""
    return f"{user}-{role}"


def cluster_role_of(role: RoleName) -> str:
    """The ClusterRole that says what a role may do in every workspace."""
    return f"workspace-{role.lower()}"


def role_reference(role: RoleName) -> RoleRef:
    """What a role binding in a workspace refers to."""
    return RoleRef(api_group=RBAC, kind="ClusterRole", name=cluster_role_of(role))


def role_of(reference: RoleRef) -> RoleName | None:
    """The role that a role binding in a workspace gives; None for one that is no role of workspaces.

    The Role of the workspace that has its name gives the same rights: bindings of the time before the ClusterRoles
    refer to that.
    """
    for role in ROLE_NAMES:
        if reference in (role_reference(role), RoleRef(api_group=RBAC, kind="Role", name=role)):
            return role
    return None


def service_account_subject(user: str) -> Subject:
    """The identity that the kubeconfig of a user has."""
    return Subject(kind="ServiceAccount", name=user, namespace=SYSTEM_NAMESPACE)


def subjects_of(user: str) -> list[Subject]:
    """Both identities of a user: the name that an identity provider knows, and the service account."""
    return [Subject(kind="User", name=user, api_group=RBAC), service_account_subject(user)]
