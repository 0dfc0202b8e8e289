"""IP addresses and CIDRs: `cidr('10.0.0.0/8').containsIP(self.address)`."""

from __future__ import annotations

import re
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_interface,
)
from typing import Final, TypeAlias

from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.types import BOOL, INT, STRING, opaque
from kubewright.controlplane.embedded.cel.values import EvaluationError, NoSuchOverload

IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")

Address: TypeAlias = IPv4Address | IPv6Address
Interface: TypeAlias = IPv4Interface | IPv6Interface

_LOCAL_MULTICAST: Final = IPv4Network("224.0.0.0/24")
_LOCAL_UNICAST: Final = IPv4Network("169.254.0.0/16")
_LOCAL_UNICAST_6: Final = IPv6Network("fe80::/10")
_BITS: Final = re.compile(r"0|[1-9][0-9]*")


class _AddressError(ValueError):
    pass


def _address(text: str) -> Address:
    """As Go's netip.ParseAddr, with its complaints about IPv4 and about what is no address at all."""
    first = next((sign for sign in text if sign in ".:%"), "")
    if first == ".":
        return _address_4(text)
    if first == "%":
        raise _AddressError(f'ParseAddr("{text}"): missing IPv6 address')
    if first != ":":
        raise _AddressError(f'ParseAddr("{text}"): unable to parse IP')
    try:
        return IPv6Address(text)
    except ValueError:
        raise _AddressError(f'ParseAddr("{text}"): {_complaint_6(text)}') from None


def _complaint_6(text: str) -> str:
    """What is wrong with an IPv6 address, and where: field by field, as Go reads it."""
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        return "zone must be a non-empty string"
    shortened = rest.startswith("::")
    rest = rest.removeprefix("::")
    fields = 0
    while fields < 8 and rest:
        digits = len(rest) - len(rest.lstrip("0123456789abcdefABCDEF"))
        if digits > 4:
            return f'each group must have 4 or less digits (at "{rest}")'
        if digits == 0:
            return f'each colon-separated field must have at least one digit (at "{rest}")'
        if rest[digits : digits + 1] == ".":
            return _embedded_complaint(rest, fields, shortened=shortened)
        fields += 1
        rest = rest[digits:]
        if rest and rest[0] != ":":
            return f'unexpected character, want colon (at "{rest}")'
        if rest == ":":
            return f'colon must be followed by more characters (at "{rest}")'
        rest = rest[1:]
        if rest.startswith(":"):
            if shortened:
                return f'multiple :: in address (at "{rest}")'
            shortened, rest = True, rest[1:]
    if rest:
        return f'trailing garbage after address (at "{rest}")'
    return "the :: must expand to at least one field of zeros" if fields == 8 else "address string too short"


def _embedded_complaint(rest: str, fields: int, *, shortened: bool) -> str:
    if not shortened and fields != 6:
        return f'embedded IPv4 address must replace the final 2 fields of the address (at "{rest}")'
    if fields > 6:
        return f'too many hex fields to fit an embedded IPv4 at the end of the address (at "{rest}")'
    try:
        _address_4(rest)
    except _AddressError as error:
        return str(error).partition("): ")[2]
    return "address string too short"


def _address_4(text: str) -> IPv4Address:
    fields = text.split(".")
    for index, part in enumerate(fields):
        rest = text[sum(len(other) + 1 for other in fields[:index]) :]
        wrong = re.search(r"[^0-9]", part)
        if wrong is not None:
            raise _AddressError(f'ParseAddr("{text}"): unexpected character (at "{rest[wrong.start() :]}")')
        if not part:
            where = rest if rest.startswith(".") else "." + rest
            raise _AddressError(f'ParseAddr("{text}"): IPv4 field must have at least one digit (at "{where}")')
        if len(part) > 1 and part[0] == "0":
            raise _AddressError(f'ParseAddr("{text}"): IPv4 field has octet with leading zero')
        if bounded_integer(part) > 255:
            raise _AddressError(f'ParseAddr("{text}"): IPv4 field has value >255')
        if index == 4:
            raise _AddressError(f'ParseAddr("{text}"): IPv4 address too long')
    if len(fields) < 4:
        raise _AddressError(f'ParseAddr("{text}"): IPv4 address too short')
    return IPv4Address(text)


