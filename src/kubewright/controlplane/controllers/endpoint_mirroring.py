"""Mirroring: Endpoints that were written by hand, for a Service without selector, become EndpointSlices."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from kubewright.api.core.v1 import Endpoints, Service
from kubewright.api.core.v1.endpoints import EndpointAddress, EndpointSubset
from kubewright.api.discovery.v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from kubewright.api.meta import ObjectMeta
from kubewright.controller import Request, Watched, for_object
from kubewright.controlplane.controllers.decoded import Decoded
from kubewright.controlplane.controllers.endpoint_slices import MANAGED_BY, SERVICE_NAME, carry_out, service_of_slice
from kubewright.controlplane.controllers.endpoint_subsets import packed
from kubewright.controlplane.controllers.port_order import slice_port_order
from kubewright.controlplane.controllers.reporting import ReportingController
from kubewright.controlplane.controllers.served_pods import TRIGGER_TIME, Family
from kubewright.controlplane.controllers.slice_packing import Changes, Ports, comparable, identity, key_of, renamed_as

SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"

_MAX_ADDRESSES = 1000
_NOT_COPIED = (TRIGGER_TIME, "kubectl.kubernetes.io/last-applied-configuration")
_LEADER = "control-plane.alpha.kubernetes.io/leader"


class EndpointMirroring(ReportingController):
    """Keeps one slice for each subset and address family of Endpoints that no selector is behind."""

    name = "endpoint-mirroring"
    component = "endpoint-slice-mirroring-controller"
    manager = "endpointslicemirroring-controller.k8s.io"

    _slices: Decoded[EndpointSlice]

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        with cache.watch(EndpointSlice) as slices:
            self._slices = Decoded(slices)
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Endpoints, for_object),
                Watched(cache, Service, for_object),
                Watched(cache, EndpointSlice, service_of_slice(self.manager)),
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Mirror the Endpoints of one Service, or delete what is mirrored of those that should not be."""
        labels = {SERVICE_NAME: request.name, MANAGED_BY: self.manager}
        existing = self._slices.list(namespace=request.namespace, labels=labels)
        endpoints = await self._client.find(Endpoints, request)
        service = await self._client.find(Service, request)
        if endpoints is None or service is None or service.spec.selector or _is_left_alone(endpoints):
            await carry_out(self._client, Changes(delete=existing), f"Endpoints {request}")
            return
        changes = _changes(endpoints, existing, self._desired(endpoints))
        if endpoints.metadata.deletion_timestamp is not None:
            changes.create.clear()
        await carry_out(self._client, changes, f"Endpoints {request}")

    def _desired(self, endpoints: Endpoints) -> dict[tuple[Family, Ports], tuple[list[EndpointPort], list[Endpoint]]]:
        """The ports and endpoints of each slice, by address family and ports."""
        desired: dict[tuple[Family, Ports], tuple[list[EndpointPort], list[Endpoint]]] = {}
        invalid = skipped = 0
        for subset in packed(endpoints.subsets):
            ports, added = _ports(subset), 0
            for address, ready in _addresses(subset):
                if added == _MAX_ADDRESSES:
                    skipped += 1
                elif (parsed := _parsed(address.ip)) is None:
                    invalid += 1
                else:
                    family: Family = "IPv6" if ":" in parsed else "IPv4"
                    _, found = desired.setdefault((family, key_of(ports)), (ports, []))
                    found.append(_endpoint(address, parsed, ready))
                    added += 1
        if invalid:
            note = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
            self._recorder.warning(endpoints, "InvalidIPAddress", note)
        if skipped:
            note = (
                f"A max of {_MAX_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped + invalid} addresses were skipped"
            )
            self._recorder.warning(endpoints, "TooManyAddressesToMirror", note)
        return desired


def _is_left_alone(endpoints: Endpoints) -> bool:
    return endpoints.metadata.labels.get(SKIP_MIRROR) == "true" or _LEADER in endpoints.metadata.annotations


def _changes(
    endpoints: Endpoints,
    existing: list[EndpointSlice],
    desired: dict[tuple[Family, Ports], tuple[list[EndpointPort], list[Endpoint]]],
) -> Changes:
    changes = Changes()
    for (family, key), (ports, wanted) in desired.items():
        same = [one for one in existing if (one.address_type, key_of(one.ports)) == (family, key)]
        new = _new(endpoints, family, ports, wanted)
        if not same:
            changes.create.append(new)
        elif not _is_same(same[0], new):
            changes.update.append(renamed_as(same[0], new))
        changes.delete += same[1:]
    changes.delete += [one for one in existing if (one.address_type, key_of(one.ports)) not in desired]
    changes.recycle(lambda one: True)
    return changes


def _is_same(one: EndpointSlice, other: EndpointSlice) -> bool:
    return (
        one.metadata.labels == other.metadata.labels
        and one.metadata.annotations == other.metadata.annotations
        and one.metadata.owner_references == other.metadata.owner_references
        and {identity(endpoint): comparable(endpoint) for endpoint in one.endpoints}
        == {identity(endpoint): comparable(endpoint) for endpoint in other.endpoints}
    )


def _addresses(subset: EndpointSubset) -> Iterable[tuple[EndpointAddress, bool]]:
    for address in subset.addresses:
        yield address, True
    for address in subset.not_ready_addresses:
        yield address, False


def _parsed(address: str) -> str | None:
    try:
        return str(ip_address(address))
    except ValueError:
        return None


def _endpoint(address: EndpointAddress, parsed: str, ready: bool) -> Endpoint:
    return Endpoint(
        addresses=[parsed],
        conditions=EndpointConditions(ready=ready),
        target_ref=address.target_ref,
        node_name=address.node_name,
        hostname=address.hostname,
    )


def _ports(subset: EndpointSubset) -> list[EndpointPort]:
    ports = [
        EndpointPort(name=port.name or "", port=port.port, protocol=port.protocol, app_protocol=port.app_protocol)
        for port in subset.ports
    ]
    return sorted(ports, key=slice_port_order)


def _new(endpoints: Endpoints, family: Family, ports: list[EndpointPort], wanted: list[Endpoint]) -> EndpointSlice:
    meta = endpoints.metadata
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=f"{meta.name}-",
            namespace=meta.namespace,
            labels=meta.labels | {SERVICE_NAME: meta.name, MANAGED_BY: EndpointMirroring.manager},
            annotations={name: value for name, value in meta.annotations.items() if name not in _NOT_COPIED},
            owner_references=[endpoints.as_owner()],
        ),
        address_type=family,
        ports=ports,
        endpoints=wanted,
    )
