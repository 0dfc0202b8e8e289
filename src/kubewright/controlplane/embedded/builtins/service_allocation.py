"""What the server hands out to services: IP families, cluster IPs and node ports.

It happens before a service is validated: a failed allocation is its only error.
"""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, invalid, invalid_value
from kubewright.controlplane.embedded.builtins.allocation import Allocator, PoolExhausted
from kubewright.controlplane.embedded.builtins.service_addresses import (
    is_balanced,
    is_exposed,
    needs_address,
    needs_health_check,
    needs_node_ports,
    policy_of,
    validate_addresses,
)
from kubewright.controlplane.embedded.builtins.values import Errors, number, objects, parsed_address

_SINGLE, _PREFER, _REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"
_FAMILIES: dict[JSONValue, JSONValue] = {"IPv4": "IPv6", "IPv6": "IPv4"}


class ServiceAllocation:
    """Gives services what they need from an allocator, and keeps what they have."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator

    def create(self, service: JSONObject) -> None:
        """Raises StatusError for what cannot be allocated."""
        spec = inside(service, "spec")
        if text(spec, "clusterIP") and not items(spec, "clusterIPs"):
            spec["clusterIPs"] = [text(spec, "clusterIP")]
        _refuse(service, self._choose_families(spec, None))
        if needs_address(spec):
            self._allocate_addresses(service)
        if is_exposed(spec):
            self._create_node_ports(service)
        if needs_health_check(spec):
            self._allocate_health_check(spec)

    def update(self, new: JSONObject, old: JSONObject) -> None:
        """Raises StatusError for what cannot be allocated."""
        spec, before = inside(new, "spec"), mapping(old, "spec")
        _keep(spec, before)
        _pair_addresses(spec, before)
        _refuse(new, self._choose_families(spec, before))
        if needs_address(spec) and not needs_address(before):
            self._allocate_addresses(new)
        if is_exposed(spec):
            self._update_node_ports(new, before)
        if needs_health_check(spec) and not needs_health_check(before):
            self._allocate_health_check(spec)

    def _choose_families(self, spec: JSONObject, before: JSONObject | None) -> Errors:
        if not needs_address(spec) or (before is not None and _still_prefers_two(spec, before)):
            return []
        lonely = text(spec, "clusterIP") == "None" and not mapping(spec, "selector")
        if "ipFamilyPolicy" not in spec:
            spec["ipFamilyPolicy"] = policy_of(before or {}) or (_REQUIRE if lonely else _SINGLE)
        errors = validate_addresses(spec, before) or [*_reductions(spec, before), *self._inferred(spec)]
        if errors:
            return errors
        families = items(spec, "ipFamilies")
        if not lonely:
            errors = self._unconfigured(spec)
        if errors:
            return errors
        families = families or [self._allocator.family]
        if lonely and len(families) < 2 and policy_of(spec) != _SINGLE:
            families = [*families, _FAMILIES[families[0]]]
        spec["ipFamilies"] = families
        return []

    def _inferred(self, spec: JSONObject) -> Errors:
        """Families from the requested addresses."""
        errors: Errors = []
        policy, ips = policy_of(spec), items(spec, "clusterIPs")
        more = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
        if policy == _SINGLE and len(ips) == 2:
            errors.append(invalid_value("spec.ipFamilyPolicy", policy, f"{more} cluster IPs are specified"))
        if policy == _SINGLE and len(items(spec, "ipFamilies")) == 2:
            errors.append(invalid_value("spec.ipFamilyPolicy", policy, f"{more} IP families are specified"))
        for index, ip in enumerate(ips):
            address = parsed_address(str(ip))
            if address is None:
                break
            family = f"IPv{address.version}"
            if index < len(items(spec, "ipFamilies")):
                continue
            if family != self._allocator.family:
                complaint = f"{family} is not configured on this cluster"
                errors.append(invalid_value(f"spec.clusterIPs[{index}]", ips, complaint))
            else:
                spec["ipFamilies"] = [*items(spec, "ipFamilies"), family]
        return errors

    def _unconfigured(self, spec: JSONObject) -> Errors:
        errors: Errors = []
        if policy_of(spec) == _REQUIRE:
            complaint = "this cluster is not configured for dual-stack services"
            errors.append(invalid_value("spec.ipFamilyPolicy", _REQUIRE, complaint))
        return errors + [
            invalid_value(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
            for index, family in enumerate(items(spec, "ipFamilies"))
            if family != self._allocator.family
        ]

    def _allocate_addresses(self, service: JSONObject) -> None:
        spec = inside(service, "spec")
        ips = items(spec, "clusterIPs")
        if ips[:1] == ["None"]:
            return
        pool = self._allocator.addresses
        if not ips:
            try:
                chosen = pool.allocate()
            except PoolExhausted:
                name = text(service, "metadata", "name")
                message = f'failed to allocate a serviceIP for Service "{name}": range is full'
                raise StatusError(500, "InternalError", f"Internal error occurred: {message}") from None
            spec.update(clusterIP=chosen, clusterIPs=[chosen])
            return
        wanted = str(ips[0])
        failed = f"failed to allocate IP {wanted}: "
        if wanted not in pool:
            failed += (
                f"the provided IP ({wanted}) is not in the valid range. "
                f"The range of valid IPs is {self._allocator.network}"
            )
            _refuse(service, [invalid_value("spec.clusterIPs", ips, failed)])
        elif pool.is_taken(wanted):
            _refuse(service, [invalid_value("spec.clusterIPs", ips, f"{failed}provided IP is already allocated")])

    def _create_node_ports(self, service: JSONObject) -> None:
        """The same port in another protocol gets the same node port."""
        spec = inside(service, "spec")
        given: dict[int, int] = {}
        for index, entry in objects(spec, "ports"):
            if not number(entry.get("nodePort")) and not needs_node_ports(spec):
                continue
            port = number(entry.get("port"))
            if port not in given:
                wanted = next(
                    (
                        number(other.get("nodePort"))
                        for _, other in objects(spec, "ports")
                        if number(other.get("port")) == port and number(other.get("nodePort"))
                    ),
                    0,
                )
                _refuse(service, self._node_port(wanted, index) if wanted else [])
                entry["nodePort"] = given[port] = wanted or self._free_port("nodePort")
            elif not number(entry.get("nodePort")):
                entry["nodePort"] = given[port]
            elif number(entry.get("nodePort")) != given[port]:
                _refuse(service, self._node_port(number(entry.get("nodePort")), index))

    def _update_node_ports(self, service: JSONObject, before: JSONObject) -> None:
        spec = inside(service, "spec")
        known = {number(entry.get("nodePort")) for _, entry in objects(before, "ports")}
        seen: set[tuple[str, int]] = set()
        for index, entry in objects(spec, "ports"):
            port = number(entry.get("nodePort"))
            if not port and not needs_node_ports(spec):
                continue
            if not port:
                port = self._free_port("nodePort")
                entry["nodePort"] = port
            elif port not in known:
                _refuse(service, self._node_port(port, index))
                known.add(port)
            this = (text(entry, "protocol"), port)
            if this in seen:
                raise StatusError(500, "", f"duplicate nodePort: {{{this[0]} {this[1]}}}")
            seen.add(this)

    def _allocate_health_check(self, spec: JSONObject) -> None:
        wanted = number(spec.get("healthCheckNodePort"))
        if not wanted:
            spec["healthCheckNodePort"] = self._free_port("HealthCheck NodePort 0")
        elif complaint := self._complaint(wanted):
            message = f"failed to allocate requested HealthCheck NodePort {wanted}: {complaint}"
            raise StatusError(500, "InternalError", f"Internal error occurred: {message}")

    def _free_port(self, what: str) -> int:
        try:
            return int(self._allocator.ports.allocate())
        except PoolExhausted:
            message = f"Internal error occurred: failed to allocate a {what}: range is full"
            raise StatusError(500, "InternalError", message) from None

    def _node_port(self, wanted: int, index: int) -> Errors:
        complaint = self._complaint(wanted)
        return [invalid_value(f"spec.ports[{index}].nodePort", wanted, complaint)] if complaint else []

    def _complaint(self, wanted: int) -> str:
        pool = self._allocator.ports
        if str(wanted) not in pool:
            return (
                "provided port is not in the valid range. The range of valid ports is "
                f"{self._allocator.lowest_port}-{self._allocator.highest_port}"
            )
        return "provided port is already allocated" if pool.is_taken(str(wanted)) else ""


def _refuse(service: JSONObject, errors: Errors) -> None:
    if errors:
        raise invalid("Service", "", text(service, "metadata", "name"), errors)


def _keep(spec: JSONObject, before: JSONObject) -> None:
    """Fields that were allocated and are not set stay as they are."""
    if needs_address(before) and needs_address(spec):
        if not text(spec, "clusterIP") and text(before, "clusterIP"):
            spec["clusterIP"] = text(before, "clusterIP")
        if not items(spec, "clusterIPs") and items(before, "clusterIPs"):
            spec["clusterIPs"] = items(before, "clusterIPs")
    if needs_node_ports(before) and needs_node_ports(spec):
        earlier = {text(entry, "name"): number(entry.get("nodePort")) for _, entry in objects(before, "ports")}
        used = {*earlier.values()} & {number(entry.get("nodePort")) for _, entry in objects(spec, "ports")}
        for _, entry in objects(spec, "ports"):
            given = earlier.get(text(entry, "name"))
            if not number(entry.get("nodePort")) and given and given not in used:
                entry["nodePort"] = given
    if (
        needs_health_check(before)
        and needs_health_check(spec)
        and not spec.get("healthCheckNodePort")
        and before.get("healthCheckNodePort")
    ):
        spec["healthCheckNodePort"] = before["healthCheckNodePort"]


def _pair_addresses(spec: JSONObject, before: JSONObject) -> None:
    """Clients that know of one address only mean the list as well."""
    first, earlier = text(spec, "clusterIP"), text(before, "clusterIP")
    ips = items(before, "clusterIPs")
    if ips and not items(spec, "clusterIPs") and first == earlier:
        spec["clusterIPs"] = ips
    if first != earlier and items(spec, "clusterIPs") == ips:
        if first:
            spec["clusterIPs"] = [first]
        else:
            spec.pop("clusterIPs", None)


def _still_prefers_two(spec: JSONObject, before: JSONObject) -> bool:
    """A service that prefers two families keeps what it got when it was made, whatever the cluster can do by now."""
    return (
        spec.get("type") == before.get("type")
        and (is_balanced(spec) or is_exposed(spec) or spec.get("type") == "ClusterIP")
        and policy_of(spec) == _PREFER
        and policy_of(before) in ("", _PREFER)
        and items(spec, "clusterIPs") == items(before, "clusterIPs")
        and items(spec, "ipFamilies") == items(before, "ipFamilies")
    )


def _reductions(spec: JSONObject, before: JSONObject | None) -> Errors:
    """Releasing the second family or address needs `SingleStack`, which is enough."""
    errors: Errors = []
    policy = policy_of(spec)
    for field, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        had, has = items(before, field), items(spec, field)
        if before is None or not has:
            continue
        if policy == _SINGLE and has == had:
            spec[field] = has[:1]
        elif policy != _SINGLE and len(has) < len(had):
            complaint = f"must be 'SingleStack' to release the secondary {what}"
            errors.append(invalid_value("spec.ipFamilyPolicy", policy, complaint))
    return errors
