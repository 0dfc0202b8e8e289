"""What the embedded control plane stores although nothing acts on it yet, and the warning about it.

A row is removed once the behaviour is implemented. Kinds on which no part of a Kubernetes control plane acts, such as
NetworkPolicy, are not here: they need other components on every cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping


class Inert(NamedTuple):
    """What does not happen, and for which objects of a kind: for all, unless `where` says otherwise."""

    consequence: str
    where: Callable[[JSONObject], bool] = lambda obj: True


_NO_LIMITS = Inert("no request is queued or limited by it")
_NO_DEVICES = Inert("no device is allocated")
_NO_SCALING = Inert("nothing is scaled by it")

WITHOUT_EFFECT: Mapping[str, Inert] = {
    "apiregistration.k8s.io/v1 APIService": Inert(
        "no request is handed on to its service", lambda service: bool(mapping(service, "spec", "service"))
    ),
    "autoscaling/v1 HorizontalPodAutoscaler": _NO_SCALING,
    "autoscaling/v2 HorizontalPodAutoscaler": _NO_SCALING,
    "flowcontrol.apiserver.k8s.io/v1 FlowSchema": _NO_LIMITS,
    "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration": _NO_LIMITS,
    "networking.k8s.io/v1 ServiceCIDR": Inert("no service gets an address of it"),
    "resource.k8s.io/v1 DeviceClass": _NO_DEVICES,
    "resource.k8s.io/v1 ResourceClaim": _NO_DEVICES,
    "resource.k8s.io/v1 ResourceClaimTemplate": Inert("no claims are created from it"),
    "resource.k8s.io/v1 ResourceSlice": _NO_DEVICES,
}
"""By apiVersion and kind."""


def warning_of(name: str) -> str:
    """The warning about objects of a kind, which is named as in the table."""
    kind, consequence = name.rpartition(" ")[2], WITHOUT_EFFECT[name].consequence
    return f"kubewright: the embedded control plane stores this {kind} but does not act on it: {consequence}"


def effect_warnings(name: str, obj: JSONObject) -> list[str]:
    """The warnings for an object that is written."""
    inert = WITHOUT_EFFECT.get(name)
    return [warning_of(name)] if inert is not None and inert.where(obj) else []
