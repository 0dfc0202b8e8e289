"""Run the real kube-controller-manager against an embedded control plane whose own controllers are off.

    python -m tools.real_controller_manager --minutes 10

In rounds, each in namespaces of its own, objects of each kind that it looks after are created, changed and deleted.
The report says whether everything converged, what kube-controller-manager complained of, which of its requests the
server refused, whether the nodes stayed Ready, and what both cost. The exit status is 1 when something is unexplained.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import time
from pathlib import Path

from tools.real_controller_manager import ManagedPlane, managed_plane
from tools.real_controller_manager.findings import Findings, Refusals, log_findings
from tools.real_controller_manager.workloads import PATIENCE, WORKLOADS, Workload

from kubewright.api.core.v1 import Namespace, Node, ServiceAccount
from kubewright.api.errors import KubernetesError
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.wait import deleted, exists
from kubewright.controlplane import ControlPlaneError
from kubewright.patterns.conditions import is_true

_POLL_SECONDS = 1.0


def main(arguments: list[str]) -> int:
    """Run and print the report."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.real_controller_manager",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    parser.add_argument("--log", type=Path, help="keep the log of kube-controller-manager in this file")
    options = parser.parse_args(arguments)
    try:
        return asyncio.run(_run(options.minutes, options.log))
    except ControlPlaneError as error:
        print(f"kubewright: {error}", file=sys.stderr)
        return 1


async def _run(minutes: float, log: Path | None) -> int:
    began = time.monotonic()
    async with managed_plane() as managed:
        watching = asyncio.create_task(_watch(managed))
        run = _Rounds(managed, deadline=began + minutes * 60)
        await run.all()
        refusals, restless = await _ended(watching)
        text = managed.controller_manager.log.read_text(errors="replace")
        if log is not None:
            await asyncio.to_thread(log.write_text, text)
        complaints = log_findings(text.splitlines())
        print(f"{time.monotonic() - began:.0f} s, {run.finished} workloads in {run.rounds} rounds converged")
        for failure in run.failures:
            print(f"  DID NOT CONVERGE: {failure}")
        print("nodes: " + (", ".join(sorted(restless)) + " were not Ready" if restless else "always Ready"))
        print(f"{refusals.requests} requests of kube-controller-manager, refused of them:")
        _print(refusals.findings)
        print("warnings and errors in its log:")
        _print(complaints)
        _print_costs(managed.controller_manager.pid)
        is_down = managed.controller_manager.exit_code is not None
        if is_down:
            print(f"kube-controller-manager ended with {managed.controller_manager.exit_code}")
    bad = run.failures or restless or refusals.findings.unexplained or complaints.unexplained or is_down
    return 1 if bad else 0


class _Rounds:
    """Runs all workloads again and again until the deadline, each round in namespaces of its own."""

    def __init__(self, managed: ManagedPlane, deadline: float) -> None:
        self._managed = managed
        self._deadline = deadline
        self.rounds = self.finished = 0
        self.failures: list[str] = []

    async def all(self) -> None:
        """Return after the last round, and not before the deadline."""
        async with self._managed.plane.client() as admin:
            while time.monotonic() < self._deadline:
                self.rounds += 1
                await asyncio.gather(*(self._one(admin, workload) for workload in WORKLOADS))
                if self._managed.controller_manager.exit_code is not None:
                    return
                # A round takes seconds; what goes wrong with time needs time, not load.
                await asyncio.sleep(max(0.0, min(20.0, self._deadline - time.monotonic())))

    async def _one(self, admin: Client, workload: Workload) -> None:
        name = f"round-{self.rounds}-{workload.__name__.replace('_', '-')}"
        try:
            namespace = await admin.create(Namespace(metadata=ObjectMeta(name=name)))
            await admin.wait_for(ServiceAccount, "default", exists, namespace=name, timeout=PATIENCE)
            await workload(admin.in_namespace(name), admin)
            await admin.delete(namespace)
            await admin.wait_for(namespace, deleted, timeout=PATIENCE)
        except (KubernetesError, AssertionError) as error:
            self.failures.append(f"{name}: {error}")
        else:
            self.finished += 1


async def _watch(managed: ManagedPlane) -> tuple[Refusals, set[str]]:
    """Until cancelled: the refused requests, and the nodes that were not Ready at some time."""
    refusals, restless = Refusals(managed.is_ending), set[str]()

    async def nodes() -> None:
        async with managed.plane.client() as admin:
            while True:
                restless.update(node.metadata.name for node in await admin.list(Node) if not is_true(node, "Ready"))
                await asyncio.sleep(_POLL_SECONDS)

    looking = asyncio.create_task(nodes())
    try:
        async for event in managed.plane.audit.follow():
            refusals.record(event)
    except asyncio.CancelledError:
        pass
    looking.cancel()
    await asyncio.wait((looking,))
    return refusals, restless


async def _ended(watching: asyncio.Task[tuple[Refusals, set[str]]]) -> tuple[Refusals, set[str]]:
    watching.cancel()
    return await watching


def _print(findings: Findings) -> None:
    for line in findings.report():
        print(line)


def _print_costs(pid: int) -> None:
    own = resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"this process (server, nodes, scheduler and the client of the workloads): "
        f"{own.ru_utime + own.ru_stime:.1f} s of CPU, at most {own.ru_maxrss // 1024} MB"
    )
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    peak = next(line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in line)
    print(f"kube-controller-manager: {seconds:.1f} s of CPU, at most {int(peak) // 1024} MB")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
