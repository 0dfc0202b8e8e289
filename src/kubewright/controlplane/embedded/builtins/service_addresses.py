"""The addresses of services: which services need what, and which addresses and families go together."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.apimachinery.status import duplicate, invalid_value, required
from kubewright.controlplane.embedded.builtins.values import Errors, address, one_of, parsed_address

_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")


def needs_address(spec: JSONObject) -> bool:
    """Whether the service has cluster IPs or is headless."""
    return spec.get("type") != "ExternalName"


def is_balanced(spec: JSONObject) -> bool:
    """Whether there is a load balancer before the service."""
    return spec.get("type") == "LoadBalancer"


def is_exposed(spec: JSONObject) -> bool:
    """Whether the service may have ports on every node."""
    return spec.get("type") in ("NodePort", "LoadBalancer")


def needs_node_ports(spec: JSONObject) -> bool:
    """Whether the service gets ports on every node without requesting them."""
    return spec.get("type") == "NodePort" or (
        is_balanced(spec) and spec.get("allocateLoadBalancerNodePorts") is not False
    )


def needs_health_check(spec: JSONObject) -> bool:
    """Whether a load balancer must health-check nodes for pods of the service."""
    return is_balanced(spec) and spec.get("externalTrafficPolicy") == "Local"


def is_headless(spec: JSONObject) -> bool:
    """Whether the service is headless."""
    return items(spec, "clusterIPs") == ["None"]


def policy_of(spec: JSONObject) -> str:
    """The IP family policy of the service; empty when not set."""
    return text(spec, "ipFamilyPolicy")


def validate_addresses(spec: JSONObject, before: JSONObject | None) -> Errors:
    """What is wrong with addresses and families, each and together. Addresses of `before` were right once."""
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
        errors += one_of("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], _POLICIES)
    wrong: Errors = []
    for index, ip in enumerate(ips):
        if ip != "None" or index > 0:
            wrong += [] if ip in items(before, "clusterIPs") else address(f"spec.clusterIPs[{index}]", str(ip))
        elif len(ips) > 1:
            wrong.append(invalid_value("spec.clusterIPs", ips, "'None' must be the first and only value"))
    errors += wrong
    if len(ips) > 2:
        errors.append(invalid_value("spec.clusterIPs", ips, "may only hold up to 2 values"))
    # Together they are only judged when each of them is one.
    return errors if wrong else errors + _together(spec)


def _together(spec: JSONObject) -> Errors:
    ips, families = items(spec, "clusterIPs"), items(spec, "ipFamilies")
    if is_headless(spec):
        return []
    versions = [parsed.version for parsed in (parsed_address(str(ip)) for ip in ips) if parsed is not None]
    errors: Errors = []
    if len(ips) > 1 and len(set(versions)) < 2:
        errors.append(invalid_value("spec.clusterIPs", ips, "may specify no more than one IP for each IP family"))
    for index, (family, version) in enumerate(zip(families, versions, strict=False)):
        if family in ("IPv4", "IPv6") and family != f"IPv{version}":
            complaint = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid_value(f"spec.clusterIPs[{index}]", ips[index], complaint))
    return errors


def validate_address_change(spec: JSONObject, before: JSONObject) -> Errors:
    """A second address or family may come and go; the first ones stay, unless there are none at all."""
    if not needs_address(spec) or not needs_address(before) or (is_headless(spec) and is_headless(before)):
        return []
    errors: Errors = []
    ips, earlier = items(spec, "clusterIPs"), items(before, "clusterIPs")
    changed = "may not change once set"
    if len(ips) == len(earlier):
        errors += [
            invalid_value(f"spec.clusterIPs[{index}]", ips, changed)
            for index, ip in enumerate(earlier)
            if ip != ips[index]
        ]
    elif not ips:
        errors.append(invalid_value("spec.clusterIPs[0]", None, "primary clusterIP can not be unset"))
    elif earlier and ips[0] != earlier[0]:
        errors.append(invalid_value("spec.clusterIPs[0]", ips, changed))
    if is_headless(spec) or is_headless(before):
        return errors
    families, known = items(spec, "ipFamilies"), items(before, "ipFamilies")
    if families[:1] != known[:1]:
        # kube-apiserver shows the addresses when the number of families differs as well.
        shown = families if len(families) == len(known) else ips
        errors.append(invalid_value("spec.ipFamilies[0]", shown or None, changed))
    return errors
