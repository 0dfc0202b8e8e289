"""What would be on the volumes of a Devbox if its containers were executed.

The pods of an embedded control plane run nothing. This sees every change that is stored and does what the scripts
would: fills volumes from the image or from an archive when a pod starts, writes a file whenever the user works, and
archives when a commit succeeds. So content that is lost anywhere is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from operators.devbox.tests.world import COMMITS

from kubewright.api.codec import decode
from kubewright.api.core.v1 import PersistentVolumeClaim, Pod
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.embedded.storage.store import StoreChange


class Disks:
    """The files on the volume of each claim, by the name of the claim."""

    def __init__(self) -> None:
        self.files: dict[str, set[int]] = {}
        """A volume that nothing was put on, not even the files of the image, is not in it."""
        self.written = 0
        """How many files the user has written in all: 1, 2 and so on."""
        self.problems: list[str] = []
        self._running: Pod | None = None
        self._done: set[tuple[str, str]] = set()

    def work(self) -> None:
        """Write a file, if the pod runs."""
        if self._running is not None:
            self.written += 1
            self.files[_claim(self._running, "content")].add(self.written)

    def missing(self, claim: str) -> list[int]:
        """The files that are not on the volume of a claim."""
        return sorted(set(range(1, self.written + 1)) - self.files.get(claim, set()))

    def changed(self, change: StoreChange) -> None:
        """An object was stored or deleted."""
        is_deleted = change.kind == "delete"
        if change.key.startswith("/core/persistentvolumeclaims/") and is_deleted:
            self.files.pop(decode(PersistentVolumeClaim, change.entry.raw).metadata.name, None)
        elif change.key.startswith("/core/pods/"):
            self._pod_changed(decode(Pod, change.entry.raw), is_deleted)

    def _pod_changed(self, pod: Pod, is_deleted: bool) -> None:
        phase, uid = pod.status.phase or "", pod.metadata.uid
        is_over = is_deleted or phase in ("Failed", "Succeeded")
        if is_over and self._running is not None and self._running.metadata.uid == uid:
            self._running = None
        if (uid, phase) in self._done or is_deleted:
            return
        self._done.add((uid, phase))
        if COMMITS.items() <= pod.metadata.labels.items():
            if phase == "Succeeded":
                self._archive(pod)
        elif phase == "Running":
            self._start(pod)

    def _start(self, pod: Pod) -> None:
        if self._running is not None:
            self.problems.append("a pod has started while another one runs")
        claim = _claim(pod, "content")
        if claim not in self.files:
            self.files[claim] = set(self.files.get(_claim(pod, "archive"), ()))
        if missing := self.missing(claim):
            self.problems.append(f"the pod has started without the files {missing}")
        self._running = pod

    def _archive(self, pod: Pod) -> None:
        if self._running is not None:
            self.problems.append("the content was archived while a pod could write to it")
        archived = self.files.get(_claim(pod, "content"), self.files.get(_claim(pod, "base")))
        if archived is not None:
            self.files[_claim(pod, "archive")] = set(archived)


def _claim(pod: Pod, volume: str) -> str:
    """The claim of a volume of the pod; empty when it has no such volume."""
    claims = (each.persistent_volume_claim for each in pod.spec.volumes if each.name == volume)
    return next((claim.claim_name for claim in claims if claim is not None), "")


@contextmanager
def followed(plane: EmbeddedControlPlane) -> Iterator[Disks]:
    """The disks of a control plane, while the block runs."""
    disks = Disks()
    stop = plane.observe(disks.changed)
    try:
        yield disks
    finally:
        stop()
