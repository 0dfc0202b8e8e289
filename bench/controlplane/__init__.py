"""How long a control plane takes until it is ready: seconds of a person's life, so wall time and not CPU."""

from __future__ import annotations

import asyncio
import time

from bench.figures import ROUNDS, Figure
from kubewright.controlplane import ControlPlane


def run() -> list[Figure]:
    """Measure; needs the binaries."""
    return [
        Figure("ControlPlane.real() until ready, wall time", _start(False), None, "at most 10,000,000", "us"),
        Figure("… with kube-controller-manager, wall time", _start(True), None, "at most 10,000,000", "us"),
    ]


def _start(controller_manager: bool) -> float:
    async def once() -> float:
        began = time.perf_counter()
        async with ControlPlane.real(controller_manager=controller_manager):
            return time.perf_counter() - began

    return min(asyncio.run(once()) for _ in range(ROUNDS)) * 1e6
