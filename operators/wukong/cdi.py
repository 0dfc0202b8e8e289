"""The kind of CDI, the containerized data importer, as far as the operator reads and writes it."""

from __future__ import annotations

from typing import Annotated

from kubewright import Resource, resource
from kubewright.api.core.v1 import PersistentVolumeClaimSpec
from kubewright.api.markers import ListMap
from kubewright.api.model import BuiltIn

from .kubevirt import KubeVirtCondition

SUCCEEDED = "Succeeded"
FAILED = "Failed"
WAITING_PHASES = ("WaitForFirstConsumer", "PendingPopulation")
"""While its claim waits to be used."""


class HTTPSource(BuiltIn):
    """A file on a web server."""

    url: str


class RegistrySource(BuiltIn):
    """A disk in a container image."""

    url: str | None = None
    pull_method: str | None = None


class DataVolumeSource(BuiltIn):
    """Where the content comes from. One of them is set."""

    http: HTTPSource | None = None
    registry: RegistrySource | None = None


class DataVolumeSpec(BuiltIn):
    """A claim, and what its volume is filled with."""

    source: DataVolumeSource | None = None
    pvc: PersistentVolumeClaimSpec | None = None


class DataVolumeStatus(BuiltIn):
    """How far the import is."""

    phase: str = ""
    progress: str | None = None
    claim_name: str | None = None
    conditions: Annotated[list[KubeVirtCondition], ListMap("type")] = []


@resource("cdi.kubevirt.io/v1beta1")
class DataVolume(Resource[DataVolumeSpec, DataVolumeStatus]):
    """A PersistentVolumeClaim of the same name, which it owns, and the import into it."""
