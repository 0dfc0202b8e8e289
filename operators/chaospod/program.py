"""What the operator consists of."""

from __future__ import annotations

from kubewright import Manager, Permission, controller_for, serve_webhooks
from kubewright.api.core.v1 import Pod

from .reconciler import ChaosPodReconciler
from .types import ChaosPod
from .webhooks import check_next_stop, default_next_stop


def setup(manager: Manager) -> None:
    """One controller, which is also woken by the pods it owns, and the webhooks of its kind."""
    reconciler = ChaosPodReconciler(manager.client, manager.recorder("chaospod"))
    controller_for(manager, ChaosPod).owns(Pod).complete(reconciler)
    manager.require(Permission(ChaosPod, "patch"), Permission(Pod, "create", "delete"))
    serve_webhooks(manager, default_next_stop, check_next_stop)
