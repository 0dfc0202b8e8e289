"""The embedded control plane beside the real one: CPU of all server processes per request, the same client for both."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.apiserver.load import LOADS, run_loads
from bench.figures import Figure
from bench.interpreter import environment, interpreter
from kubewright.client import Client, Config
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.real import RealControlPlane

_MEMORY = "memory"
_TICK = os.sysconf("SC_CLK_TCK")


def run() -> list[Figure]:
    """Measure; needs the binaries. The column of the peer is kube-apiserver with etcd."""
    start = _start_of_embedded()
    ours = asyncio.run(_embedded())
    theirs = asyncio.run(_real())
    memory = Figure("memory when idle / kube-apiserver + etcd", ours.pop(_MEMORY), theirs.pop(_MEMORY), unit="KiB")
    figures = [
        Figure(f"{name} / kube-apiserver + etcd", ours[name], theirs[name], "at most 1.0 x for get and create")
        for name in LOADS
    ]
    return [Figure("ControlPlane.embedded() until ready", start, None, "at most 300,000"), memory, *figures]


async def _embedded() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, embedded_process(Path(folder) / "kubeconfig") as (pid, kubeconfig):
        async with Client(Config.from_kubeconfig(kubeconfig)) as client:
            return {_MEMORY: memory_of([pid]), **await run_loads(client, lambda: cpu_of([pid]))}


async def _real() -> dict[str, float]:
    async with ControlPlane.real() as plane, plane.client() as client:
        if not isinstance(plane, RealControlPlane):
            raise TypeError("ControlPlane.real() is a RealControlPlane")
        pids = [program.pid for program in plane.programs]
        return {_MEMORY: memory_of(pids), **await run_loads(client, lambda: cpu_of(pids))}


@contextmanager
def embedded_process(kubeconfig: Path) -> Iterator[tuple[int, Path]]:
    command = [interpreter(), "-m", "kubewright", "controlplane", "--port", "0", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            if process.stdout is None or not process.stdout.readline().startswith("ready:"):
                raise RuntimeError("the embedded control plane did not start")
            yield process.pid, kubeconfig
        finally:
            process.terminate()


def _start_of_embedded() -> float:
    """CPU of starting one in a process where everything is imported already."""

    async def once() -> float:
        before = time.process_time()
        async with ControlPlane.embedded():
            return time.process_time() - before

    return min(asyncio.run(once()) for _ in range(3)) * 1e6


def memory_of(pids: list[int]) -> float:
    """KiB that processes hold in memory."""
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
    return sum(float(status.partition("VmRSS:")[2].split()[0]) for status in statuses)


def cpu_of(pids: list[int]) -> float:
    """Microseconds of CPU that processes have used so far."""
    total = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / _TICK
    return total * 1e6
