"""Predicates, handlers, sources and waiting, as an operator's author writes them."""

from collections.abc import Iterable

from kubewright import Client, Manager, Request, Result
from kubewright.api.core.v1 import ConfigMap, Pod, Service
from kubewright.client.wait import Field, deleted, ready
from kubewright.controller import (
    annotations_changed,
    controller_for,
    generation_changed,
    has_labels,
    mapped,
    predicate,
)


@predicate
def became_ready(old: Pod | None, new: Pod | None) -> bool:
    return old is not None and new is not None and new.status.phase == "Running"


@mapped
def of_config_map(config: ConfigMap) -> Iterable[Request]:
    return [Request(config.metadata.namespace, config.metadata.name.removesuffix("-config"))]


class ServiceReconciler:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def reconcile(self, request: Request) -> Result | None:
        service = await self.client.find(Service, request)
        if service is None or service.spec.type != "LoadBalancer":
            return None
        assert [port.node_port for port in service.spec.ports]
        pods = await self.client.list(Pod, namespace=request.namespace, labels=service.spec.selector)
        await self.client.wait_for(pods[0], ready & ~deleted | Field("status.phase").equals("Succeeded"))
        return Result(requeue_after=30)


def setup(manager: Manager) -> None:
    (
        controller_for(manager, Service, where=generation_changed | annotations_changed)
        .owns(Pod, where=became_ready & has_labels("app"))
        .watches(ConfigMap, of_config_map)
        .complete(ServiceReconciler(manager.client))
    )
