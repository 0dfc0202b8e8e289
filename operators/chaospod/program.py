"""What the operator consists of."""

from __future__ import annotations

from kubewright import Manager, controller_for
from kubewright.api.core.v1 import Pod

from .reconciler import ChaosPodReconciler
from .types import ChaosPod


def setup(manager: Manager) -> None:
    """One controller, which is also woken by the pods it owns."""
    reconciler = ChaosPodReconciler(manager.client, manager.recorder("chaospod"))
    controller_for(manager, ChaosPod).owns(Pod).complete(reconciler)
