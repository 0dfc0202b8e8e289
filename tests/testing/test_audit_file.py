from __future__ import annotations

from pathlib import Path

from kubewright import ControlPlane, Manager, ObjectMeta, Permission, Request, controller_for
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap, Pod
from kubewright.client import MergePatch
from kubewright.testing import recorded_permissions
from kubewright.testing.audit_file import AuditFile


async def test_the_requests_of_a_real_server_give_the_permissions_that_they_needed(
    real_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """`real_control_plane` is there to be skipped without binaries; the one that is used has flags of its own."""
    audit = AuditFile(tmp_path)

    async def reconcile(request: Request) -> None:
        """Does nothing."""

    async with (
        ControlPlane.real(api_server_flags=audit.flags) as plane,
        plane.client(plane.add_user("operator", ["system:masters"])) as client,
    ):
        manager = Manager(client)
        controller_for(manager, Pod).complete(reconcile)
        async with manager.running():
            await manager.synced()
        own = client.in_namespace("default")
        for value in ("a", "b"):
            await own.apply(ConfigMap(metadata=ObjectMeta(name="applied"), data={"key": value}))
        await own.create(Lease(metadata=ObjectMeta(name="it")))
        await own.patch(Lease, "it", MergePatch({"metadata": {"labels": {"a": "b"}}}))
    used = recorded_permissions(audit.requests(), "operator")
    assert used.permissions == [
        Permission("/pods", "list", "watch"),
        Permission("/configmaps", "create", "patch", namespace="default"),
        Permission("coordination.k8s.io/leases", "create", namespace="default"),
        Permission("coordination.k8s.io/leases", "patch", namespace="default", name="it"),
    ]
