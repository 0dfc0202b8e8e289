"""What an object counts for in a resource quota, and which quotas it counts in."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.builtins.pod_resources import container_resources, pod_resources
from kubewright.controlplane.embedded.builtins.values import quantity

Usage = dict[str, Quantity]

_ALIASES = frozenset(("configmaps", "resourcequotas", "replicationcontrollers", "secrets"))
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES = frozenset(
    ("pods", "count/pods", *_COMPUTE, *(f"{part}.{name}" for part in ("requests", "limits") for name in _COMPUTE))
)
# Of these each container must say what it needs, if they are limited.
_MUST_BE_NAMED = _POD_NAMES & frozenset(
    ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
)
_SERVICE_NAMES = frozenset(("services", "count/services", "services.nodeports", "services.loadbalancers"))
_CLAIM_NAMES = frozenset(("persistentvolumeclaims", "requests.storage"))
_BY_CLASS = ".storageclass.storage.k8s.io/"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_ONE, _ZERO = Quantity(1), Quantity(0)


def object_count(group: str, plural: str) -> str:
    """The name under which the objects of a resource are counted."""
    return f"count/{plural}.{group}" if group else f"count/{plural}"


def tracked(names: Iterable[str], group: str, plural: str) -> list[str]:
    """Those of the names for which objects of a resource count."""
    return sorted(name for name in names if _is_tracked(name, group, plural))


def _is_tracked(name: str, group: str, plural: str) -> bool:
    match group, plural:
        case "", "pods":
            extended = name.startswith("requests.") and "/" in name and _BY_CLASS not in name
            return name in _POD_NAMES or name.startswith(("hugepages-", "requests.hugepages-")) or extended
        case "", "services":
            return name in _SERVICE_NAMES
        case "", "persistentvolumeclaims":
            by_class = name.partition(_BY_CLASS)[2] in _CLAIM_NAMES
            return name in _CLAIM_NAMES or by_class or name == object_count(group, plural)
        case _:
            return name == object_count(group, plural) or (not group and plural in _ALIASES and name == plural)


def usage(obj: JSONObject, group: str, plural: str, now: datetime) -> Usage:
    """How much an object counts, by name."""
    counted = {object_count(group, plural): _ONE}
    match group, plural:
        case "", "pods":
            return counted | (_pod_usage(obj) if _is_counted(obj, now) else {})
        case "", "services":
            return counted | _service_usage(obj)
        case "", "persistentvolumeclaims":
            return counted | _claim_usage(obj)
        case _:
            return counted | ({plural: _ONE} if not group and plural in _ALIASES else {})


def is_in_scopes(quota: JSONObject, obj: JSONObject, group: str, plural: str) -> bool:
    """Whether a quota is about an object, by its scopes. Only pods and claims are in any."""
    scopes = [(text_of(scope), "Exists", list[JSONValue]()) for scope in items(quota, "spec", "scopes")]
    for each in items(quota, "spec", "scopeSelector", "matchExpressions"):
        scopes.append((text(each, "scopeName"), text(each, "operator"), items(each, "values")))
    if not scopes:
        return True
    match = _pod_is_in if (group, plural) == ("", "pods") else _claim_is_in
    return (group, plural) in (("", "pods"), ("", "persistentvolumeclaims")) and all(
        match(obj, *scope) for scope in scopes
    )


def text_of(value: JSONValue) -> str:
    """A string; empty for anything else."""
    return value if isinstance(value, str) else ""


def unnamed(pod: JSONObject, names: Iterable[str]) -> str:
    """What containers of a pod must still say because it is limited; empty when nothing."""
    if mapping(pod, "spec", "resources", "requests") or mapping(pod, "spec", "resources", "limits"):
        return ""
    missing: dict[str, set[str]] = {}
    for field in ("containers", "initContainers"):
        for container in items(pod, "spec", field):
            said = _compute(container_resources(container, "requests"), container_resources(container, "limits"))
            for name in _MUST_BE_NAMED.intersection(names) - said.keys():
                missing.setdefault(name, set()).add(text(container, "name"))
    if not missing:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def is_terminating(pod: JSONObject) -> bool:
    """Whether the pod ends by itself, at a deadline."""
    seconds = at(pod, "spec", "activeDeadlineSeconds")
    return isinstance(seconds, int) and seconds >= 0


# Pods


def _is_counted(pod: JSONObject, now: datetime) -> bool:
    """Pods that have ended need nothing any more, and those that should have been gone are not held against anybody."""
    if text(pod, "status", "phase") in ("Failed", "Succeeded"):
        return False
    deleted, grace = text(pod, "metadata", "deletionTimestamp"), at(pod, "metadata", "deletionGracePeriodSeconds")
    if not deleted or not isinstance(grace, int):
        return True
    return now <= datetime.fromisoformat(deleted) + timedelta(seconds=grace)


def _pod_usage(pod: JSONObject) -> Usage:
    requests, limits = pod_resources(pod, "requests"), pod_resources(pod, "limits")
    for name, amount in mapping(pod, "spec", "overhead").items():
        requests[name] = requests.get(name, _ZERO) + quantity(amount)
        if limits.get(name):
            limits[name] = limits[name] + quantity(amount)
    return {"pods": _ONE} | _compute(requests, limits)


def _compute(requests: Usage, limits: Usage) -> Usage:
    found: Usage = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            found[name] = found[f"requests.{name}"] = amount
        elif "/" in name:
            found[f"requests.{name}"] = amount
    for name in _COMPUTE:
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    return found


def _pod_is_in(pod: JSONObject, scope: str, operator: str, values: list[JSONValue]) -> bool:
    match scope:
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return text(pod, "status", "qosClass") == "BestEffort"
        case "NotBestEffort":
            return text(pod, "status", "qosClass") != "BestEffort"
        case "PriorityClass":
            name = text(pod, "spec", "priorityClassName")
            return _is_selected({name} if name else set(), operator, values)
        case "CrossNamespacePodAffinity":
            return _looks_elsewhere(pod)
        case _:
            return False


def _looks_elsewhere(pod: JSONObject) -> bool:
    for field in ("podAffinity", "podAntiAffinity"):
        affinity = mapping(pod, "spec", "affinity", field)
        terms = items(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        preferred = items(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
        for term in (*terms, *(at(each, "podAffinityTerm") for each in preferred)):
            if items(term, "namespaces") or at(term, "namespaceSelector") is not None:
                return True
    return False


def _is_selected(names: set[str], operator: str, values: list[JSONValue]) -> bool:
    match operator:
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return any(name in values for name in names)
        case _:
            return not any(name in values for name in names)


# Services and claims


def _service_usage(service: JSONObject) -> Usage:
    kind, ports = text(service, "spec", "type"), items(service, "spec", "ports")
    node_ports = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
    if kind == "LoadBalancer" and at(service, "spec", "allocateLoadBalancerNodePorts") is False:
        node_ports = sum(1 for port in ports if at(port, "nodePort"))
    return {
        "services": _ONE,
        "services.nodeports": Quantity(node_ports),
        "services.loadbalancers": Quantity(int(kind == "LoadBalancer")),
    }


def _claim_usage(claim: JSONObject) -> Usage:
    found = {"persistentvolumeclaims": _ONE}
    requested = at(claim, "spec", "resources", "requests", "storage")
    if requested is not None:
        found["requests.storage"] = max(
            quantity(requested), quantity(at(claim, "status", "allocatedResources", "storage"))
        )
    annotations = mapping(claim, "metadata", "annotations")
    class_name = (
        text(annotations, _CLASS_ANNOTATION)
        if _CLASS_ANNOTATION in annotations
        else text(claim, "spec", "storageClassName")
    )
    if class_name:
        found |= {f"{class_name}{_BY_CLASS}{name}": amount for name, amount in found.items()}
    return found


def _claim_is_in(claim: JSONObject, scope: str, operator: str, values: list[JSONValue]) -> bool:
    if scope != "VolumeAttributesClass":
        return False
    names = {
        text(claim, "spec", "volumeAttributesClassName"),
        text(claim, "status", "currentVolumeAttributesClassName"),
        text(claim, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
    }
    return _is_selected(names - {""}, operator, values)
