"""Services: their ports, their traffic and the addresses of their load balancers."""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.builtins.allocation import Allocator
from kubewright.controlplane.embedded.builtins.containers import PROTOCOLS
from kubewright.controlplane.embedded.builtins.endpoints import endpoint_address
from kubewright.controlplane.embedded.builtins.metadata import validate_labels
from kubewright.controlplane.embedded.builtins.names import between, dns_label, dns_subdomain, first_complaint
from kubewright.controlplane.embedded.builtins.names import qualified_name as qualified
from kubewright.controlplane.embedded.builtins.service_addresses import (
    is_balanced,
    is_exposed,
    is_headless,
    needs_address,
    needs_health_check,
    validate_address_change,
    validate_addresses,
)
from kubewright.controlplane.embedded.builtins.service_allocation import ServiceAllocation
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    StructError,
    address,
    matching,
    network,
    number,
    objects,
    one_of,
    parsed_address,
    port,
    port_or_name,
)
from kubewright.controlplane.embedded.registry.resources import Strategy

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES = ("Cluster", "Local")
_MODES = ("Proxy", "VIP")
_MAX_AFFINITY = 86400


def _is_external(spec: JSONObject) -> bool:
    return is_exposed(spec) or (spec.get("type") == "ClusterIP" and bool(items(spec, "externalIPs")))


def _prepare_update(new: JSONObject, old: JSONObject) -> None:
    spec = inside(new, "spec")
    _drop_what_the_type_had(spec, mapping(old, "spec"))
    if not is_balanced(spec):
        inside(new, "status")["loadBalancer"] = {}


