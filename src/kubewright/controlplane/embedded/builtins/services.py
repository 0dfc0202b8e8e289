"""Services: their ports, their addresses, and what the allocator gives them."""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.builtins.allocation import Allocator, PoolExhausted
from kubewright.controlplane.embedded.builtins.containers import PROTOCOLS
from kubewright.controlplane.embedded.builtins.metadata import validate_labels
from kubewright.controlplane.embedded.builtins.names import between, dns_label, dns_subdomain, first_complaint
from kubewright.controlplane.embedded.builtins.names import qualified_name as qualified
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
from kubewright.controlplane.embedded.document import JSONObject, inside, items, mapping, text
from kubewright.controlplane.embedded.resources import Strategy
from kubewright.controlplane.embedded.status import (
    StatusError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES = ("Cluster", "Local")
_LONGEST_AFFINITY = 86400


def _has_cluster_ip(spec: JSONObject) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def _has_node_ports(spec: JSONObject) -> bool:
    if spec.get("type") == "NodePort":
        return True
    return spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False


def _is_headless(spec: JSONObject) -> bool:
    return "None" in (spec.get("clusterIP"), *items(spec, "clusterIPs"))


def _is_external(spec: JSONObject) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(items(spec, "externalIPs")))


def _needs_health_check(spec: JSONObject) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


