"""Rows of what connects pods: services, endpoints, ingresses, policies and addresses."""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, text
from kubewright.controlplane.embedded.tables.printer import (
    AGE,
    NAME,
    Cells,
    Printer,
    PrinterColumn,
    age_of,
    name_of,
    number,
    wide,
)
from kubewright.controlplane.embedded.tables.selectors import labels_text, selector_or_none

_NONE = "<none>"
_UNSET = "<unset>"
_MAX_SHOWN = 3


def _service(obj: JSONObject, now: float) -> Cells:
    addresses = items(obj, "spec", "clusterIPs")
    return [
        name_of(obj),
        text(obj, "spec", "type"),
        str(addresses[0]) if addresses else _NONE,
        _external_addresses(obj),
        ",".join(_service_port(port) for port in items(obj, "spec", "ports")) or _NONE,
        age_of(obj, now),
        labels_text(at(obj, "spec", "selector")),
    ]


def _service_port(port: JSONValue) -> str:
    node = number(port, "nodePort")
    exposed = f":{node}" if node > 0 else ""
    return f"{number(port, 'port')}{exposed}/{text(port, 'protocol')}"


def _external_addresses(obj: JSONObject) -> str:
    external = ",".join(str(address) for address in items(obj, "spec", "externalIPs"))
    match text(obj, "spec", "type"):
        case "ClusterIP" | "NodePort":
            return external or _NONE
        case "LoadBalancer":
            return ",".join(filter(None, (_load_balancers(obj), external))) or "<pending>"
        case "ExternalName":
            return text(obj, "spec", "externalName")
        case _:
            return "<unknown>"


def _load_balancers(obj: JSONObject) -> str:
    found = items(obj, "status", "loadBalancer", "ingress")
    return ",".join(sorted({text(entry, "ip") or text(entry, "hostname") for entry in found} - {""}))


def _endpoints(obj: JSONObject, now: float) -> Cells:
    if not items(obj, "subsets"):
        return [name_of(obj), _NONE, age_of(obj, now)]
    found: list[str] = []
    for subset in items(obj, "subsets"):
        addresses, ports = items(subset, "addresses"), items(subset, "ports")
        if ports:
            found += [_joined(text(address, "ip"), number(port, "port")) for port in ports for address in addresses]
        else:
            found += [text(address, "ip") for address in addresses]
    return [name_of(obj), _first(found, ""), age_of(obj, now)]


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _first(found: Sequence[str], otherwise: str) -> str:
    """The first few, and how many more there are."""
    shown = ",".join(found[:_MAX_SHOWN])
    return f"{shown} + {len(found) - _MAX_SHOWN} more..." if len(found) > _MAX_SHOWN else shown or otherwise


def _endpoint_slice(obj: JSONObject, now: float) -> Cells:
    ports = [_slice_port(port) for port in items(obj, "ports")]
    addresses = [str(address) for endpoint in items(obj, "endpoints") for address in items(endpoint, "addresses")]
    return [
        name_of(obj),
        text(obj, "addressType"),
        _first(ports, _UNSET),
        _first(addresses, _UNSET),
        age_of(obj, now),
    ]


def _slice_port(port: JSONValue) -> str:
    found, name = at(port, "port"), at(port, "name")
    return str(found) if found is not None else str(name) if name is not None else "*"


def _ingress(obj: JSONObject, now: float) -> Cells:
    class_name = at(obj, "spec", "ingressClassName")
    return [
        name_of(obj),
        _NONE if class_name is None else class_name,
        _hosts(items(obj, "spec", "rules")),
        _load_balancers(obj),
        "80, 443" if items(obj, "spec", "tls") else "80",
        age_of(obj, now),
    ]


def _hosts(rules: Sequence[JSONValue]) -> str:
    shown: list[str] = []
    more = False
    for rule in rules:
        more = more or len(shown) == _MAX_SHOWN
        host = text(rule, "host")
        if host and not more:
            shown.append(host)
    if not shown:
        return "*"
    # The count is of rules, with or without a host: so it is on the real server.
    return f"{','.join(shown)} + {len(rules) - _MAX_SHOWN} more..." if more else ",".join(shown)


def _ingress_class(obj: JSONObject, now: float) -> Cells:
    name = name_of(obj)
    if text(obj, "metadata", "annotations", "ingressclass.kubernetes.io/is-default-class") == "true":
        name += " (default)"
    parameters, cell = at(obj, "spec", "parameters"), _NONE
    if parameters is not None:
        group = text(parameters, "apiGroup")
        cell = f"{text(parameters, 'kind')}{f'.{group}' if group else ''}/{text(parameters, 'name')}"
    return [name, text(obj, "spec", "controller"), cell, age_of(obj, now)]


def _network_policy(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), selector_or_none(at(obj, "spec", "podSelector")), age_of(obj, now)]


def _service_cidr(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), ",".join(str(cidr) for cidr in items(obj, "spec", "cidrs")), age_of(obj, now)]


def _ip_address(obj: JSONObject, now: float) -> Cells:
    parent = at(obj, "spec", "parentRef")
    cell = _NONE
    if parent is not None:
        group, resource = text(parent, "group"), text(parent, "resource")
        steps = [(f"{resource}.{group}" if group else resource).lower(), text(parent, "namespace")]
        cell = "/".join([*filter(None, steps), text(parent, "name")])
    # One cell more than there are columns: so it is on the real server.
    return [name_of(obj), cell, age_of(obj, now)]


PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "services"): Printer(
        (
            NAME,
            PrinterColumn("Type"),
            PrinterColumn("Cluster-IP"),
            PrinterColumn("External-IP"),
            PrinterColumn("Port(s)"),
            AGE,
            wide("Selector"),
        ),
        _service,
    ),
    ("", "endpoints"): Printer((NAME, PrinterColumn("Endpoints"), AGE), _endpoints),
    ("discovery.k8s.io", "endpointslices"): Printer(
        (NAME, PrinterColumn("AddressType"), PrinterColumn("Ports"), PrinterColumn("Endpoints"), AGE), _endpoint_slice
    ),
    ("networking.k8s.io", "ingresses"): Printer(
        (NAME, PrinterColumn("Class"), PrinterColumn("Hosts"), PrinterColumn("Address"), PrinterColumn("Ports"), AGE),
        _ingress,
    ),
    ("networking.k8s.io", "ingressclasses"): Printer(
        (NAME, PrinterColumn("Controller"), PrinterColumn("Parameters"), AGE), _ingress_class
    ),
    ("networking.k8s.io", "networkpolicies"): Printer((NAME, PrinterColumn("Pod-Selector"), AGE), _network_policy),
    ("networking.k8s.io", "servicecidrs"): Printer((NAME, PrinterColumn("CIDRs"), AGE), _service_cidr),
    ("networking.k8s.io", "ipaddresses"): Printer((NAME, PrinterColumn("ParentRef")), _ip_address),
}