def _drop_what_the_type_had(spec: JSONObject, before: JSONObject) -> None:
    """Clears fields that only the former type has, unless they were changed."""

    def drop(*fields: str) -> None:
        for field in fields:
            if spec.get(field) == before.get(field):
                spec.pop(field, None)

    if needs_address(before) and not needs_address(spec):
        drop("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
        drop("internalTrafficPolicy")
    if is_exposed(before) and not is_exposed(spec):
        known = {entry.get("nodePort") for _, entry in objects(before, "ports")}
        if {entry.get("nodePort") for _, entry in objects(spec, "ports")} <= known:
            for _, entry in objects(spec, "ports"):
                entry.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        drop("healthCheckNodePort")
    if is_balanced(before) and not is_balanced(spec):
        drop("allocateLoadBalancerNodePorts", "loadBalancerClass")
    if _is_external(before) and not _is_external(spec):
        drop("externalTrafficPolicy")


def _validate_update(new: JSONObject, old: JSONObject) -> Errors:
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    errors = validate_address_change(spec, before)
    chosen = spec.get("loadBalancerClass")
    if is_balanced(spec) and is_balanced(before) and chosen != before.get("loadBalancerClass"):
        errors.append(invalid_value("spec.loadBalancerClass", chosen, "may not change once set"))
    errors += _load_balancer_class(spec)
    if (
        needs_health_check(spec)
        and needs_health_check(before)
        and spec.get("healthCheckNodePort") != before.get("healthCheckNodePort")
    ):
        errors.append(forbidden_field("spec.healthCheckNodePort", "field is immutable"))
    return errors + validate_service(spec, before)


def _validate_status(new: JSONObject, old: JSONObject) -> Errors:
    """The addresses of a load balancer."""
    where = "status.loadBalancer.ingress"
    entries = list(objects(new, "status", "loadBalancer", "ingress"))
    if entries and not is_balanced(mapping(new, "spec")):
        return [forbidden_field(where, "may only be used when `spec.type` is 'LoadBalancer'")]
    known = {text(entry, "ip") for _, entry in objects(old, "status", "loadBalancer", "ingress")}
    errors: Errors = []
    for index, entry in entries:
        path, ip, host = f"{where}[{index}]", text(entry, "ip"), text(entry, "hostname")
        if ip and ip not in known:
            errors += address(f"{path}.ip", ip)
        if "ipMode" not in entry:
            errors += [required(f"{path}.ipMode", "must be specified when `ip` is set")] if ip else []
        elif not ip:
            errors.append(forbidden_field(f"{path}.ipMode", "may not be specified when `ip` is not set"))
        else:
            errors += one_of(f"{path}.ipMode", entry["ipMode"], _MODES)
        errors += matching(f"{path}.hostname", host, dns_subdomain) if host else []
        if parsed_address(host) is not None:
            errors.append(invalid_value(f"{path}.hostname", host, "must be a DNS name, not an IP address"))
    return errors


def validate_service(spec: JSONObject, before: JSONObject | None = None) -> Errors:
    """What is wrong with the specification of a service, on any server."""
    kind = spec.get("type")
    errors: Errors = []
    headless = is_headless(spec)
    if not items(spec, "ports") and not headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and headless:
        complaint = f"may not be set to 'None' for {kind} services"
        errors.append(invalid_value("spec.clusterIPs[0]", "None", complaint))
    elif kind == "ExternalName":
        if items(spec, "clusterIPs"):
            errors.append(forbidden_field("spec.clusterIPs", "may not be set for ExternalName services"))
        for field in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(field):
                errors.append(forbidden_field(f"spec.{field}", "may not be set for ExternalName services"))
        name = text(spec, "externalName").removesuffix(".")
        errors += matching("spec.externalName", name, dns_subdomain) if name else [required("spec.externalName")]
    errors += _ports(spec)
    errors += validate_labels(mapping(spec, "selector"), "spec.selector")
    errors += one_of("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    if spec.get("sessionAffinity") == "ClientIP":
        seconds = number(mapping(spec, "sessionAffinityConfig", "clientIP").get("timeoutSeconds"))
        if not 0 < seconds <= _MAX_AFFINITY:
            where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            complaint = f"must be greater than 0 and less than {_MAX_AFFINITY}"
            errors.append(invalid_value(where, seconds, complaint))
    if needs_address(spec):
        errors += validate_addresses(spec, before)
    for index, value in enumerate(items(spec, "externalIPs")):
        where = f"spec.externalIPs[{index}]"
        errors += address(where, str(value)) or endpoint_address(str(value), where)
    errors += one_of("spec.type", kind, _TYPES)
    errors += _port_pairs(spec)
    errors += _load_balancer(spec)
    return errors + _traffic(spec)


def _ports(spec: JSONObject) -> Errors:
    errors: Errors = []
    entries = list(objects(spec, "ports"))
    names: set[str] = set()
    for index, entry in entries:
        where = f"spec.ports[{index}]"
        name = text(entry, "name")
        if name:
            errors += matching(f"{where}.name", name, dns_label)
            if name in names:
                errors.append(duplicate(f"{where}.name", name))
            names.add(name)
        elif len(entries) > 1:
            errors.append(required(f"{where}.name"))
        errors += port(f"{where}.port", entry.get("port"))
        errors += one_of(f"{where}.protocol", entry.get("protocol"), PROTOCOLS)
        errors += port_or_name(f"{where}.targetPort", entry.get("targetPort"))
        if "appProtocol" in entry:
            errors += matching(f"{where}.appProtocol", text(entry, "appProtocol"), qualified)
    return errors


def _port_pairs(spec: JSONObject) -> Errors:
    errors: Errors = []
    entries = list(objects(spec, "ports"))
    numbers: set[tuple[JSONValue, JSONValue]] = set()
    node_ports: set[tuple[JSONValue, JSONValue]] = set()
    for index, entry in entries:
        if spec.get("type") == "ClusterIP" and entry.get("nodePort"):
            complaint = "may not be used when `type` is 'ClusterIP'"
            errors.append(forbidden_field(f"spec.ports[{index}].nodePort", complaint))
    for index, entry in entries:
        this = (entry.get("protocol"), entry.get("nodePort"))
        if entry.get("nodePort") and this in node_ports:
            errors.append(duplicate(f"spec.ports[{index}].nodePort", entry.get("nodePort")))
        node_ports.add(this)
    for index, entry in entries:
        this = (entry.get("protocol"), entry.get("port"))
        if this in numbers:
            # kube-apiserver shows only what makes the port a duplicate, in its internal form.
            shown: JSONObject = {
                "Name": "",
                "Protocol": entry.get("protocol"),
                "AppProtocol": None,
                "Port": entry.get("port"),
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(StructError("FieldValueDuplicate", f"spec.ports[{index}]", shown))
        numbers.add(this)
    return errors


def _load_balancer(spec: JSONObject) -> Errors:
    errors: Errors = []
    balanced = is_balanced(spec)
    only = "may only be used when `type` is 'LoadBalancer'"
    ranges = items(spec, "loadBalancerSourceRanges")
    if ranges and not balanced:
        errors.append(forbidden_field("spec.LoadBalancerSourceRanges", only))
    for index, value in enumerate(ranges):
        errors += network(f"spec.LoadBalancerSourceRanges[{index}]", str(value).strip())
    if "allocateLoadBalancerNodePorts" in spec and not balanced:
        errors.append(forbidden_field("spec.allocateLoadBalancerNodePorts", only))
    return errors + _load_balancer_class(spec)


def _load_balancer_class(spec: JSONObject) -> Errors:
    where = "spec.loadBalancerClass"
    if "loadBalancerClass" not in spec:
        return []
    if not is_balanced(spec):
        return [forbidden_field(where, "may only be used when `type` is 'LoadBalancer'")]
    return matching(where, text(spec, "loadBalancerClass"), qualified)


def _traffic(spec: JSONObject) -> Errors:
    errors: Errors = []
    external = spec.get("externalTrafficPolicy")
    if not _is_external(spec):
        if external is not None:
            complaint = "may only be set for externally-accessible services"
            errors.append(invalid_value("spec.externalTrafficPolicy", external, complaint))
    elif external is None:
        errors.append(required("spec.externalTrafficPolicy"))
    else:
        errors += one_of("spec.externalTrafficPolicy", external, _POLICIES)
    health = spec.get("healthCheckNodePort")
    if health and not needs_health_check(spec):
        complaint = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid_value("spec.healthCheckNodePort", health, complaint))
    elif not health and needs_health_check(spec):
        errors.append(required("spec.healthCheckNodePort"))
    elif health and not 1 <= number(health) <= 65535:
        errors.append(invalid_value("spec.healthCheckNodePort", health, between(1, 65535)))
    if "internalTrafficPolicy" in spec:
        errors += one_of("spec.internalTrafficPolicy", spec["internalTrafficPolicy"], _POLICIES)
    if "trafficDistribution" in spec:
        known = ("PreferClose", "PreferSameZone", "PreferSameNode")
        errors += one_of("spec.trafficDistribution", spec["trafficDistribution"], known)
    return errors


def _fields(service: JSONObject) -> Mapping[str, str]:
    spec = mapping(service, "spec")
    return {"spec.clusterIP": text(spec, "clusterIP"), "spec.type": text(spec, "type")}


def service_strategy(allocator: Allocator) -> Strategy:
    """The rules of services on a server with this allocator."""
    allocation = ServiceAllocation(allocator)
    return Strategy(
        begin_create=allocation.create,
        begin_update=allocation.update,
        prepare_update=_prepare_update,
        validate=lambda service: validate_service(mapping(service, "spec")),
        validate_update=_validate_update,
        validate_status=_validate_status,
        validate_name=first_complaint(dns_label),
        selectable_fields=_fields,
        selectable=frozenset(_fields({})),
        create_on_update=True,
        returns_deleted_object=True,
    )
