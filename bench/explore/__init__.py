"""What one world of `kubewright.testing.explore` costs: CPU of a process of its own, the start of the control plane
included and imports not. Ten worlds in a second of one core are 100,000 us each.
"""

from __future__ import annotations

import subprocess

from bench.figures import ROUNDS, Figure
from bench.interpreter import environment, interpreter


def run() -> list[Figure]:
    """Measure; there is no peer."""
    return [
        Figure("explore, a world of a small operator", _cpu("every-fault"), None, "at most 100,000"),
        Figure("… of several faults and two replicas", _cpu("seeds"), None, "at most 100,000"),
    ]


def _cpu(worlds: str) -> float:
    command = [interpreter(), "-m", "bench.explore.program", worlds]
    return min(
        float(subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE, text=True).stdout)
        for _ in range(ROUNDS)
    )
