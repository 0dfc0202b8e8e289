"""What importing costs: CPU of a fresh interpreter, less that of one that imports nothing."""

from __future__ import annotations

import subprocess

from bench.figures import ROUNDS, Figure
from bench.interpreter import environment, interpreter

_STATEMENTS = {
    "import kubewright": "at most 100,000",
    "from kubewright import Client, Resource": "",
    "from kubewright import Manager": "",
    "from kubewright.api.core.v1 import Pod": "",
}
_SCRIPT = """
import resource
{}
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime)
"""


def run() -> list[Figure]:
    """Measure; there is no peer."""
    nothing = _cpu("pass")
    return [
        Figure(statement, max(0.0, _cpu(statement) - nothing), None, target)
        for statement, target in _STATEMENTS.items()
    ]


def _cpu(statement: str) -> float:
    command = [interpreter(), "-c", _SCRIPT.format(statement)]
    return min(
        float(subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE, text=True).stdout) * 1e6
        for _ in range(2 * ROUNDS)
    )
