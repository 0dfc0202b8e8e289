"""Which objects an operator consists of: in kubebuilder's directories, and in the order in which they are applied."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, TypeAlias

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.core.v1 import Namespace
from kubewright.api.resources import Object, resource_info
from kubewright.deployment import access, extensions, workload
from kubewright.deployment.operator import Operator
from kubewright.manifest.errors import ManifestError
from kubewright.webhook import Versions

Layout: TypeAlias = dict[str, dict[str, list[Object]]]
"""The objects by directory and file."""

# As kustomize orders them: what others need comes first, and the API server calls webhooks last. All other kinds are
# in between.
_FIRST: Final = (
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
)
_LAST: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def layout_of(operator: Operator) -> Layout:
    """The objects that are deployed, by directory and file. Directories without any are left out."""
    directories: Layout = {
        "crd": {f"bases/{_file_name(each)}.yaml": [each] for each in extensions.definitions(operator)},
        "rbac": {
            "service_account.yaml": [access.service_account(operator)],
            "role.yaml": [*access.roles(operator)],
            "role_binding.yaml": [*access.bindings(operator)],
            "metrics_reader_role.yaml": [access.metrics_reader(operator)],
            **{f"{key.replace('-', '_')}_role.yaml": [role] for key, role in access.user_roles(operator).items()},
        },
        "manager": {
            "manager.yaml": [workload.namespace(operator), workload.deployment(operator)],
            "metrics_service.yaml": [workload.metrics_service(operator)],
            "pod_disruption_budget.yaml": [workload.disruption_budget(operator)],
        },
        "webhook": {
            "service.yaml": [workload.webhook_service(operator)] if operator.webhooks else [],
            "manifests.yaml": [*extensions.configurations(operator)],
        },
        "network-policy": {"network_policy.yaml": [workload.network_policy(operator)]},
        "cleanup": _cleanup(operator),
        "objects": _further(operator),
    }
    filled = {name: {file: found for file, found in files.items() if found} for name, files in directories.items()}
    return {name: files for name, files in filled.items() if files}


def objects_of(operator: Operator) -> list[Object]:
    """The objects that are deployed, in the order in which they can be applied. Equal operators have equal objects."""
    found = [each for files in layout_of(operator).values() for objects in files.values() for each in objects]
    found.sort(key=position)
    for one, other in pairwise(found):
        if position(one) == position(other):
            fix = "rename one of them"
            if isinstance(one, Namespace):
                fix = f"it is deployed there, and requires it, too: deploy it to another one than {operator.namespace}"
            raise ManifestError(f"the operator {operator.name} has the {one.kind} {one.key} twice: {fix}")
    return found


def _cleanup(operator: Operator) -> dict[str, list[Object]]:
    if operator.cleanup is None:
        return {}
    hubs = [each.hub for each in operator.webhooks if isinstance(each, Versions)]
    cleanup = operator.cleanup.of(operator.name, [*hubs, *operator.kinds])
    return {
        **access.cleanup_objects(operator, cleanup),
        "cron_job.yaml": [workload.cleanup_job(operator, cleanup)],
    }


def required_objects(operator: Operator) -> list[Object]:
    """What else the program needs in the cluster, as it is deployed: in its namespace, unless it names another."""
    placed = []
    for obj in map(operator.labelled, operator.objects):
        if not obj.metadata.name:
            raise ManifestError(f"the operator {operator.name} has a {obj.kind} without a name: give it one")
        if resource_info(type(obj)).namespaced and not obj.metadata.namespace:
            obj.metadata.namespace = operator.namespace
        placed.append(obj)
    return sorted(placed, key=position)


def _further(operator: Operator) -> dict[str, list[Object]]:
    files: dict[str, list[Object]] = {}
    for obj in required_objects(operator):
        files.setdefault(f"{obj.kind.lower()}_{obj.metadata.name}.yaml", []).append(obj)
    return files


def position(obj: Object) -> tuple[int, str, str, str, str]:
    """Where an object stands among those that are applied."""
    kinds = (*_FIRST, "", *_LAST)
    index = kinds.index(obj.kind if obj.kind in kinds else "")
    return index, obj.api_version, obj.kind, obj.metadata.namespace, obj.metadata.name


def _file_name(definition: CustomResourceDefinition) -> str:
    """As controller-gen names it."""
    return f"{definition.spec.group}_{definition.spec.names.plural}"