class _Services:
    """The rules of services on a server with this allocator."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator

    def prepare_create(self, service: JSONObject) -> None:
        spec = inside(service, "spec")
        if not _has_cluster_ip(spec):
            return
        if text(spec, "clusterIP") and not items(spec, "clusterIPs"):
            spec["clusterIPs"] = [text(spec, "clusterIP")]
        if self._can_serve(spec):
            self._allocate(spec)

    def _can_serve(self, spec: JSONObject) -> bool:
        families = items(spec, "ipFamilies")
        possible = not families or families[0] == self._allocator.family or _is_headless(spec)
        return possible and not validate_service(spec)

    def prepare_update(self, new: JSONObject, old: JSONObject) -> None:
        spec, before = inside(new, "spec"), mapping(old, "spec")
        if _has_cluster_ip(before) and _has_cluster_ip(spec):
            _keep_addresses(spec, before)
        if _has_node_ports(before) and _has_node_ports(spec):
            _keep_node_ports(spec, before)
        _drop_what_the_type_had(spec, before)
        if spec.get("type") != "LoadBalancer":
            inside(new, "status")["loadBalancer"] = {}
        if _has_cluster_ip(spec) and self._can_serve(spec):
            self._allocate(spec)

    def _allocate(self, spec: JSONObject) -> None:
        """Families, addresses and node ports that were not asked for."""
        try:
            if not text(spec, "clusterIP") and not items(spec, "clusterIPs"):
                chosen = self._allocator.addresses.allocate()
                spec.update(clusterIP=chosen, clusterIPs=[chosen])
            if not items(spec, "ipFamilies"):
                selectorless = _is_headless(spec) and not mapping(spec, "selector")
                spec["ipFamilies"] = [self._allocator.family, *(["IPv6"] if selectorless else [])]
                spec.setdefault("ipFamilyPolicy", "RequireDualStack" if selectorless else "SingleStack")
            spec.setdefault("ipFamilyPolicy", "SingleStack")
            if _has_node_ports(spec):
                for _, entry in objects(spec, "ports"):
                    if not entry.get("nodePort"):
                        entry["nodePort"] = int(self._allocator.ports.allocate())
            if _needs_health_check(spec) and not spec.get("healthCheckNodePort"):
                spec["healthCheckNodePort"] = int(self._allocator.ports.allocate())
        except PoolExhausted:
            message = "Internal error occurred: failed to allocate a serviceIP: range is full"
            raise StatusError(500, "InternalError", message) from None

    def validate(self, service: JSONObject) -> Errors:
        return self._validate(service, None)

    def validate_update(self, new: JSONObject, old: JSONObject) -> Errors:
        return _changes(mapping(new, "spec"), mapping(old, "spec")) + self._validate(new, old)

    def _validate(self, service: JSONObject, old: JSONObject | None) -> Errors:
        spec = mapping(service, "spec")
        return validate_service(spec) or self._claims(spec, mapping(old, "spec"))

    def _claims(self, spec: JSONObject, before: JSONObject) -> Errors:
        """Whether this server can give what was asked for."""
        errors: Errors = []
        families = items(spec, "ipFamilies")
        if spec.get("ipFamilyPolicy") == "RequireDualStack" and not _is_headless(spec):
            complaint = "this cluster is not configured for dual-stack services"
            return [invalid_value("spec.ipFamilyPolicy", "RequireDualStack", complaint)]
        if families and families[0] != self._allocator.family and not _is_headless(spec):
            return [invalid_value("spec.ipFamilies[0]", families[0], "not configured on this cluster")]
        for value in items(spec, "clusterIPs"):
            wanted = str(value)
            if wanted == "None" or wanted in items(before, "clusterIPs"):
                continue
            failed = f"failed to allocate IP {wanted}: "
            pool = self._allocator.addresses
            if wanted not in pool:
                failed += (
                    f"the provided IP ({wanted}) is not in the valid range. "
                    f"The range of valid IPs is {self._allocator.network}"
                )
                errors.append(invalid_value("spec.clusterIPs", spec["clusterIPs"], failed))
            elif pool.is_taken(wanted):
                failed += "provided IP is already allocated"
                errors.append(invalid_value("spec.clusterIPs", spec["clusterIPs"], failed))
        known = {entry.get("nodePort") for _, entry in objects(before, "ports")}
        for index, entry in objects(spec, "ports"):
            wanted_port = number(entry.get("nodePort"))
            if wanted_port and wanted_port not in known:
                errors += self._node_port(wanted_port, f"spec.ports[{index}].nodePort")
        return errors

    def _node_port(self, wanted: int, path: str) -> Errors:
        pool = self._allocator.ports
        if str(wanted) not in pool:
            complaint = (
                "provided port is not in the valid range. The range of valid ports is "
                f"{self._allocator.lowest_port}-{self._allocator.highest_port}"
            )
            return [invalid_value(path, wanted, complaint)]
        return [invalid_value(path, wanted, "provided port is already allocated")] if pool.is_taken(str(wanted)) else []


def _keep_addresses(spec: JSONObject, before: JSONObject) -> None:
    """What was given and is not mentioned, stays; a change of the first address changes the list."""
    if not text(spec, "clusterIP") and text(before, "clusterIP"):
        spec["clusterIP"] = text(before, "clusterIP")
    if not items(spec, "clusterIPs") and items(before, "clusterIPs"):
        spec["clusterIPs"] = items(before, "clusterIPs")
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec["clusterIPs"] = [text(spec, "clusterIP"), *items(spec, "clusterIPs")[1:]]
    for field in ("ipFamilies", "ipFamilyPolicy"):
        if not spec.get(field) and field in before:
            spec[field] = before[field]


def _keep_node_ports(spec: JSONObject, before: JSONObject) -> None:
    earlier = {text(entry, "name"): entry.get("nodePort") for _, entry in objects(before, "ports")}
    used = {entry.get("nodePort") for _, entry in objects(spec, "ports")}
    for _, entry in objects(spec, "ports"):
        given = earlier.get(text(entry, "name"))
        if not entry.get("nodePort") and given and given not in used:
            entry["nodePort"] = given
    if _needs_health_check(spec) and _needs_health_check(before) and "healthCheckNodePort" in before:
        spec.setdefault("healthCheckNodePort", before["healthCheckNodePort"])


def _drop_what_the_type_had(spec: JSONObject, before: JSONObject) -> None:
    """What only the former type could have, and nobody changed, goes with the type."""

    def drop(*fields: str) -> None:
        for field in fields:
            if spec.get(field) == before.get(field):
                spec.pop(field, None)

    if _has_cluster_ip(before) and not _has_cluster_ip(spec):
        drop("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
        drop("internalTrafficPolicy")
    if _has_node_ports(before) and not _has_node_ports(spec):
        known = {entry.get("nodePort") for _, entry in objects(before, "ports")}
        if {entry.get("nodePort") for _, entry in objects(spec, "ports")} <= known:
            for _, entry in objects(spec, "ports"):
                entry.pop("nodePort", None)
    if _needs_health_check(before) and not _needs_health_check(spec):
        drop("healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        drop("allocateLoadBalancerNodePorts", "loadBalancerClass")
    if _is_external(before) and not _is_external(spec):
        drop("externalTrafficPolicy")


def _changes(spec: JSONObject, before: JSONObject) -> Errors:
    errors: Errors = []
    ips, earlier = items(spec, "clusterIPs"), items(before, "clusterIPs")
    if "ExternalName" not in (spec.get("type"), before.get("type")) and not (
        _is_headless(spec) and _is_headless(before)
    ):
        if earlier and not ips:
            complaint = "primary clusterIP can not be unset"
            errors.append(invalid_value("spec.clusterIPs[0]", None, complaint))
        elif earlier and ips[0] != earlier[0]:
            errors.append(invalid_value("spec.clusterIPs[0]", ips, "may not change once set"))
    if spec.get("type") == before.get("type") == "LoadBalancer":
        chosen = spec.get("loadBalancerClass")
        if chosen != before.get("loadBalancerClass"):
            errors.append(invalid_value("spec.loadBalancerClass", chosen, "may not change once set"))
    return errors


def validate_service(spec: JSONObject) -> Errors:
    """What is wrong with the specification of a service, on any server."""
    kind = spec.get("type")
    errors: Errors = []
    headless = _is_headless(spec)
    if not items(spec, "ports") and not headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and headless:
        complaint = f"may not be set to 'None' for {kind} services"
        errors.append(invalid_value("spec.clusterIPs[0]", "None", complaint))
    elif kind == "ExternalName":
        if items(spec, "clusterIPs") or text(spec, "clusterIP"):
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
        if not 0 < seconds <= _LONGEST_AFFINITY:
            where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            complaint = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            errors.append(invalid_value(where, seconds, complaint))
    if kind != "ExternalName":
        errors += _addresses(spec)
    for index, value in enumerate(items(spec, "externalIPs")):
        errors += address(f"spec.externalIPs[{index}]", str(value))
    errors += one_of("spec.type", kind, _TYPES)
    errors += _load_balancer(spec)
    return errors + _traffic(spec)


def _ports(spec: JSONObject) -> Errors:
    errors: Errors = []
    entries = list(objects(spec, "ports"))
    names: set[str] = set()
    numbers: set[tuple[JSONValue, JSONValue]] = set()
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
    for index, entry in entries:
        if spec.get("type") == "ClusterIP" and entry.get("nodePort"):
            complaint = "may not be used when `type` is 'ClusterIP'"
            errors.append(forbidden_field(f"spec.ports[{index}].nodePort", complaint))
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


def _addresses(spec: JSONObject) -> Errors:
    errors: Errors = []
    first, ips = text(spec, "clusterIP"), items(spec, "clusterIPs")
    if first and not ips:
        errors.append(required("spec.clusterIPs"))
    elif first and ips[0] != first:
        errors.append(invalid_value("spec.clusterIPs", ips, "first value must match `clusterIP`"))
    elif not first and ips:
        errors.append(invalid_value("spec.clusterIPs", ips, "must be empty when `clusterIP` is not specified"))
    families = items(spec, "ipFamilies")
    for index, family in enumerate(families):
        errors += one_of(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
        if family in families[:index]:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
    if "ipFamilyPolicy" in spec:
        known = ("PreferDualStack", "RequireDualStack", "SingleStack")
        errors += one_of("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], known)
    for index, ip in enumerate(ips):
        if ip == "None" and index == 0:
            if len(ips) > 1:
                errors.append(invalid_value("spec.clusterIPs", ips, "'None' must be the first and only value"))
            continue
        wrong = address(f"spec.clusterIPs[{index}]", str(ip))
        errors += wrong
        parsed = parsed_address(str(ip))
        if parsed is not None and index < len(families) and families[index] != f"IPv{parsed.version}":
            complaint = f"expected an {families[index]} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid_value(f"spec.clusterIPs[{index}]", ip, complaint))
    if len(ips) > 2:
        errors.append(invalid_value("spec.clusterIPs", ips, "may only hold up to 2 values"))
    return errors


def _load_balancer(spec: JSONObject) -> Errors:
    errors: Errors = []
    balanced = spec.get("type") == "LoadBalancer"
    only = "may only be used when `type` is 'LoadBalancer'"
    ranges = items(spec, "loadBalancerSourceRanges")
    if ranges and not balanced:
        errors.append(forbidden_field("spec.LoadBalancerSourceRanges", only))
    for index, value in enumerate(ranges):
        errors += network(f"spec.LoadBalancerSourceRanges[{index}]", str(value))
    if "allocateLoadBalancerNodePorts" in spec and not balanced:
        errors.append(forbidden_field("spec.allocateLoadBalancerNodePorts", only))
    if "loadBalancerClass" in spec:
        if not balanced:
            errors.append(forbidden_field("spec.loadBalancerClass", only))
        else:
            errors += matching("spec.loadBalancerClass", text(spec, "loadBalancerClass"), qualified)
    return errors


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
    if health and not _needs_health_check(spec):
        complaint = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid_value("spec.healthCheckNodePort", health, complaint))
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
    rules = _Services(allocator)
    return Strategy(
        prepare_create=rules.prepare_create,
        prepare_update=rules.prepare_update,
        validate=rules.validate,
        validate_update=rules.validate_update,
        validate_name=first_complaint(dns_label),
        selectable_fields=_fields,
        selectable=frozenset(_fields({})),
        create_on_update=True,
        returns_deleted_object=True,
    )
