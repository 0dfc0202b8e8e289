"""The real kube-controller-manager on an embedded control plane whose own controllers of the same work are off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kubewright.api.core.v1 import ServiceAccount
from kubewright.client.wait import exists
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.embedded.apimachinery.document import mapping
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.real.launch import start_controller_manager
from kubewright.controlplane.real.processes import ChildProcess, ProcessGroup

NODES = 2
OURS = ("nodes", "scheduler", "pod-simulator", "volume-provisioner")
"""What kube-controller-manager does not do: the kubelets, the scheduler and the driver of the volumes."""

_START_SECONDS = 120.0


@dataclass(frozen=True)
class ManagedPlane:
    """A control plane, and the kube-controller-manager beside it."""

    plane: EmbeddedControlPlane
    controller_manager: ChildProcess

    def is_ending(self, namespace: str) -> bool:
        """Whether a namespace is being deleted, or gone."""
        entry = self.plane._started.assembled.store.get(f"/core/namespaces/{namespace}")
        return entry is None or "deletionTimestamp" in mapping(entry.value, "metadata")


@asynccontextmanager
async def managed_plane() -> AsyncIterator[ManagedPlane]:
    """Returns when kube-controller-manager works. Raises BinariesNotFound when it is not on this machine."""
    binaries, group = find_binaries(), ProcessGroup()
    try:
        async with ControlPlane.embedded(controllers=OURS, nodes=NODES) as plane, plane.client() as admin:
            running = plane._started
            key = running.assembled.signer._key
            program = start_controller_manager(
                group,
                binaries,
                running.authority,
                plane.url,
                service_account_key=key.private_bytes(
                    Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
                ).decode(),
            )
            await admin.wait_for(ServiceAccount, "default", exists, namespace="default", timeout=_START_SECONDS)
            yield ManagedPlane(plane, program)
    finally:
        group.close()
