"""What the operator consists of."""

from __future__ import annotations

from kubewright import Manager, Permission, controller_for, converts, serve_webhooks
from kubewright.api.core.v1 import Pod

from .reconciler import PodManagerReconciler
from .types import PodManager
from .v1beta1 import PodManagerV1Beta1


def setup(manager: Manager) -> None:
    """One controller, which is also woken by the pods it owns, and conversion from and to the older version."""
    reconciles = manager.metrics.counter(
        "podmanager_reconcile_total", "Reconciles of PodManagers by result", labels=("result",)
    )
    reconciler = PodManagerReconciler(manager.client, manager.recorder("podmanager"), reconciles)
    controller_for(manager, PodManager, workers=4).owns(Pod).complete(reconciler)
    manager.require(Permission(Pod, "create", "delete"))
    serve_webhooks(manager, converts(PodManager, PodManagerV1Beta1))
