"""Endpoints: the addresses of the pods that a Service selects, at its ports, as one object beside the Service."""

from __future__ import annotations

import copy

import msgspec

from kubewright.api.core.v1 import Endpoints, Pod, Service
from kubewright.api.core.v1.endpoints import EndpointSubset
from kubewright.api.errors import KubernetesError
from kubewright.api.meta import ObjectMeta
from kubewright.controller import Handler, Predicate, Request, Watched, for_object
from kubewright.controlplane.controllers.decoded import Decoded
from kubewright.controlplane.controllers.endpoint_subsets import packed, subsets_of, truncated, without_revisions
from kubewright.controlplane.controllers.reporting import ReportingController, is_refused_by_deletion, message_of
from kubewright.controlplane.controllers.served_pods import (
    HEADLESS,
    TRIGGER_TIME,
    Selectors,
    TriggerTimes,
    is_headless,
)

_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
_OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"

_is_deletion = Predicate("was deleted", lambda event: event.new is None)


class EndpointsOfServices(ReportingController):
    """Keeps the Endpoints of every Service that selects pods. Those of other Services are left alone."""

    name = "endpoints"
    component = "endpoint-controller"

    _pods: Decoded[Pod]

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache, selectors = self._runtime.cache, Selectors()
        self._times = TriggerTimes()
        with cache.watch(Pod) as pods:
            self._pods = Decoded(pods)
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Service, Handler(selectors.service_changed)),
                Watched(cache, Pod, Handler(selectors.pod_changed)),
                Watched(cache, Endpoints, for_object, where=_is_deletion),
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Write the Endpoints of one Service, or delete those of one that is gone."""
        service = await self._client.find(Service, request)
        present = await self._client.find(Endpoints, request)
        if service is None:
            self._times.forget(request)
            if present is not None:
                await self._client.delete(present, uid=present.metadata.uid, missing_ok=True)
            return
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return
        pods = self._pods.list(namespace=service.metadata.namespace, labels=service.spec.selector)
        changed_at = self._times.note(service, pods)
        all_subsets = subsets_of(service, pods)
        subsets = truncated(all_subsets) or all_subsets
        annotations = {_OVER_CAPACITY: "truncated"} if subsets is not all_subsets else {}
        if present is None or not _is_as_wanted(present, subsets, service, annotations):
            times = {TRIGGER_TIME: changed_at} if changed_at is not None else {}
            await self._write(service, present, subsets, annotations | times)

    async def _write(
        self, service: Service, present: Endpoints | None, subsets: list[EndpointSubset], annotations: dict[str, str]
    ) -> None:
        if present is None:
            meta = service.metadata
            new = Endpoints(metadata=ObjectMeta(name=meta.name, namespace=meta.namespace))
        else:
            new = copy.copy(present)
            new.metadata = msgspec.structs.replace(present.metadata)
        new.subsets = subsets
        new.metadata.labels = _labels(service)
        new.metadata.annotations = _others(new.metadata.annotations) | annotations
        try:
            await (self._client.create(new) if present is None else self._client.update(new))
        except KubernetesError as error:
            if is_refused_by_deletion(error):
                return
            where, why = f"{service.metadata.namespace}/{service.metadata.name}", message_of(error)
            if present is None:
                note = f"Failed to create endpoint for service {where}: {why}"
                # As there, about an object that is in no namespace yet.
                nowhere = Endpoints(metadata=ObjectMeta(name=service.metadata.name))
                self._recorder.warning(nowhere, "FailedToCreateEndpoint", note)
            else:
                self._recorder.warning(new, "FailedToUpdateEndpoint", f"Failed to update endpoint {where}: {why}")
            raise


def _labels(service: Service) -> dict[str, str]:
    headless = {HEADLESS: ""} if is_headless(service) else {}
    others = {name: value for name, value in service.metadata.labels.items() if name != HEADLESS}
    return others | headless | {_MANAGED_BY: EndpointsOfServices.component}


def _others(annotations: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in annotations.items() if name not in (TRIGGER_TIME, _OVER_CAPACITY)}


def _is_as_wanted(
    present: Endpoints, subsets: list[EndpointSubset], service: Service, annotations: dict[str, str]
) -> bool:
    labels = {name: value for name, value in present.metadata.labels.items() if name != HEADLESS}
    wanted = {name: value for name, value in _labels(service).items() if name != HEADLESS}
    return (
        labels == wanted
        and (_OVER_CAPACITY in present.metadata.annotations) == (_OVER_CAPACITY in annotations)
        and without_revisions(packed(present.subsets)) == without_revisions(subsets)
    )
