"""Who the operator is and what it may do, and who may read its metrics."""

from __future__ import annotations

import copy

from kubewright.api.core.v1 import ServiceAccount
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject
from kubewright.deployment.operator import Operator
from kubewright.manager.roles import bindings_of


def service_account(operator: Operator) -> ServiceAccount:
    """The identity of its pods."""
    return ServiceAccount(metadata=operator.metadata())


def roles(operator: Operator) -> list[ClusterRole | Role]:
    """Its roles, by name and namespace."""
    found = sorted(operator.roles, key=lambda role: (role.metadata.namespace or "", role.metadata.name))
    return [_labelled(role, operator) for role in found]


def bindings(operator: Operator) -> list[ClusterRoleBinding | RoleBinding]:
    """What binds each role to the ServiceAccount, called as the role is."""
    subject = Subject(kind="ServiceAccount", name=operator.name, namespace=operator.namespace)
    return [*bindings_of(roles(operator), subject)]


def metrics_reader(operator: Operator) -> ClusterRole:
    """For who reads metrics: it is bound by who runs that."""
    rule = PolicyRule(non_resource_urls=["/metrics"], verbs=["get"])
    return ClusterRole(metadata=operator.cluster_metadata(f"{operator.name}-metrics-reader"), rules=[rule])


def _labelled(role: ClusterRole | Role, operator: Operator) -> ClusterRole | Role:
    labelled = copy.deepcopy(role)
    labelled.metadata.labels = {**role.metadata.labels, **operator.labels}
    return labelled
