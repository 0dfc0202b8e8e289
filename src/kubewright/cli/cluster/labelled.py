"""Finding what there is of an operator in a cluster, by the labels that all of its objects have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from kubewright.api.admissionregistration.v1 import (
    MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apps.v1 import Deployment
from kubewright.api.batch.v1 import CronJob
from kubewright.api.core.v1 import ConfigMap, Namespace, Service, ServiceAccount
from kubewright.api.networking.v1 import NetworkPolicy
from kubewright.api.policy.v1 import PodDisruptionBudget
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from kubewright.api.resources import Object
from kubewright.api.scheduling.v1 import PriorityClass
from kubewright.client import Client
from kubewright.client.errors import NotFound
from kubewright.deployment import Operator

_KINDS: Final[tuple[type[Object], ...]] = (
    Namespace,
    CustomResourceDefinition,
    ServiceAccount,
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
    ConfigMap,
    Service,
    PriorityClass,
    Deployment,
    CronJob,
    PodDisruptionBudget,
    NetworkPolicy,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)


def kinds_of(objects: Iterable[Object]) -> list[type[Object]]:
    """The kinds that operators usually consist of, and those of the objects."""
    return [*dict.fromkeys((*_KINDS, *map(type, objects)))]


async def labelled(client: Client, operator: Operator, kinds: Iterable[type[Object]]) -> AsyncIterator[Object]:
    """The objects of these kinds that have the labels of an operator. Older servers do not serve all kinds."""
    for kind in kinds:
        try:
            found = await client.list(kind, labels=operator.labels)
        except NotFound:
            continue
        for obj in found:
            yield obj
