"""The pods behind a Service: which they are, at which ports, and which Services a changed pod belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, TypeAlias

from kubewright.api.core.v1 import Pod, Service, ServicePort
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.controller import Event, Request
from kubewright.controlplane.controllers.pods import ENDED, is_ready
from kubewright.patterns.conditions import get_condition

Family: TypeAlias = Literal["IPv4", "IPv6"]

HEADLESS = "service.kubernetes.io/headless"
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"


def has_address(pod: Pod) -> bool:
    """Whether the pod can be reached at all: it has an address and has not ended."""
    return pod.status.phase not in ENDED and bool(pod.status.pod_ip or pod.status.pod_ips)


def addresses_of(pod: Pod, family: Family) -> list[str]:
    """Its addresses of a family, IPv4 or IPv6."""
    return [one.ip for one in pod.status.pod_ips if (":" in one.ip) == (family == "IPv6")]


def families_of(service: Service) -> list[Family]:
    """The address families of a service, the one that it prefers first."""
    return [family for family in service.spec.ip_families if family] or ["IPv4"]


def host_name(pod: Pod, service: Service) -> str | None:
    """The name by which the pod is found below that of the service, if it asks for that."""
    return pod.spec.hostname if pod.spec.hostname and pod.spec.subdomain == service.metadata.name else None


def target_port(pod: Pod, port: ServicePort) -> int | None:
    """The port of the pod that a port of a service stands for; None when the pod has none of that name."""
    target = port.target_port
    if not isinstance(target, str):
        return target if target is not None else port.port
    sidecars = (one for one in pod.spec.init_containers if one.restart_policy == "Always")
    for container in (*pod.spec.containers, *sidecars):
        for found in container.ports:
            if found.name == target and (found.protocol or "TCP") == (port.protocol or "TCP"):
                return found.container_port
    return None


def is_headless(service: Service) -> bool:
    """Whether the service has no address of its own."""
    return service.spec.cluster_ip in (None, "", "None")


class Selectors:
    """The selectors of all Services, and from them the Services that a changed pod may concern."""

    def __init__(self) -> None:
        self._selectors: dict[str, dict[str, dict[str, str]]] = {}

    @property
    def services(self) -> list[Request]:
        """All Services that select pods."""
        return [ObjectKey(namespace, name) for namespace, names in self._selectors.items() for name in names]

    def service_changed(self, event: Event[Object]) -> Iterable[Request]:
        """Take note of a Service, which is itself what the event concerns."""
        key, service = event.key, event.new_object
        selectors = self._selectors.setdefault(key.namespace, {})
        selectors.pop(key.name, None)
        if isinstance(service, Service) and service.spec.selector:
            selectors[key.name] = service.spec.selector
        elif not selectors:
            del self._selectors[key.namespace]
        return (key,)

    def pod_changed(self, event: Event[Object]) -> Iterable[Request]:
        """The Services that select the pod, or selected it before, when it changed in what endpoints show."""
        old, new = event.old_object, event.new_object
        if isinstance(old, Pod) and isinstance(new, Pod) and _shown(old) == _shown(new):
            return ()
        selectors = self._selectors.get(event.key.namespace, {})
        states = [pod.metadata.labels.items() for pod in (old, new) if isinstance(pod, Pod)]
        return [
            ObjectKey(event.key.namespace, name)
            for name, selector in selectors.items()
            if any(selector.items() <= labels for labels in states)
        ]


def _shown(pod: Pod) -> tuple[object, ...]:
    return (
        pod.metadata.uid,
        pod.metadata.labels,
        pod.metadata.deletion_timestamp,
        pod.spec.node_name,
        pod.spec.hostname,
        pod.spec.subdomain,
        pod.status.pod_ips,
        pod.status.phase in ENDED,
        is_ready(pod),
    )


class TriggerTimes:
    """Since when endpoints should be as they are: the first change of a pod since they were last compared."""

    def __init__(self) -> None:
        self._seen: dict[ObjectKey, tuple[str, dict[str, datetime]]] = {}

    def note(self, service: Service, pods: Iterable[Pod]) -> str | None:
        """The time of the change, as it is annotated; None when nothing with a time has changed."""
        times: dict[str, datetime] = {}
        for pod in pods:
            ready = get_condition(pod, "Ready")
            if ready is not None and ready.last_transition_time is not None:
                times[pod.metadata.name] = ready.last_transition_time
        known, before = self._seen.get(service.key, ("", {}))
        self._seen[service.key] = service.metadata.uid, times
        created = service.metadata.creation_timestamp
        if known != service.metadata.uid:
            return _formatted(created) if created is not None else None
        changed = [time for name, time in times.items() if name not in before or time > before[name]]
        return _formatted(min(changed)) if changed else None

    def forget(self, key: ObjectKey) -> None:
        """The Service is gone."""
        self._seen.pop(key, None)


def _formatted(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S}Z"
