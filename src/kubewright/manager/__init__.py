"""Running it: lifecycle, leader election, health, metrics, events and logs."""

from kubewright.manager.cluster import Cluster as Cluster
from kubewright.manager.leader_election import LeaderElection as LeaderElection
from kubewright.manager.leader_election import LeadershipLost as LeadershipLost
from kubewright.manager.manager import Manager as Manager
from kubewright.manager.manager import SetupError as SetupError
from kubewright.manager.permissions import Permission as Permission
from kubewright.manager.preflight import PermissionsMissing as PermissionsMissing
from kubewright.manager.program import run as run
from kubewright.manager.recorder import Recorder as Recorder
