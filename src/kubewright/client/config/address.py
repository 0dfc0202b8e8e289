"""Where to connect: the server's address, and the proxy on the way to it.

`parse_server` and `parse_proxy` raise `ValueError` with a phrase that says what was found and what was expected; the
caller knows which file and entry to name. User names and passwords inside an address are never part of a phrase.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from kubewright.client.errors import ConfigError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_USER_INFORMATION = r"[^/\s]*@"


def parse_server(text: str) -> str:
    """`https://host:port` plus the path prefix, if any: port explicit, no slash at the end, no query."""
    parts = _split(text)
    if parts.username is not None:
        raise ValueError(f'"{_redacted(text)}" holds a user name or password; give them in the user entry')
    return f"{parts.scheme}://{_authority(parts)}{parts.path.rstrip('/')}"


def parse_proxy(text: str) -> str:
    """`http://[user:password@]host:port`, or https."""
    parts = _split(text)
    information, at, _ = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{information}{at}{_authority(parts)}"


def proxy_from_environment(server: str, environment: Mapping[str, str]) -> str | None:
    """The proxy for `server` by `HTTPS_PROXY` (`HTTP_PROXY` for a plain server) and `NO_PROXY`, read as Go reads them.

    Loopback addresses never go through a proxy. One that cannot be used is a `ConfigError`.
    """
    parts = urlsplit(server)
    variable = f"{parts.scheme.upper()}_PROXY"
    text = _variable(environment, variable)
    if not text or _is_direct(parts, _variable(environment, "NO_PROXY")):
        return None
    try:
        return parse_proxy(text if "://" in text else f"http://{text}")
    except ValueError as error:
        raise ConfigError(f"the environment variable {variable} cannot be used: {error}") from None


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower(), "")


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        raise ValueError(f'"{_redacted(text)}" is not a URL; expected one like https://host:6443') from None
    if parts.scheme.startswith("socks"):
        raise ValueError(f'"{_redacted(text)}": {parts.scheme} is not supported; expected http or https')
    if (
        parts.scheme not in _DEFAULT_PORTS
        or not parts.hostname
        or port == 0
        or re.search(r"[\s\x00-\x1f]", text.strip())
    ):
        raise ValueError(f'"{_redacted(text)}" is not an http or https URL; expected one like https://host:6443')
    return parts


def _authority(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"{f'[{host}]' if ':' in host else host}:{_port(parts)}"


def _port(parts: SplitResult) -> int:
    return parts.port or _DEFAULT_PORTS[parts.scheme]


def _redacted(text: str) -> str:
    return re.sub(_USER_INFORMATION, "…@", text)


def _is_direct(server: SplitResult, exceptions: str) -> bool:
    host, port = server.hostname or "", _port(server)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in exceptions.split(","))
    return any(_matches(entry, host, port, address) for entry in entries if entry)


def _matches(entry: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, wanted_port = _host_and_port(entry)
    if wanted_port and wanted_port != str(port):
        return False
    if address is not None:
        try:
            return ipaddress.ip_address(name) == address
        except ValueError:
            return False
    name = name.removeprefix("*")
    # "example.com" also stands for its subdomains, ".example.com" and "*.example.com" for these only.
    return bool(name) and (host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}"))


def _host_and_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        host, _, port = entry[1:].partition("]")
        return host, port.removeprefix(":")
    if entry.count(":") == 1:
        host, _, port = entry.partition(":")
        return host, port
    return entry, ""
