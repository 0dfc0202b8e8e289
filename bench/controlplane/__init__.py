"""How long a control plane takes until it is ready, and what a day costs of an embedded one in which nothing happens.

The first is seconds of a person's life, so wall time and not CPU; the second is CPU of virtual time.
"""

from __future__ import annotations

import asyncio
import statistics
import time

from bench.controlplane.settled import settled_day
from bench.figures import ROUNDS, Figure
from kubewright.controlplane import ControlPlane


def run() -> list[Figure]:
    """Measure; needs the binaries."""
    return [
        Figure("ControlPlane.real() until ready, wall time", _start(False), None, "at most 10,000,000", "us"),
        Figure("… with kube-controller-manager, wall time", _start(True), None, "at most 10,000,000", "us"),
        Figure("a virtual day of an embedded one, nothing in it", _day(False), None, "at most 2,000,000"),
        Figure("… with settled workloads of each kind", _day(True), None, "at most 2,000,000"),
    ]


def _start(controller_manager: bool) -> float:
    async def once() -> float:
        began = time.perf_counter()
        async with ControlPlane.real(controller_manager=controller_manager):
            return time.perf_counter() - began

    return min(asyncio.run(once()) for _ in range(ROUNDS)) * 1e6


def _day(workloads: bool) -> float:
    """The median, in microseconds."""
    return statistics.median(settled_day(workloads) for _ in range(ROUNDS)) * 1e6
