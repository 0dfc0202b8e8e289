from __future__ import annotations

import tracemalloc
from pathlib import Path

from kubewright import ControlPlane, Manager, ObjectMeta, Permission, Request, controller_for
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap, Pod
from kubewright.client import MergePatch
from kubewright.testing import recorded_permissions
from kubewright.testing.audit_file import AuditFile, AuditFileRequest, requests_in


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


def test_a_log_is_read_line_by_line(tmp_path: Path) -> None:
    """That of a cluster may have gigabytes."""
    request = AuditFileRequest("it", "get", "", "pods", "", "default", "it" * 1000, is_apply=False, is_of_test=True)
    log = tmp_path / "audit.log"
    log.write_bytes(request.line() * 1000)
    tracemalloc.start()
    try:
        assert set(requests_in(log)) == {request}
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < log.stat().st_size / 4
