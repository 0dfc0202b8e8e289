"""What becomes of a volume whose claim is gone, by its reclaim policy and its kind of storage."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from kubewright.api.core.v1 import PersistentVolume
from kubewright.controlplane.controllers.volume_matching import PROVISIONED_BY

_IN_TREE = "kubernetes.io/"
_DELETABLE_PATH = re.compile("/tmp/.+")  # noqa: S108 (of nodes, and by name only)


class Failure(NamedTuple):
    """Why a volume cannot be reclaimed: the reason and the note of an event."""

    reason: str
    note: str


def reclaim_action(volume: PersistentVolume) -> Literal["keep", "delete", "recycle"] | Failure:
    """What to do with a released volume. Those of provisioners outside Kubernetes are deleted by these."""
    match volume.spec.persistent_volume_reclaim_policy:
        case "Recycle":
            if volume.spec.host_path is not None or volume.spec.nfs is not None:
                return "recycle"
            return Failure("VolumeFailedRecycle", "No recycler plugin found for the volume!")
        case "Delete":
            return _deletion(volume)
        case _:
            return "keep"


def _deletion(volume: PersistentVolume) -> Literal["keep", "delete"] | Failure:
    provisioner = volume.metadata.annotations.get(PROVISIONED_BY, "")
    if volume.spec.csi is not None or (provisioner and not provisioner.startswith(_IN_TREE)):
        return "keep"
    if provisioner:
        return Failure("VolumeFailedDelete", f"no volume plugin matched name: {provisioner}")
    path = volume.spec.host_path.path if volume.spec.host_path is not None else ""
    if path and _DELETABLE_PATH.search(path):
        return "delete"
    if path:
        note = f"host_path deleter only supports /tmp/.+ but received provided {path}"
    else:
        what = "deletable volume" if volume.spec.nfs is not None else "volume"
        note = f'error getting deleter volume plugin for volume "{volume.metadata.name}": no {what} plugin matched'
    return Failure("VolumeFailedDelete", note)
