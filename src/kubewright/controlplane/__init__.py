"""A Kubernetes API server on this machine, for tests and for development."""

from kubewright.controlplane.errors import (
    BinariesNotFound,
    BinariesUnusable,
    BuildFailed,
    ControlPlaneError,
    InvalidDefinition,
    KubectlFailed,
    StartFailed,
)
from kubewright.controlplane.plane import ControlPlane
from kubewright.controlplane.user import User

__all__ = [
    "BinariesNotFound",
    "BinariesUnusable",
    "BuildFailed",
    "ControlPlane",
    "ControlPlaneError",
    "InvalidDefinition",
    "KubectlFailed",
    "StartFailed",
    "User",
]
