"""The real kube-controller-manager on an embedded control plane; the tool runs the same for as long as one likes."""

from __future__ import annotations

import asyncio

import pytest
from tools.real_controller_manager import managed_plane
from tools.real_controller_manager.findings import Refusals, log_findings
from tools.real_controller_manager.workloads import PATIENCE, WORKLOADS, Workload, custom_resources

from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client.wait import exists
from kubewright.controlplane import BinariesNotFound


async def test_the_real_controller_manager_works_on_an_embedded_control_plane() -> None:
    """With its own identity, and a service account for each of its controllers."""
    try:
        async with managed_plane() as managed, managed.plane.client() as admin:

            async def converge(workload: Workload) -> None:
                name = workload.__name__.replace("_", "-")
                await admin.create(Namespace(metadata=ObjectMeta(name=name)))
                await admin.wait_for(ServiceAccount, "default", exists, namespace=name, timeout=PATIENCE)
                await workload(admin.in_namespace(name), admin)

            # The one that is left out waits for half a minute until custom kinds are discovered.
            await asyncio.gather(*(converge(workload) for workload in WORKLOADS if workload is not custom_resources))
            refusals = Refusals(managed.is_ending)
            for event in managed.plane.audit.events:
                refusals.record(event)
            log = managed.controller_manager.log.read_text().splitlines()
    except BinariesNotFound as error:
        pytest.skip(f"needs a real control plane: {error}")
    assert refusals.requests > 0
    assert refusals.findings.unexplained == []
    assert log_findings(log).unexplained == []


def test_the_lines_of_a_log_are_counted_by_kind() -> None:
    found = log_findings(
        [
            'I1116 14:00:00.000000   12345 a.go:1] "Started"',
            'E1116 14:00:00.000000   12345 b.go:1] "Unhandled Error" err="one"',
            'E1116 14:00:01.000000   12345 b.go:1] "Unhandled Error" err="two"',
            "W1116 14:00:00.000000   12345 c.go:1] watch of round-7 ended",
            "panic: oh",
        ]
    )
    assert {one.what: one.count for one in found.unexplained} == {
        "E b.go: Unhandled Error": 2,
        "W c.go: watch of … ended": 1,
        "panic: oh": 1,
    }
