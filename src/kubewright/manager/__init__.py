"""Running an operator: lifecycle, leader election, health, metrics, events and logs."""

from kubewright.manager.cluster import Cluster
from kubewright.manager.leader_election import LeaderElection, LeadershipLost
from kubewright.manager.manager import Manager, SetupError
from kubewright.manager.permissions import Permission
from kubewright.manager.preflight import PermissionsMissing
from kubewright.manager.program import run
from kubewright.manager.recorder import EventRecorder, Recorder

__all__ = [
    "Cluster",
    "EventRecorder",
    "LeaderElection",
    "LeadershipLost",
    "Manager",
    "Permission",
    "PermissionsMissing",
    "Recorder",
    "SetupError",
    "run",
]
