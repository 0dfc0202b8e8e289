"""The custom resource of the benchmark, apart from all else: the operator that is measured imports it, too."""

from __future__ import annotations

from kubewright.api import Condition, Model, Resource, resource

STAMP = "bench.example.com/stamp"
"""The annotation that holds the time of a change, in nanoseconds."""


class WidgetSpec(Model):
    """What is wanted."""

    size: int = 1
    payload: str = ""


class WidgetStatus(Model):
    """What is."""

    observed_generation: int = 0
    conditions: list[Condition] = []


@resource("bench.example.com/v1")
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """Something of which there are many."""
