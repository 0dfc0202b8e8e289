"""What a pod requests as a whole, and what limits it has: containers, init containers, and its own figures."""

from __future__ import annotations

from typing import Literal

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.builtins.values import quantity

Part = Literal["requests", "limits"]

_POD_LEVEL = frozenset(("cpu", "memory"))


def pod_resources(pod: JSONObject, part: Part) -> dict[str, Quantity]:
    """The amounts for which a pod counts, without the overhead of its runtime.

    Containers run together, and init containers one after another; those that are restarted stay and add up.
    """
    total: dict[str, Quantity] = {}
    for container in items(pod, "spec", "containers"):
        _add(total, container_resources(container, part))
    staying: dict[str, Quantity] = {}
    most: dict[str, Quantity] = {}
    for container in items(pod, "spec", "initContainers"):
        own = container_resources(container, part)
        if text(container, "restartPolicy") == "Always":
            _add(total, own)
            _add(staying, own)
            own = staying
        else:
            _add(own, staying)
        _raise(most, own)
    _raise(total, most)
    for name, amount in mapping(pod, "spec", "resources", part).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = quantity(amount)
    return total


def container_resources(container: JSONValue, part: Part) -> dict[str, Quantity]:
    """The amounts that one container names."""
    return {name: quantity(amount) for name, amount in mapping(container, "resources", part).items()}


def _add(total: dict[str, Quantity], more: dict[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: dict[str, Quantity], least: dict[str, Quantity]) -> None:
    for name, amount in least.items():
        if name not in total or total[name] < amount:
            total[name] = amount
