"""The order of the ports in Endpoints and EndpointSlices: by the hash of how Go prints them.

It has no meaning, but it is what `kubectl get endpoints` shows.
"""

from __future__ import annotations

from kubewright.api.core.v1.endpoints import EndpointPort
from kubewright.api.discovery.v1 import EndpointPort as SlicePort

_OFFSET, _PRIME, _MASK = 0x6C62272E07BB014262B821756295C58D, 0x1000000000000000000013B, 2**128 - 1


def endpoint_port_order(port: EndpointPort) -> int:
    """The sort key of a port of Endpoints."""
    return _fnv128a(
        f"(v1.EndpointPort){{Name:(string){port.name or ''} Port:(int32){port.port} "
        f"Protocol:(v1.Protocol){port.protocol or ''} AppProtocol:(*string){_pointed(port.app_protocol)}}}"
    )


def slice_port_order(port: SlicePort) -> int:
    """The sort key of a port of an EndpointSlice."""
    return _fnv128a(
        f"(v1.EndpointPort){{Name:(*string){_pointed(port.name)} Protocol:(*v1.Protocol){_pointed(port.protocol)} "
        f"Port:(*int32){_pointed(port.port)} AppProtocol:(*string){_pointed(port.app_protocol)}}}"
    )


def _pointed(value: str | int | None) -> str:
    return "<nil>" if value is None else str(value)


def _fnv128a(text: str) -> int:
    hashed = _OFFSET
    for byte in text.encode():
        hashed = ((hashed ^ byte) * _PRIME) & _MASK
    return hashed
