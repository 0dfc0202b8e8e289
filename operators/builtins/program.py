"""What the operator consists of: two controllers and two webhooks that share a manager, its client and its cache."""

from __future__ import annotations

from kubewright import Manager, Permission, controller_for, serve_webhooks
from kubewright.api.apps.v1 import ReplicaSet
from kubewright.api.core.v1 import Pod

from .labeller import HelloReconciler
from .replicas import PodSetReconciler
from .types import PodSet
from .webhooks import annotate_pod, check_pod


def setup(manager: Manager) -> None:
    """A pod enqueues the ReplicaSet or the PodSet that controls it."""
    controller_for(manager, ReplicaSet, name="foo-controller").owns(Pod).complete(HelloReconciler(manager.client))
    controller_for(manager, PodSet).owns(Pod).complete(PodSetReconciler(manager.client))
    manager.require(Permission(ReplicaSet, "patch"), Permission(Pod, "create", "delete"))
    serve_webhooks(manager, annotate_pod, check_pod)
