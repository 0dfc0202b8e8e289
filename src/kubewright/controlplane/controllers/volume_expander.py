"""Reports claims that should grow and whose volumes only something outside Kubernetes can let grow."""

from __future__ import annotations

from kubewright.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from kubewright.controller import Request, Watched, for_object, predicate
from kubewright.controlplane.controllers.reporting import ReportingController
from kubewright.controlplane.controllers.volume_matching import requested_size


class VolumeExpander(ReportingController):
    """Emits one event for each growth of a bound claim."""

    name = "persistentvolume-expander"
    component = "volume_expand"

    async def run(self) -> None:
        """Watch and report until cancelled."""
        claims = Watched(self._runtime.cache, PersistentVolumeClaim, for_object, where=_grows)
        await self._runtime.run(self.name, self.reconcile, claims, beside=(self._events.run,))

    async def reconcile(self, request: Request) -> None:
        """Report one claim that is smaller than it should be."""
        claim = await self._client.find(PersistentVolumeClaim, request)
        if claim is None or claim.status.phase != "Bound" or not claim.spec.volume_name:
            return
        volume = await self._client.find(PersistentVolume, claim.spec.volume_name)
        reference = volume.spec.claim_ref if volume is not None else None
        if reference is None or reference.uid != claim.metadata.uid:
            return
        wanted = requested_size(claim)
        if wanted > claim.status.capacity.get("storage", wanted):
            note = "waiting for an external controller to expand this PVC"
            is_csi = volume is not None and volume.spec.csi is not None
            (self._recorder.normal if is_csi else self._recorder.warning)(claim, "ExternalExpanding", note)


@predicate
def _grows(old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:
    return new is not None and (old is None or requested_size(new) > requested_size(old))
