"""The resources of containers: names, amounts, and requests within limits."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping
from kubewright.controlplane.embedded.apimachinery.status import forbidden_field, invalid_value, required
from kubewright.controlplane.embedded.builtins.names import qualified_name
from kubewright.controlplane.embedded.builtins.values import Errors, matching, not_negative_quantity, quantity

_OF_CONTAINERS = frozenset(("cpu", "memory", "ephemeral-storage"))
_COUNTED = frozenset(
    (
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_OF_QUOTAS = frozenset(
    (
        "cpu",
        "memory",
        "ephemeral-storage",
        "storage",
        *_COUNTED,
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in ("cpu", "memory", "ephemeral-storage")),
        "requests.storage",
    )
)


def _is_standard(name: str) -> bool:
    return name in _OF_QUOTAS or name.startswith(("hugepages-", "requests.hugepages-"))


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    return not _is_native(name) and not name.startswith("requests.") and not qualified_name(f"requests.{name}")


def resource_name(name: str, path: str) -> Errors:
    """The name of any resource: qualified, or one that Kubernetes knows."""
    errors = matching(path, name, qualified_name)
    if not errors and "/" not in name and not _is_standard(name):
        errors.append(invalid_value(path, name, "must be a standard resource type or fully qualified"))
    return errors


def quota_resource_name(name: str, path: str) -> Errors:
    """The name of what a quota limits."""
    errors = matching(path, name, qualified_name)
    if "/" not in name and not _is_standard(name) and not name.startswith("count/"):
        errors.append(invalid_value(path, name, "must be a standard resource for quota"))
    return errors


def resource_amount(name: str, amount: object, path: str) -> Errors:
    """An amount of 0 or more, whole for what is counted."""
    value = amount if isinstance(amount, (str, int)) else None
    errors = not_negative_quantity(path, value)
    if (name in _COUNTED or _is_extended(name)) and quantity(value).milli_value % 1000:
        errors.append(invalid_value(path, value, "must be an integer"))
    return errors


def _container_resource_name(name: str, path: str) -> Errors:
    errors = resource_name(name, path)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith("hugepages-"):
            errors.append(invalid_value(path, name, "must be a standard resource for containers"))
    elif not _is_native(name) and not _is_extended(name):
        errors.append(invalid_value(path, name, "doesn't follow extended resource name standard"))
    return errors


def validate_resources(resources: JSONObject, path: str) -> Errors:
    """What is wrong with the requests and limits of a container."""
    if not resources:
        return []
    errors: Errors = []
    limits, requests = mapping(resources, "limits"), mapping(resources, "requests")
    for name, amount in limits.items():
        where = f"{path}.limits[{name}]"
        errors += _container_resource_name(name, where)
        errors += resource_amount(name, amount, where)
    for name, amount in requests.items():
        where = f"{path}.requests[{name}]"
        errors += _container_resource_name(name, where)
        errors += resource_amount(name, amount, where)
        overcommitted = _is_native(name) and not name.startswith("hugepages-")
        if name in limits:
            requested, limit = quantity(amount), quantity(limits[name])
            if not overcommitted and requested != limit:
                complaint = f"must be equal to {name} limit of {limit}"
                errors.append(invalid_value(f"{path}.requests", str(requested), complaint))
            elif overcommitted and requested > limit:
                complaint = f"must be less than or equal to {name} limit of {limit}"
                errors.append(invalid_value(f"{path}.requests", str(requested), complaint))
        elif not overcommitted:
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
    names = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in names) and not names & {"cpu", "memory"}:
        errors.append(forbidden_field(path, "HugePages require cpu or memory"))
    return errors
