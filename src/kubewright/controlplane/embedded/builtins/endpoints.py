"""`Endpoints`, the older list of the addresses behind a service."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.apimachinery.status import invalid_value, required
from kubewright.controlplane.embedded.builtins.containers import PROTOCOLS
from kubewright.controlplane.embedded.builtins.names import dns_label
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    address,
    matching,
    objects,
    one_of,
    parsed_address,
    port,
)
from kubewright.controlplane.embedded.registry.resources import Strategy


def _validate(endpoints: JSONObject) -> Errors:
    """What is wrong with an `Endpoints` object."""
    errors: Errors = []
    for index, subset in objects(endpoints, "subsets"):
        where = f"subsets[{index}]"
        if not items(subset, "addresses") and not items(subset, "notReadyAddresses"):
            errors.append(required(where, "must specify `addresses` or `notReadyAddresses`"))
        for kind in ("addresses", "notReadyAddresses"):
            for position, entry in objects(subset, kind):
                errors += endpoint_address(text(entry, "ip"), f"{where}.{kind}[{position}].ip")
        names = len(items(subset, "ports")) > 1
        for position, entry in objects(subset, "ports"):
            errors += _endpoint_port(entry, f"{where}.ports[{position}]", needs_name=names)
    return errors


def endpoint_address(ip: str, path: str) -> Errors:
    """An address that pods can be reached at: none of the node's own."""
    parsed = parsed_address(ip)
    if parsed is None:
        return [*address(path, ip), invalid_value(path, ip, "must be a valid IP address")]
    for wrong, complaint in (
        (parsed.is_unspecified, f"may not be unspecified ({ip})"),
        (parsed.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (parsed.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    ):
        if wrong:
            return [invalid_value(path, ip, complaint)]
    return []


def _endpoint_port(entry: JSONObject, path: str, *, needs_name: bool) -> Errors:
    name = text(entry, "name")
    errors: Errors = []
    if name:
        errors += matching(f"{path}.name", name, dns_label)
    elif needs_name:
        errors.append(required(f"{path}.name"))
    errors += port(f"{path}.port", entry.get("port"))
    return errors + one_of(f"{path}.protocol", entry.get("protocol"), PROTOCOLS)


ENDPOINTS = Strategy(
    validate=_validate,
    validate_update=lambda new, old: _validate(new),
    create_on_update=True,
)
