"""Who the operator is and what it may do, and roles for users of its kinds and readers of its metrics."""

from __future__ import annotations

from typing import Final

from kubewright.api.core.v1 import ServiceAccount
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject
from kubewright.api.resources import Object
from kubewright.deployment.extensions import definitions
from kubewright.deployment.operator import CLEANUP, Operator
from kubewright.deployment.request_cleanup import RequestCleanup
from kubewright.manager.roles import bindings_of, roles_of

_USER_VERBS: Final = {
    # Not "*": that has verbs, too, to which an operator gives a meaning of its own, such as `escalate`.
    "admin": ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"),
    "editor": ("create", "delete", "get", "list", "patch", "update", "watch"),
    "viewer": ("get", "list", "watch"),
}


def service_account(operator: Operator) -> ServiceAccount:
    """The identity of its pods."""
    return ServiceAccount(metadata=operator.metadata())


def roles(operator: Operator) -> list[ClusterRole | Role]:
    """Its roles, by name and namespace."""
    return [operator.labelled(role) for role in operator.bound_roles]


def bindings(operator: Operator) -> list[ClusterRoleBinding | RoleBinding]:
    """What binds each role to the ServiceAccount, called as the role is."""
    subject = Subject(kind="ServiceAccount", name=operator.name, namespace=operator.namespace)
    return [*bindings_of(roles(operator), subject)]


def cleanup_objects(operator: Operator, cleanup: RequestCleanup) -> dict[str, list[Object]]:
    """Who the clean-up is and what it may do, by file."""
    name = f"{operator.name}{CLEANUP}"
    made = [operator.labelled(role) for role in roles_of(name, cleanup.permissions)]
    subject = Subject(kind="ServiceAccount", name=name, namespace=operator.namespace)
    return {
        "service_account.yaml": [ServiceAccount(metadata=operator.metadata(CLEANUP))],
        "role.yaml": [*made],
        "role_binding.yaml": [*bindings_of(made, subject)],
    }


def metrics_reader(operator: Operator) -> ClusterRole:
    """For who reads metrics: it is bound by who runs that."""
    rule = PolicyRule(non_resource_urls=["/metrics"], verbs=["get"])
    return ClusterRole(metadata=operator.cluster_metadata(f"{operator.name}-metrics-reader"), rules=[rule])


def user_roles(operator: Operator) -> dict[str, ClusterRole]:
    """The roles admin, editor and viewer for each kind, by kind and role: they are bound by who runs the cluster."""
    found: dict[str, ClusterRole] = {}
    for definition in definitions(operator):
        names, group = definition.spec.names, definition.spec.group
        for role, verbs in _USER_VERBS.items():
            key = f"{names.singular}-{role}"
            made = ClusterRole(metadata=operator.cluster_metadata(f"{operator.name}-{key}"))
            # Two groups may have a kind of one name.
            found.setdefault(key, made).rules += [
                PolicyRule(api_groups=[group], resources=[names.plural], verbs=[*verbs]),
                PolicyRule(api_groups=[group], resources=[f"{names.plural}/status"], verbs=["get"]),
            ]
    return found
