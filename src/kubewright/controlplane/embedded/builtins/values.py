"""Rules about single values that many kinds share: each gives the errors of one field."""

from __future__ import annotations

import ipaddress
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.apimachinery.document import items
from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    invalid_value,
    not_supported,
    required,
    shown,
)
from kubewright.controlplane.embedded.builtins.names import percentage, port_name, port_number

Errors: TypeAlias = list[FieldError]


@dataclass(frozen=True)
class StructError(FieldError):
    """An error that shows a whole struct: its members come in Go's order, where those of maps are sorted."""

    @property
    def body(self) -> str:
        """Everything after the field."""
        whole = FieldError(self.type, self.field, self.value, self.detail).body
        return whole.replace(shown(self.value), msgspec.json.encode(self.value).decode(), 1)


NOT_NEGATIVE = "must be greater than or equal to 0"
_NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NO_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def objects(value: JSONValue, *path: str) -> Iterator[tuple[int, JSONObject]]:
    """The objects of a list with their positions."""
    return ((index, item) for index, item in enumerate(items(value, *path)) if isinstance(item, dict))


def number(value: JSONValue) -> int:
    """An integer; 0 when there is none."""
    return value if isinstance(value, int) else 0


def matching(path: str, value: str, rule: Callable[[str], list[str]]) -> Errors:
    """A string that must obey a rule of `names`."""
    return [invalid_value(path, value, wrong) for wrong in rule(value)]


def present(path: str, value: str, rule: Callable[[str], list[str]]) -> Errors:
    """A string that must be there and obey a rule."""
    return matching(path, value, rule) if value else [required(path)]


def one_of(path: str, value: JSONValue, supported: Sequence[str]) -> Errors:
    """One of the values that are known, named in this order."""
    return [] if value in supported else [not_supported(path, value, supported)]


def not_negative(path: str, value: JSONValue) -> Errors:
    """An integer that is 0 or more, or absent."""
    return [invalid_value(path, value, NOT_NEGATIVE)] if isinstance(value, int) and value < 0 else []


def not_negative_fields(path: str, obj: JSONObject, *names: str) -> Errors:
    """`not_negative` for several fields of an object."""
    return [error for name in names for error in not_negative(f"{path}.{name}", obj.get(name))]


def port(path: str, value: JSONValue) -> Errors:
    """The number of a port."""
    return [invalid_value(path, value, wrong) for wrong in port_number(number(value))]


def port_or_name(path: str, value: JSONValue) -> Errors:
    """The number or the name of a port."""
    if isinstance(value, str):
        return matching(path, value, port_name)
    return port(path, value)


def amount_or_percentage(path: str, value: JSONValue) -> Errors:
    """An integer that is 0 or more, or a percentage."""
    if isinstance(value, str):
        return matching(path, value, percentage)
    return not_negative(path, value)


def not_more_than_all(path: str, value: JSONValue) -> Errors:
    """A percentage up to 100 %."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdigit() and bounded_integer(value[:-1]) > 100:
        return [invalid_value(path, value, "must not be greater than 100%")]
    return []


def is_zero(value: JSONValue) -> bool:
    """0, or 0 %."""
    return value in (0, "0%")


def address(path: str, value: str) -> Errors:
    """An IP address, in a form that can mean one thing only."""
    parsed = parsed_address(value)
    if parsed is None:
        is_octal = parsed_address(_decimal(value)) is not None
        return [invalid_value(path, value, "must not have leading 0s" if is_octal else _NO_ADDRESS)]
    if _is_mapped(parsed):
        return [invalid_value(path, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def _decimal(value: str) -> str:
    """An IPv4 address without the leading zeros that some read as octal."""
    return ".".join(part.lstrip("0") or "0" if part.isdecimal() else part for part in value.split("."))


def _is_mapped(parsed: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None


def parsed_address(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An IP address, or None for anything else."""
    try:
        # Python knows addresses of one interface, Kubernetes does not.
        return ipaddress.ip_address(value) if "%" not in value else None
    except ValueError:
        return None


def network(path: str, value: str) -> Errors:
    """A network in CIDR notation, in a form that can mean one thing only."""
    parsed, (start, _, length) = parsed_network(value), value.partition("/")
    if parsed is None or (length.startswith("0") and length != "0"):
        sloppy = parsed_network(f"{_decimal(start)}/{length.lstrip('0') or '0'}") if length.isdecimal() else None
        why = _NO_NETWORK if sloppy is None else "must not have leading 0s in IP or prefix length"
        return [invalid_value(path, value, why)]
    if _is_mapped(parsed.network_address):
        return [invalid_value(path, value, "must not have an IPv4-mapped IPv6 address")]
    if parsed.network_address != parsed_address(start):
        return [invalid_value(path, value, "must not have bits set beyond the prefix length")]
    return []


def parsed_network(value: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """A network in CIDR notation, or None for anything else."""
    try:
        # Python takes masks for lengths, too.
        return ipaddress.ip_network(value, strict=False) if value.partition("/")[2].isdecimal() else None
    except ValueError:
        return None


def quantity(value: JSONValue) -> Quantity:
    """An amount that has been decoded before; zero when there is none."""
    return Quantity.from_json(value) if isinstance(value, (str, int)) else Quantity(0)


def not_negative_quantity(path: str, value: JSONValue) -> Errors:
    """An amount of 0 or more."""
    return [invalid_value(path, value, NOT_NEGATIVE)] if quantity(value) < Quantity(0) else []


def local_path(path: str, value: str) -> Errors:
    """A relative path that does not lead out of where it begins."""
    if posixpath.isabs(value):
        return [invalid_value(path, value, "must be a relative path")]
    return inward_path(path, value)


def inward_path(path: str, value: str) -> Errors:
    """A path without `..`."""
    return [invalid_value(path, value, "must not contain '..'")] if ".." in value.split("/") else []


def local_unreserved_path(path: str, value: str) -> Errors:
    """A `local_path` that does not begin with two dots, which kubelet needs for itself."""
    errors = local_path(path, value)
    if value.startswith("..") and not value.startswith("../"):
        errors.append(invalid_value(path, value, "must not start with '..'"))
    return errors


def sorted_or_null(labels: JSONObject) -> JSONValue:
    """Labels as errors show them: in order, and null when there are none."""
    return dict(sorted(labels.items())) or None


def unchanged(path: str, new: JSONValue, old: JSONValue) -> Errors:
    """A value that may not change."""
    return [] if new == old else [invalid_value(path, new, "field is immutable")]
