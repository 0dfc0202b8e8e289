"""EndpointSlices: the pods that a Service selects, a hundred to a slice, one set of slices for each address family."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from kubewright.api.core.v1 import Node, ObjectReference, Pod, Service
from kubewright.api.discovery.v1 import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    EndpointSlice,
    ForNode,
    ForZone,
)
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.cache import CachedClient
from kubewright.controller import Event, Handler, Request, Watched
from kubewright.controlplane.controllers.decoded import Decoded
from kubewright.controlplane.controllers.pods import is_ready
from kubewright.controlplane.controllers.port_order import slice_port_order
from kubewright.controlplane.controllers.reporting import ReportingController, is_refused_by_deletion, message_of
from kubewright.controlplane.controllers.served_pods import (
    HEADLESS,
    TRIGGER_TIME,
    Family,
    Selectors,
    TriggerTimes,
    addresses_of,
    families_of,
    has_address,
    host_name,
    is_headless,
    target_port,
)
from kubewright.controlplane.controllers.slice_packing import Changes, Ports, key_of, pack

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"

_RESERVED = (SERVICE_NAME, MANAGED_BY, HEADLESS)
_ZONE = "topology.kubernetes.io/zone"
_PREFERENCES = ("PreferClose", "PreferSameZone", "PreferSameNode")


class EndpointSlices(ReportingController):
    """Keeps the slices of every Service that selects pods. A Service without endpoints has an empty one."""

    name = "endpoint-slices"
    component = "endpoint-slice-controller"
    manager = "endpointslice-controller.k8s.io"

    _pods: Decoded[Pod]
    _slices: Decoded[EndpointSlice]

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache, selectors = self._runtime.cache, Selectors()
        self._times = TriggerTimes()
        with cache.watch(Pod) as pods, cache.watch(EndpointSlice) as slices, cache.watch(Node):
            self._pods, self._slices = Decoded(pods), Decoded(slices)
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Service, Handler(selectors.service_changed)),
                Watched(cache, Pod, Handler(selectors.pod_changed)),
                Watched(cache, EndpointSlice, service_of_slice(self.manager)),
                # Pods on a node that is not there are left out until it is.
                Watched(cache, Node, Handler(lambda event: selectors.services if event.old is None else ())),
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Write the slices of one Service. Those of one that is gone are the garbage collector's."""
        service = await self._client.find(Service, request)
        if service is None:
            self._times.forget(request)
            return
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return
        pods = self._pods.list(namespace=service.metadata.namespace, labels=service.spec.selector)
        labels = {SERVICE_NAME: service.metadata.name, MANAGED_BY: self.manager}
        existing = self._slices.list(namespace=service.metadata.namespace, labels=labels)
        changed_at = self._times.note(service, pods)
        families = families_of(service)
        try:
            for one in existing:
                if one.address_type not in families:
                    await self._client.delete(one, uid=one.metadata.uid, missing_ok=True)
            zones = await self._zones(pods)
            for family in families:
                present = [one for one in existing if one.address_type == family]
                await self._carry_out(service, _changes(service, pods, present, family, zones), changed_at)
        except KubernetesError as error:
            self._report(service, message_of(error))
            raise
        where = f"{service.metadata.namespace}/{service.metadata.name}"
        skipped = [
            f"skipping Pod {pod.metadata.name} for Service {where}: Node {pod.spec.node_name or ''} Not Found"
            for pod in pods
            if has_address(pod) and not _is_placed(service, pod, zones)
        ]
        if skipped:
            self._report(service, skipped[0] if len(skipped) == 1 else f"[{', '.join(skipped)}]")

    def _report(self, service: Service, why: str) -> None:
        note = f"Error updating Endpoint Slices for Service {service.metadata.namespace}/{service.metadata.name}: {why}"
        self._recorder.warning(service, "FailedToUpdateEndpointSlices", note)

    async def _zones(self, pods: Iterable[Pod]) -> dict[str, str]:
        """The zones of the nodes of pods; empty for a node without one, and no entry for one that is not there."""
        zones = {}
        for name in {pod.spec.node_name for pod in pods if pod.spec.node_name}:
            if (node := await self._client.find(Node, name)) is not None:
                zones[name] = node.metadata.labels.get(_ZONE, "")
        return zones

    async def _carry_out(self, service: Service, changes: Changes, changed_at: str | None) -> None:
        for one in (*changes.create, *changes.update):
            annotations = {name: value for name, value in one.metadata.annotations.items() if name != TRIGGER_TIME}
            one.metadata.annotations = annotations | ({TRIGGER_TIME: changed_at} if changed_at is not None else {})
        if service.metadata.deletion_timestamp is not None:
            changes.create.clear()
        await carry_out(self._client, changes, f"Service {service.metadata.namespace}/{service.metadata.name}")


