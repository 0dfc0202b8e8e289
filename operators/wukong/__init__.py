"""Wukong: an operator for virtual machines on KubeVirt, with their disks and networks."""

from .program import Options, setup
from .reconciler import WukongReconciler
from .snapshot_types import WukongSnapshot, WukongSnapshotSpec, WukongSnapshotStatus
from .snapshots import WukongSnapshotReconciler
from .types import Disk, Network, Wukong, WukongSpec, WukongStatus

__all__ = [
    "Disk",
    "Network",
    "Options",
    "Wukong",
    "WukongReconciler",
    "WukongSnapshot",
    "WukongSnapshotReconciler",
    "WukongSnapshotSpec",
    "WukongSnapshotStatus",
    "WukongSpec",
    "WukongStatus",
    "setup",
]