def parsed_ip(text: str) -> Address:
    """The address that a text stands for."""
    try:
        address = _address(text)
    except _AddressError as error:
        raise EvaluationError(f'IP Address "{text}" parse error during conversion from string: {error}') from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
        if address.ipv4_mapped is not None:
            raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def _is_ip(text: str) -> bool:
    try:
        parsed_ip(text)
    except EvaluationError:
        return False
    return True


_CONVERSION: Final = "network address parse error during conversion from string"


def parsed_cidr(text: str) -> Interface:
    """The network that a text stands for, with the address as it was written."""
    try:
        return _interface(text)
    except _AddressError as error:
        raise EvaluationError(f"{_CONVERSION}: {error}") from None


def _interface(text: str) -> Interface:
    complaint = f'{_CONVERSION}: netip.ParsePrefix("{text}")'
    name, slash, bits = text.rpartition("/")
    if not slash:
        raise _AddressError(f"{complaint}: no '/'")
    try:
        address = _address(name)
    except _AddressError as error:
        raise _AddressError(f"{complaint}: {error}") from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise _AddressError(f"{complaint}: IPv6 zones cannot be present in a prefix")
    if not _BITS.fullmatch(bits):
        raise _AddressError(f'{complaint}: bad bits after slash: "{bits}"')
    if bounded_integer(bits) > address.max_prefixlen:
        raise _AddressError(f"{complaint}: prefix length out of range")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise _AddressError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return ip_interface(f"{address}/{bits}")


def _is_cidr(text: str) -> bool:
    try:
        parsed_cidr(text)
    except EvaluationError:
        return False
    return True


def _contains_ip_text(network: Interface, text: str) -> bool:
    try:
        return _contains_ip(network, parsed_ip(text))
    except EvaluationError:
        raise NoSuchOverload from None


def _contains_ip(network: Interface, address: Address) -> bool:
    return address.version == network.version and address in network.network


def _contains_cidr(network: Interface, other: Interface) -> bool:
    if isinstance(network, IPv4Interface):
        return isinstance(other, IPv4Interface) and other.network.subnet_of(network.network)
    return isinstance(other, IPv6Interface) and other.network.subnet_of(network.network)


def _is_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address in _LOCAL_MULTICAST
    return (int(address) >> 112) & 0xFF0F == 0xFF02


def _is_local_unicast(address: Address) -> bool:
    return address in (_LOCAL_UNICAST if isinstance(address, IPv4Address) else _LOCAL_UNICAST_6)


def _is_global_unicast(address: Address) -> bool:
    if isinstance(address, IPv4Address) and int(address) == 0xFFFFFFFF:
        return False
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not special and not _is_local_unicast(address)


NETWORK_FUNCTIONS: Final[list[Overload]] = [
    function("ip", [STRING], IP, parsed_ip),
    method("family", [IP], INT, lambda address: address.version),
    function("ip.isCanonical", [STRING], BOOL, lambda text: str(parsed_ip(text)) == text),
    method("isUnspecified", [IP], BOOL, lambda address: address.is_unspecified),
    method("isLoopback", [IP], BOOL, lambda address: address.is_loopback),
    method("isLinkLocalMulticast", [IP], BOOL, _is_local_multicast),
    method("isLinkLocalUnicast", [IP], BOOL, _is_local_unicast),
    method("isGlobalUnicast", [IP], BOOL, _is_global_unicast),
    function("isIP", [STRING], BOOL, _is_ip),
    function("string", [IP], STRING, str),
    function("cidr", [STRING], CIDR, parsed_cidr),
    method("containsIP", [CIDR, STRING], BOOL, _contains_ip_text),
    method("containsIP", [CIDR, IP], BOOL, _contains_ip),
    method("containsCIDR", [CIDR, STRING], BOOL, lambda network, text: _contains_cidr(network, parsed_cidr(text))),
    method("containsCIDR", [CIDR, CIDR], BOOL, _contains_cidr),
    method("ip", [CIDR], IP, lambda network: network.ip),
    method("prefixLength", [CIDR], INT, lambda network: network.network.prefixlen),
    method("masked", [CIDR], CIDR, lambda network: ip_interface(network.network)),
    function("isCIDR", [STRING], BOOL, _is_cidr),
    function("string", [CIDR], STRING, str),
]