def service_of_slice(manager: str) -> Handler[Request]:
    """The Service of a slice that a manager has written, or another one has changed since."""

    def keys(event: Event[Object]) -> Iterable[Request]:
        states = [entry.labels for entry in (event.old, event.new) if entry is not None]
        if event.own or not any(labels.get(MANAGED_BY) == manager for labels in states):
            return ()
        return [ObjectKey(event.key.namespace, labels[SERVICE_NAME]) for labels in states if labels.get(SERVICE_NAME)]

    return Handler(keys)


async def carry_out(client: CachedClient, changes: Changes, owner: str) -> None:
    """Send what is to be created, updated and deleted. An error says which of it failed, and of which owner."""
    for one in changes.create:
        try:
            await client.create(one)
        except KubernetesError as error:
            if is_refused_by_deletion(error):
                return
            raise _failure("create", owner, error) from error
    for one in changes.update:
        try:
            await client.update(one)
        except KubernetesError as error:
            raise _failure(f"update {one.metadata.name}", owner, error) from error
    for one in changes.delete:
        try:
            await client.delete(one, uid=one.metadata.uid, missing_ok=True)
        except KubernetesError as error:
            raise _failure(f"delete {one.metadata.name}", owner, error) from error


def _failure(action: str, owner: str, error: KubernetesError) -> KubernetesError:
    return KubernetesError(f"failed to {action} EndpointSlice for {owner}: {message_of(error)}")


def _changes(
    service: Service, pods: Iterable[Pod], existing: list[EndpointSlice], family: Family, zones: dict[str, str]
) -> Changes:
    desired: dict[Ports, tuple[list[EndpointPort], list[Endpoint]]] = {}
    for pod in pods:
        if not has_address(pod):
            continue
        ports = _ports(service, pod)
        _, endpoints = desired.setdefault(key_of(ports), (ports, []))
        endpoint = _endpoint(service, pod, family, zones)
        if _is_placed(service, pod, zones) and endpoint.addresses:
            endpoints.append(endpoint)
    labels, result = _labels(service), Changes()
    owned = [one for one in existing if any(ref.uid == service.metadata.uid for ref in one.metadata.owner_references)]
    result.delete = [one for one in existing if one not in owned]
    for key, (ports, endpoints) in desired.items():
        same_ports = [one for one in owned if key_of(one.ports) == key]
        made = pack(same_ports, endpoints, labels, partial(_new, service, family, ports))
        result.create += made.create
        result.update += made.update
        result.delete += made.delete
    result.delete += [one for one in owned if key_of(one.ports) not in desired]
    if len(result.delete) == len(existing) and not result.create:
        if len(result.delete) == 1 and _is_empty(result.delete[0], labels):
            result.delete.clear()
        else:
            result.create.append(_new(service, family, []))
    result.recycle(lambda one: one in owned)
    return result


def _is_placed(service: Service, pod: Pod, zones: dict[str, str]) -> bool:
    """Whether the pod is on a node that is there, as far as that matters to the service."""
    return pod.spec.node_name in zones or bool(service.spec.publish_not_ready_addresses)


def _is_empty(one: EndpointSlice, labels: dict[str, str]) -> bool:
    return not one.endpoints and not one.ports and one.metadata.labels == labels


def _endpoint(service: Service, pod: Pod, family: Family, zones: dict[str, str]) -> Endpoint:
    serving, terminating = is_ready(pod), pod.metadata.deletion_timestamp is not None
    ready = bool(service.spec.publish_not_ready_addresses) or (serving and not terminating)
    meta, node = pod.metadata, pod.spec.node_name
    zone = zones.get(node or "") or None
    return Endpoint(
        addresses=addresses_of(pod, family),
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
        target_ref=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
        node_name=node,
        zone=zone,
        hostname=host_name(pod, service),
        hints=_hints(service, zone, node) if ready else None,
    )


def _hints(service: Service, zone: str | None, node: str | None) -> EndpointHints | None:
    if service.spec.traffic_distribution not in _PREFERENCES:
        return None
    near = service.spec.traffic_distribution == "PreferSameNode" and node
    if not zone and not near:
        return None
    return EndpointHints(
        for_zones=[ForZone(name=zone)] if zone else [], for_nodes=[ForNode(name=node)] if near and node else []
    )


def _ports(service: Service, pod: Pod) -> list[EndpointPort]:
    ports = [
        EndpointPort(name=port.name or "", port=number, protocol=port.protocol or "TCP", app_protocol=port.app_protocol)
        for port in service.spec.ports
        if (number := target_port(pod, port)) is not None
    ]
    return sorted(ports, key=slice_port_order)


def _labels(service: Service) -> dict[str, str]:
    own = {name: value for name, value in service.metadata.labels.items() if name not in _RESERVED}
    headless = {HEADLESS: ""} if is_headless(service) else {}
    return own | headless | {SERVICE_NAME: service.metadata.name, MANAGED_BY: EndpointSlices.manager}


def _new(service: Service, family: Family, ports: list[EndpointPort]) -> EndpointSlice:
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=f"{service.metadata.name}-",
            namespace=service.metadata.namespace,
            labels=_labels(service),
            owner_references=[service.as_owner()],
        ),
        address_type=family,
        ports=ports,
        endpoints=[],
    )
