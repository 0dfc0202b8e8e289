"""Ingresses, network policies, endpoint slices, and the addresses services get."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import duplicate, forbidden_field, invalid_value, required
from kubewright.controlplane.embedded.builtins.containers import PROTOCOLS
from kubewright.controlplane.embedded.builtins.endpoints import endpoint_address
from kubewright.controlplane.embedded.builtins.label_selectors import validate_selector
from kubewright.controlplane.embedded.builtins.names import (
    dns_label,
    dns_subdomain,
    explained,
    port_name,
    wildcard_subdomain,
)
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    address,
    matching,
    network,
    number,
    objects,
    one_of,
    parsed_address,
    parsed_network,
    port,
    present,
    unchanged,
)
from kubewright.controlplane.embedded.registry.resources import Strategy

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS = ("/..", "/.")
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def _host(host: str, path: str) -> Errors:
    return matching(path, host, wildcard_subdomain if "*" in host else dns_subdomain)


def _validate_ingress(ingress: JSONObject) -> Errors:
    spec = mapping(ingress, "spec")
    errors: Errors = []
    if not items(spec, "rules") and "defaultBackend" not in spec:
        errors.append(invalid_value("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if "defaultBackend" in spec:
        errors += _backend(mapping(spec, "defaultBackend"), "spec.defaultBackend")
    for index, rule in objects(spec, "rules"):
        where = f"spec.rules[{index}]"
        host = text(rule, "host")
        if host:
            if parsed_address(host) is not None:
                errors.append(invalid_value(f"{where}.host", host, "must be a DNS name, not an IP address"))
            errors += _host(host, f"{where}.host")
        if "http" in rule:
            if not items(rule, "http", "paths"):
                errors.append(required(f"{where}.http.paths"))
            for position, entry in objects(rule, "http", "paths"):
                errors += _path(entry, f"{where}.http.paths[{position}]")
    for index, tls in objects(spec, "tls"):
        for position, host_name in enumerate(items(tls, "hosts")):
            errors += _host(str(host_name), f"spec.tls[{index}].hosts[{position}]")
        if text(tls, "secretName"):
            errors += matching(f"spec.tls[{index}].secretName", text(tls, "secretName"), dns_subdomain)
    if "ingressClassName" in spec:
        errors += matching("spec.ingressClassName", text(spec, "ingressClassName"), dns_subdomain)
    return errors


def _path(entry: JSONObject, path: str) -> Errors:
    kind, http_path = entry.get("pathType"), text(entry, "path")
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors: Errors = []
    where = f"{path}.path"
    if kind in ("Exact", "Prefix"):
        if not http_path.startswith("/"):
            errors.append(invalid_value(where, http_path, "must be an absolute path"))
        for sequence in _FORBIDDEN_SEQUENCES:
            if sequence in http_path:
                errors.append(invalid_value(where, http_path, f"must not contain '{sequence}'"))
        for end in _FORBIDDEN_ENDS:
            if http_path.endswith(end):
                errors.append(invalid_value(where, http_path, f"cannot end with '{end}'"))
    elif kind == "ImplementationSpecific":
        if http_path and not http_path.startswith("/"):
            errors.append(invalid_value(where, http_path, "must be an absolute path"))
    else:
        errors += one_of(f"{path}.pathType", kind, _PATH_TYPES)
    return errors + _backend(mapping(entry, "backend"), f"{path}.backend")


def _backend(backend: JSONObject, path: str) -> Errors:
    if "resource" in backend and "service" in backend:
        return [invalid_value(path, "", "cannot set both resource and service backends")]
    if "resource" in backend:
        resource = mapping(backend, "resource")
        return [required(f"{path}.resource.{field}") for field in ("kind", "name") if not text(resource, field)]
    if "service" not in backend:
        return [invalid_value(path, "", "resource or service backend is required")]
    service = mapping(backend, "service")
    errors = present(f"{path}.service.name", text(service, "name"), dns_label)
    name, position = text(service, "port", "name"), mapping(service, "port").get("number")
    if name and position:
        errors.append(invalid_value(path, "", "cannot set both port name & port number"))
    elif name:
        errors += matching(f"{path}.service.port.name", name, port_name)
    elif position:
        errors += port(f"{path}.service.port.number", position)
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def _validate_new_ingress(ingress: JSONObject) -> Errors:
    errors = _validate_ingress(ingress)
    annotated, named = mapping(ingress, "metadata", "annotations").get(_CLASS_ANNOTATION), mapping(ingress, "spec")
    if annotated is not None and "ingressClassName" in named and annotated != named["ingressClassName"]:
        complaint = "must match `ingressClassName` when both are specified"
        errors.append(invalid_value(f"annotations.{_CLASS_ANNOTATION}", annotated, complaint))
    return errors


INGRESS = Strategy(
    validate=_validate_new_ingress,
    validate_update=lambda new, old: _validate_ingress(new),
    has_generation=True,
)


def _validate_ingress_class(ingress_class: JSONObject) -> Errors:
    controller = text(ingress_class, "spec", "controller")
    if not controller:
        return [required("spec.controller")]
    domain, mark, http_path = controller.partition("/")
    if not mark or not domain or not http_path:
        complaint = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [invalid_value("spec.controller", controller, complaint)]
    errors = matching("spec.controller", domain, dns_subdomain)
    if any(character.isspace() for character in http_path):
        errors.append(invalid_value("spec.controller", http_path, explained("Invalid path", _HTTP_PATH)))
    return errors


INGRESS_CLASS = Strategy(
    validate=_validate_ingress_class,
    validate_update=lambda new, old: unchanged(
        "spec.controller", text(new, "spec", "controller"), text(old, "spec", "controller")
    ),
    has_generation=True,
)


def _validate_network_policy(policy: JSONObject) -> Errors:
    spec = mapping(policy, "spec")
    errors = validate_selector(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in objects(spec, direction):
            where = f"spec.{direction}[{index}]"
            for position, entry in objects(rule, "ports"):
                errors += _policy_port(entry, f"{where}.ports[{position}]")
            for position, peer in objects(rule, peers):
                errors += _policy_peer(peer, f"{where}.{peers}[{position}]")
    types = items(spec, "policyTypes")
    if len(types) > 2:
        return [*errors, invalid_value("spec.policyTypes", types, "may not specify more than two policyTypes")]
    for index, kind in enumerate(types):
        errors += one_of(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))
    return errors


def _policy_port(entry: JSONObject, path: str) -> Errors:
    errors = one_of(f"{path}.protocol", entry.get("protocol"), ("TCP", "UDP", "SCTP"))
    first, last = entry.get("port"), entry.get("endPort")
    if isinstance(first, int):
        errors += port(f"{path}.port", first)
        if last is not None:
            if number(last) < first:
                errors.append(invalid_value(f"{path}.endPort", first, "must be greater than or equal to `port`"))
            errors += port(f"{path}.endPort", last)
    elif last is not None:
        why = "non-numeric" if isinstance(first, str) else "not specified"
        errors.append(invalid_value(f"{path}.endPort", last, f"may not be specified when `port` is {why}"))
    if isinstance(first, str):
        errors += matching(f"{path}.port", first, port_name)
    return errors


def _policy_peer(peer: JSONObject, path: str) -> Errors:
    errors = validate_selector(peer.get("podSelector"), f"{path}.podSelector")
    errors += validate_selector(peer.get("namespaceSelector"), f"{path}.namespaceSelector")
    if "ipBlock" in peer:
        errors += _ip_block(mapping(peer, "ipBlock"), f"{path}.ipBlock")
        if len(peer) > 1:
            errors.append(forbidden_field(path, "may not specify both ipBlock and another peer"))
    if not peer:
        errors.append(required(path, "must specify a peer"))
    return errors


def _ip_block(block: JSONObject, path: str) -> Errors:
    cidr = text(block, "cidr")
    if not cidr:
        return [required(f"{path}.cidr")]
    errors = network(f"{path}.cidr", cidr)
    outer = parsed_network(cidr)
    if outer is None:
        return errors
    for index, value in enumerate(items(block, "except")):
        where = f"{path}.except[{index}]"
        errors += network(where, str(value))
        inner = parsed_network(str(value))
        if inner is not None and (
            inner.network_address not in outer or outer.prefixlen >= inner.prefixlen or inner.version != outer.version
        ):
            errors.append(invalid_value(where, value, "must be a strict subset of `cidr`"))
    return errors


NETWORK_POLICY = Strategy(
    validate=_validate_network_policy,
    validate_update=lambda new, old: _validate_network_policy(new),
    has_generation=True,
)


def _validate_endpoint_slice(endpoint_slice: JSONObject) -> Errors:
    kind = text(endpoint_slice, "addressType")
    if not kind:
        return [required("addressType")]
    errors = one_of("addressType", kind, ("FQDN", "IPv4", "IPv6"))
    for index, endpoint in objects(endpoint_slice, "endpoints"):
        where = f"endpoints[{index}].addresses"
        found = items(endpoint, "addresses")
        if not found:
            errors.append(required(where, "must contain at least 1 address"))
        for position, value in enumerate(found):
            errors += _slice_address(str(value), kind, f"{where}[{position}]")
    names: set[str] = set()
    for index, entry in objects(endpoint_slice, "ports"):
        where = f"ports[{index}]"
        name = text(entry, "name")
        if name in names:
            errors.append(duplicate(f"{where}.name", name))
        names.add(name)
        if name:
            errors += matching(f"{where}.name", name, dns_label)
        errors += one_of(f"{where}.protocol", entry.get("protocol"), PROTOCOLS)
        if "port" in entry:
            errors += port(f"{where}.port", entry["port"])
    return errors


def _slice_address(value: str, kind: str, path: str) -> Errors:
    if kind == "FQDN":
        return matching(path, value, dns_subdomain)
    parsed = parsed_address(value)
    if parsed is None:
        return address(path, value)
    if kind in ("IPv4", "IPv6") and kind != f"IPv{parsed.version}":
        return [invalid_value(path, value, f"must be an {kind} address")]
    return endpoint_address(value, path)


def _slice_generation(new: JSONObject, old: JSONObject) -> bool:
    ignored = ("metadata", "apiVersion", "kind")
    return any(new.get(name) != old.get(name) for name in {*new, *old} if name not in ignored) or (
        mapping(new, "metadata", "labels") != mapping(old, "metadata", "labels")
    )


ENDPOINT_SLICE = Strategy(
    validate=_validate_endpoint_slice,
    validate_update=lambda new, old: (
        unchanged("addressType", new.get("addressType"), old.get("addressType")) or _validate_endpoint_slice(new)
    ),
    has_generation=True,
    changes_generation=_slice_generation,
)


def _ip_name(value: str) -> str | None:
    parsed = parsed_address(value)
    if parsed is None or str(parsed) != value:
        return "must be a valid IP address in canonical form"
    return None


def _validate_ip_address(ip_address: JSONObject) -> Errors:
    reference = ip_address.get("spec")
    parent = mapping(reference, "parentRef")
    if not parent:
        return [required("spec.parentRef")]
    return [required(f"spec.parentRef.{field}") for field in ("resource", "name") if not text(parent, field)]


IP_ADDRESS = Strategy(
    validate=_validate_ip_address,
    validate_update=lambda new, old: unchanged(
        "spec.parentRef", mapping(new, "spec").get("parentRef"), mapping(old, "spec").get("parentRef")
    ),
    validate_name=_ip_name,
)


def _validate_service_cidr(service_cidr: JSONObject) -> Errors:
    cidrs = items(service_cidr, "spec", "cidrs")
    if not cidrs:
        return [required("spec.cidrs", "at least one CIDR required")]
    return [error for index, cidr in enumerate(cidrs) for error in _canonical(f"spec.cidrs[{index}]", str(cidr))]


def _canonical(path: str, cidr: str) -> Errors:
    if errors := network(path, cidr):
        return errors
    canonical = str(parsed_network(cidr))
    return [] if canonical == cidr else [invalid_value(path, cidr, f'must be in canonical form ("{canonical}")')]


SERVICE_CIDR = Strategy(
    validate=_validate_service_cidr,
    validate_update=lambda new, old: unchanged("spec.cidrs", items(new, "spec", "cidrs"), items(old, "spec", "cidrs")),
)
