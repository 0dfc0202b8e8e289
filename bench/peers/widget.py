"""The custom resource of the benchmark, apart from all else: the operator that is measured imports it, too.

Its spec is made as those of operators are that run something: containers with variables, ports, resources and volumes.
"""

from __future__ import annotations

from kubewright.api import Condition, Model, Resource, resource

STAMP = "bench.example.com/stamp"
"""The annotation that holds the time of a change, in nanoseconds."""


class Variable(Model):
    """A variable of the environment."""

    name: str
    value: str


class Port(Model):
    """Where a container listens."""

    name: str
    port: int
    protocol: str = "TCP"


class Quantities(Model):
    """Amounts of what a node has."""

    cpu: str
    memory: str


class Resources(Model):
    """What a container needs, and at most gets."""

    requests: Quantities
    limits: Quantities


class Container(Model):
    """A program that runs."""

    name: str
    image: str
    command: list[str]
    env: list[Variable]
    ports: list[Port]
    resources: Resources


class Volume(Model):
    """Space on a disk."""

    name: str
    mount_path: str
    size: str
    storage_class: str


class Placement(Model):
    """On which nodes to run."""

    node_selector: dict[str, str] = {}
    priority_class: str = ""
    toleration_seconds: int = 0


class WidgetSpec(Model):
    """What is wanted."""

    size: int = 1
    payload: str = ""
    containers: list[Container] = []
    volumes: list[Volume] = []
    placement: Placement = Placement()


class WidgetStatus(Model):
    """What is."""

    observed_generation: int = 0
    conditions: list[Condition] = []


@resource("bench.example.com/v1")
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """Something of which there are many."""
