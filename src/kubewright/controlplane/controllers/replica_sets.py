"""ReplicaSets: keeps the desired number of live pods of a template."""

from __future__ import annotations

from kubewright.api.apps.v1 import ReplicaSet
from kubewright.controlplane.controllers.replicas import Replicas


class ReplicaSets(Replicas[ReplicaSet]):
    """Keeps the pods of every ReplicaSet at their number, and its status true."""

    name = "replicasets"
    component = "replicaset-controller"
    kind = ReplicaSet
