"""Creates the claims of pods' ephemeral volumes. They belong to the pod, and go with it."""

from __future__ import annotations

from collections.abc import Iterable

from kubewright.api.core.v1 import PersistentVolumeClaim, Pod, Volume
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.controller import Event, Handler, Request, Watched
from kubewright.controlplane.controllers.pod_claims import claim_name, is_made_for
from kubewright.controlplane.controllers.reporting import ReportingController


class NotThePods(KubernetesError):
    """A claim has the name of the one that would be made for a pod."""


class EphemeralVolumes(ReportingController):
    """Keeps a claim for each ephemeral volume of a pod."""

    name = "ephemeral-volume"
    component = "ephemeral_volume"

    async def run(self) -> None:
        """Watch and create until cancelled."""
        cache = self._runtime.cache
        await self._runtime.run(
            self.name,
            self.reconcile,
            Watched(cache, Pod, Handler(_new_pod)),
            Watched(cache, PersistentVolumeClaim, Handler(_owner_of_deleted)),
            beside=(self._events.run,),
        )

    async def reconcile(self, request: Request) -> None:
        """Create the claims of one pod that are missing."""
        pod = await self._client.find(Pod, request)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None:
                try:
                    await self._ensure(pod, volume)
                except KubernetesError as error:
                    self._recorder.warning(pod, "FailedBinding", f"ephemeral volume {volume.name}: {error}")
                    raise

    async def _ensure(self, pod: Pod, volume: Volume) -> None:
        name = claim_name(pod, volume)
        template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        claim = await self._client.find(PersistentVolumeClaim, ObjectKey(pod.metadata.namespace, name))
        if claim is not None:
            if not is_made_for(claim, pod):
                where = f"{pod.metadata.namespace}/{name}"
                owner = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
                raise NotThePods(f"PVC {where} was not created for {owner} (pod is not owner)")
        elif template is not None:
            await self._client.create(
                PersistentVolumeClaim(
                    metadata=ObjectMeta(
                        name=name,
                        namespace=pod.metadata.namespace,
                        annotations=template.metadata.annotations,
                        labels=template.metadata.labels,
                        owner_references=[pod.as_owner()],
                    ),
                    spec=template.spec,
                )
            )


def _new_pod(event: Event[Object]) -> Iterable[Request]:
    # The volumes of a pod do not change.
    if event.old is not None and event.new is not None and event.old.header.uid == event.new.header.uid:
        return ()
    pod = event.new_object
    has_any = isinstance(pod, Pod) and any(volume.ephemeral is not None for volume in pod.spec.volumes)
    return (event.key,) if has_any else ()


def _owner_of_deleted(event: Event[Object]) -> Iterable[Request]:
    if event.new is not None or event.old is None:
        return ()
    return [Request(event.key.namespace, owner.name) for owner in event.old.owners if owner.kind == "Pod"]
