"""The addresses in Endpoints, in subsets that have all their ports in common.

Nothing here talks to a server.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from kubewright.api.core.v1 import ObjectReference, Pod, Service
from kubewright.api.core.v1.endpoints import EndpointAddress, EndpointPort, EndpointSubset
from kubewright.controlplane.controllers.pods import is_ready
from kubewright.controlplane.controllers.port_order import endpoint_port_order
from kubewright.controlplane.controllers.served_pods import (
    addresses_of,
    families_of,
    has_address,
    host_name,
    target_port,
)

MAX_ADDRESSES = 1000


def subsets_of(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """The addresses of the pods at the ports of the service, packed."""
    parts: list[EndpointSubset] = []
    any_state = bool(service.spec.publish_not_ready_addresses)
    for pod in pods:
        if not has_address(pod) or (pod.metadata.deletion_timestamp is not None and not any_state):
            continue
        address = _address(service, pod)
        if address is None:
            continue
        ready = any_state or is_ready(pod)
        for ports in _ports(service, pod):
            parts.append(
                EndpointSubset(addresses=[address], ports=ports)
                if ready
                else EndpointSubset(not_ready_addresses=[address], ports=ports)
            )
    return packed(parts)


def _address(service: Service, pod: Pod) -> EndpointAddress | None:
    found = next(iter(addresses_of(pod, families_of(service)[0])), None)
    if found is None:
        return None
    meta = pod.metadata
    return EndpointAddress(
        ip=found,
        node_name=pod.spec.node_name,
        hostname=host_name(pod, service),
        target_ref=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
    )


def _ports(service: Service, pod: Pod) -> Iterable[list[EndpointPort]]:
    if not service.spec.ports and service.spec.cluster_ip == "None":
        yield []
    for port in service.spec.ports:
        number = target_port(pod, port)
        if number is not None:
            yield [
                EndpointPort(
                    name=port.name, port=number, protocol=port.protocol or "TCP", app_protocol=port.app_protocol
                )
            ]


def packed(subsets: Iterable[EndpointSubset]) -> list[EndpointSubset]:
    """The same addresses and ports in as few subsets as possible, in an order that depends on nothing else.

    An address that is not ready in one of them is ready in none with the same port.
    """
    addresses: dict[tuple[str, str], EndpointAddress] = {}
    ports_by_hash: dict[int, EndpointPort] = {}
    offered: dict[int | None, dict[tuple[str, str], bool]] = {}
    for subset in subsets:
        hashes = {endpoint_port_order(port): port for port in subset.ports}
        ports_by_hash |= hashes
        for hashed in hashes or (None,):
            states = offered.setdefault(hashed, {})
            for found, ready in ((subset.addresses, True), (subset.not_ready_addresses, False)):
                for address in found:
                    key = address.ip, (address.target_ref.uid if address.target_ref is not None else None) or ""
                    addresses.setdefault(key, address)
                    states[key] = states.get(key, True) and ready
    together: dict[frozenset[tuple[tuple[str, str], bool]], list[int]] = {}
    for hashed, states in offered.items():
        hashes_of = together.setdefault(frozenset(states.items()), [])
        if hashed is not None:
            hashes_of.append(hashed)
    packed_subsets = [
        (
            sorted(hashes_of),
            EndpointSubset(
                addresses=[addresses[key] for key, ready in sorted(states) if ready],
                not_ready_addresses=[addresses[key] for key, ready in sorted(states) if not ready],
                ports=[ports_by_hash[hashed] for hashed in sorted(hashes_of)],
            ),
        )
        for states, hashes_of in together.items()
    ]
    return [subset for _, subset in sorted(packed_subsets, key=lambda one: one[0])]


def truncated(subsets: Sequence[EndpointSubset]) -> list[EndpointSubset] | None:
    """No more than a thousand addresses, the ready ones first, each subset in proportion; None when they fit."""
    ready = sum(len(subset.addresses) for subset in subsets)
    unready = sum(len(subset.not_ready_addresses) for subset in subsets)
    if ready + unready <= MAX_ADDRESSES:
        return None
    cuts_ready = ready > MAX_ADDRESSES
    room = left = MAX_ADDRESSES if cuts_ready else MAX_ADDRESSES - ready
    result = []
    for subset in subsets:
        listed = subset.addresses if cuts_ready else subset.not_ready_addresses
        share = min(math.ceil(len(listed) / (ready if cuts_ready else unready) * room), left)
        kept = listed[:share]
        left -= len(kept)
        result.append(
            msgspec.structs.replace(subset, addresses=kept, not_ready_addresses=[])
            if cuts_ready
            else msgspec.structs.replace(subset, not_ready_addresses=kept)
        )
    return result


def without_revisions(subsets: Iterable[EndpointSubset]) -> list[EndpointSubset]:
    """The subsets for a comparison: of which revision a pod was does not matter."""
    return [
        msgspec.structs.replace(
            subset,
            addresses=[_without_revision(one) for one in subset.addresses],
            not_ready_addresses=[_without_revision(one) for one in subset.not_ready_addresses],
        )
        for subset in subsets
    ]


def _without_revision(address: EndpointAddress) -> EndpointAddress:
    if address.target_ref is None:
        return address
    return msgspec.structs.replace(
        address, target_ref=msgspec.structs.replace(address.target_ref, resource_version=None)
    )
