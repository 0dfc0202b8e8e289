"""The claims that the volumes of a pod are on, and when they have their volumes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from kubewright.api.codec import decode
from kubewright.api.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod, Volume
from kubewright.api.kinds import ObjectKey
from kubewright.cache import Cache, CacheEntry, WriteOrigin
from kubewright.controller import Request


def claim_name(pod: Pod, volume: Volume) -> str:
    """The claim behind a volume, also the one that is made for a pod with an ephemeral volume; empty for others."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


def claims_of(pod: Pod) -> list[ObjectKey]:
    """The claims that the pod mentions."""
    return [ObjectKey(pod.metadata.namespace, name) for volume in pod.spec.volumes if (name := claim_name(pod, volume))]


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim was made for the pod, and does not just have the name of the one that would be."""
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


class AwaitedClaims:
    """Wakes the pods that wait for claims or for volumes. Both are watched from the first pod on that has a claim."""

    def __init__(self, cache: Cache, wake: Callable[[Request], None]) -> None:
        self._cache = cache
        self._wake = wake
        self._pods: dict[ObjectKey, dict[Request, None]] = {}
        self._watches = ExitStack()
        self._is_watching = False

    async def wait(self, pod: Pod) -> None:
        """Wake the pod at the next change of any of its claims, or when a volume becomes available."""
        for claim in claims_of(pod):
            self._pods.setdefault(claim, {})[pod.key] = None
        if not self._is_watching:
            self._is_watching = True
            claims = self._watches.enter_context(self._cache.watch(PersistentVolumeClaim))
            volumes = self._watches.enter_context(self._cache.watch(PersistentVolume))
            claims.subscribe(self._claim_changed)
            volumes.subscribe(self._volume_changed)
            await claims.synced()
            await volumes.synced()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_watching = False
        self._watches.close()

    def _claim_changed(
        self, old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None
    ) -> None:
        entry = new or old
        if entry is not None:
            for pod in self._pods.pop(entry.key, ()):
                self._wake(pod)

    def _volume_changed(
        self, old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None
    ) -> None:
        if new is None or decode(PersistentVolume, new.body).status.phase != "Available":
            return
        waiting, self._pods = self._pods, {}
        for pod in {pod: None for pods in waiting.values() for pod in pods}:
            self._wake(pod)
