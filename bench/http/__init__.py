"""The transport against Go's net/http: the same requests to the same server, in the same run.

Each client is a process of its own, rounds are interleaved, and the least CPU of all rounds counts: on a shared
machine everything above it is noise.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.http import fixtures

_PEER = Path(__file__).parent / "peer"
_ROUNDS = 3


@dataclass(frozen=True)
class Figure:
    """Microseconds of CPU per operation, ours and Go's."""

    name: str
    kubewright: float
    go: float
    target: str

    @property
    def ratio(self) -> float:
        return self.kubewright / self.go


def run(*, puts: int = 20_000, lines: int = 50_000, rounds: int = _ROUNDS) -> list[Figure]:
    """Measure; needs the `go` command."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        fixtures.write(directory)
        peer = _build(directory)
        with _server(peer, directory) as address:
            return [
                _measure(
                    "PUT 2 KB, TLS, 16 in flight", "at most 1.0 x Go", peer, directory, address, "put", puts, rounds
                ),
                _measure("watch line 1.5 KB, TLS", "at most 15 us", peer, directory, address, "watch", lines, rounds),
            ]


def report(figures: list[Figure]) -> str:
    """The figures as a table."""
    rows = [f"{'':30}{'kubewright us':>15}{'Go us':>10}{'ratio':>8}   target"]
    rows += [
        f"{figure.name:30}{figure.kubewright:>15.1f}{figure.go:>10.1f}{figure.ratio:>8.2f}   {figure.target}"
        for figure in figures
    ]
    return "\n".join(rows)


def _build(directory: Path) -> Path:
    go = shutil.which("go")
    if go is None:
        raise SystemExit("bench.http: the go command is needed for the peers; install Go and put it into PATH")
    binary = directory / "peer"
    subprocess.run([go, "build", "-o", binary, "."], cwd=_PEER, check=True)
    return binary


@contextmanager
def _server(peer: Path, directory: Path) -> Iterator[str]:
    process = subprocess.Popen([peer, "server", directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    # Leaving closes its standard input, which ends it.
    with process:
        if process.stdout is None:
            raise RuntimeError("the server has no output")
        yield process.stdout.readline().strip()


def _measure(
    name: str, target: str, peer: Path, directory: Path, address: str, command: str, count: int, rounds: int
) -> Figure:
    arguments = [command, str(directory), address, str(count)]
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        ours.append(_cpu([sys.executable, "-m", "bench.http.client", *arguments]) / count)
        theirs.append(_cpu([str(peer), *arguments]) / count)
    return Figure(name, min(ours), min(theirs), target)


def _cpu(command: list[str]) -> float:
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
