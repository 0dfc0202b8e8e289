"""ReplicationControllers: what ReplicaSets were before there were any."""

from __future__ import annotations

from kubewright.api.core.v1 import ReplicationController
from kubewright.controlplane.controllers.replicas import Replicas


class ReplicationControllers(Replicas[ReplicationController]):
    """Keeps the pods of every ReplicationController at their number, and its status true."""

    name = "replication-controllers"
    component = "replication-controller"
    kind = ReplicationController
