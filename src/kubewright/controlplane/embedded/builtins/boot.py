"""The objects of a new cluster.

Roles and bindings are those of the authorizer, and are not made here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import msgspec

from kubewright.api.builtin import MODULES
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.time import now
from kubewright.controlplane.embedded.apimachinery.document import inside, text
from kubewright.controlplane.embedded.builtins.allocation import Allocator
from kubewright.controlplane.embedded.builtins.cluster import SYSTEM_PRIORITIES

NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")

_DESCRIPTIONS = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
}
# How groups are ordered in discovery: the minimum priority of each, and the version's own.
_PRIORITIES = {
    "": (18000, 1),
    "apps": (17800, 15),
    "events.k8s.io": (17750, 15),
    "authentication.k8s.io": (17700, 15),
    "authorization.k8s.io": (17600, 15),
    "autoscaling": (17500, 15),
    "batch": (17400, 15),
    "certificates.k8s.io": (17300, 15),
    "networking.k8s.io": (17200, 15),
    "policy": (17100, 15),
    "rbac.authorization.k8s.io": (17000, 15),
    "storage.k8s.io": (16800, 15),
    "apiextensions.k8s.io": (16700, 15),
    "admissionregistration.k8s.io": (16700, 15),
    "scheduling.k8s.io": (16600, 15),
    "coordination.k8s.io": (16500, 15),
    "node.k8s.io": (16300, 15),
    "discovery.k8s.io": (16200, 15),
    "resource.k8s.io": (16200, 21),
    "flowcontrol.apiserver.k8s.io": (16100, 21),
}
_SECOND_AUTOSCALING = 30
# Written by `python -m tools.generate_bootstrap` from what the pinned kube-apiserver makes.
_FLOW_CONTROL = Path(__file__).with_name("flow_control.json")


def boot_objects(
    *,
    host: str = "127.0.0.1",
    port: int = 6443,
    client_ca: str = "",
    allocator: Allocator | None = None,
    now: Callable[[], datetime] = now,
) -> list[JSONObject]:
    """Complete objects, in an order in which they can be created, without uid and times of their own.

    `host` and `port` are where the server listens. The service of the server has endpoints only when pods could reach
    them, which is not so on a loopback address; the real server does the same. `client_ca` (PEM) is by whom clients
    are certified. `now` is the time conditions carry.
    """
    allocator = allocator or Allocator()
    address = str(next(allocator.network.hosts()))
    time = f"{now().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    reachable = not ipaddress.ip_address(host).is_loopback
    return [
        *map(_namespace, NAMESPACES),
        _service(address, port),
        *([_endpoints(host, port), _endpoint_slice(host, port)] if reachable else []),
        _service_cidr(allocator, time),
        _ip_address(address, allocator),
        *([_config_map("extension-apiserver-authentication", {"client-ca-file": client_ca})] if client_ca else []),
        _config_map("kube-apiserver-legacy-service-account-token-tracking", {"since": time[:10]}),
        *(_priority_class(name, value) for name, value in SYSTEM_PRIORITIES.items()),
        *_flow_control(time),
        *(_api_service(api_version, time) for api_version in MODULES if _is_local(api_version)),
    ]


def _namespace(name: str) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _service(address: str, port: int) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            "clusterIP": address,
            "clusterIPs": [address],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv6" if ":" in address else "IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


def _endpoints(host: str, port: int) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": host}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}],
    }


def _endpoint_slice(host: str, port: int) -> JSONObject:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "generation": 1,
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv6" if ":" in host else "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "protocol": "TCP", "port": port}],
    }


def _condition(kind: str, reason: str, message: str, now: str, *, status: str = "True") -> JSONValue:
    return {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}


def _service_cidr(allocator: Allocator, now: str) -> JSONObject:
    # As kube-controller-manager leaves it.
    ready = _condition("Ready", "", "Kubernetes Service CIDR is ready", now)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes", "finalizers": ["networking.k8s.io/service-cidr-finalizer"]},
        "spec": {"cidrs": [str(allocator.network)]},
        "status": {"conditions": [ready]},
    }


def _ip_address(address: str, allocator: Allocator) -> JSONObject:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {
            "name": address,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": allocator.family,
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}},
    }


def _priority_class(name: str, value: int) -> JSONObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "generation": 1},
        "value": value,
        "description": _DESCRIPTIONS[name],
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _config_map(name: str, data: JSONObject) -> JSONObject:
    metadata: JSONObject = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _flow_control(now: str) -> list[JSONObject]:
    """Priority levels, and the schemas that refer to them; nothing is queued here, but they can be read and changed."""
    objects = cast("list[JSONObject]", msgspec.json.decode(_FLOW_CONTROL.read_bytes()))
    for obj in objects:
        inside(obj, "metadata")["generation"] = 1
        obj["status"] = {}
        if obj["kind"] == "FlowSchema":
            level = text(obj, "spec", "priorityLevelConfiguration", "name")
            message = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" and it exists'
            obj["status"] = {"conditions": [_condition("Dangling", "Found", message, now, status="False")]}
    return objects


def _is_local(api_version: str) -> bool:
    """Served by default, and not the aggregator's own group."""
    return "beta" not in api_version and not api_version.startswith("apiregistration.k8s.io/")


def _api_service(api_version: str, now: str) -> JSONObject:
    group, _, version = api_version.rpartition("/")
    minimum, own = _PRIORITIES[group]
    spec: JSONObject = {"version": version, "groupPriorityMinimum": minimum, "versionPriority": own}
    if group:
        spec["group"] = group
    if version == "v2":
        spec["versionPriority"] = _SECOND_AUTOSCALING
    available = _condition("Available", "Local", "Local APIServices are always available", now)
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": f"{version}.{group}",
            "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
        },
        "spec": spec,
        "status": {"conditions": [available]},
    }
