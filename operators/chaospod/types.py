"""The kind ChaosPod: `kubectl get chaospods`. It has no status subresource, so that one write changes all of it."""

from __future__ import annotations

from kubewright import Column, Model, Time, resource
from kubewright.api import Object
from kubewright.api.core.v1 import PodTemplateSpec


class ChaosPodSpec(Model):
    """The pod, and when it is to be stopped next."""

    template: PodTemplateSpec
    next_stop: Time | None = None


class ChaosPodStatus(Model):
    """When the pod was last started."""

    last_run: Time | None = None


@resource(
    "chaosapps.metamagical.io/v1",
    columns=[Column("Next Stop", ".spec.nextStop"), Column("Last Run", ".status.lastRun")],
)
class ChaosPod(Object):
    """A pod that is stopped at random, and created again."""

    spec: ChaosPodSpec
    status: ChaosPodStatus = ChaosPodStatus()
