"""Figures, and how they are taken: CPU of a process of its own, least of interleaved rounds, ours beside the peer's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.interpreter import environment

ROUNDS = 3


@dataclass(frozen=True)
class Figure:
    """What something costs, ours and, where there is a peer, its (Go's, unless the name says another); our promise."""

    name: str
    kubewright: float
    go: float | None
    target: str = ""
    unit: str = "CPU us"

    def row(self) -> str:
        """A line of the table. A ratio below 1 means that we are cheaper."""
        peer = f"{self.go:>10.1f}{self.kubewright / self.go:>8.2f}" if self.go is not None else " " * 18
        return f"{self.name:52}{self.unit:8}{self.kubewright:>12.1f}{peer}   {self.target}".rstrip()


def report(figures: Sequence[Figure]) -> str:
    """The figures as a table."""
    head = f"{'':52}{'unit':8}{'kubewright':>12}{'Go':>10}{'ratio':>8}   target"
    return "\n".join([head, *(figure.row() for figure in figures)])


def build_peer(source: Path, directory: Path) -> Path:
    """Compile the Go program in `source`."""
    go = shutil.which("go")
    if go is None:
        raise SystemExit("bench: the go command is needed for the peers; install Go and put it into PATH")
    binary = directory / "peer"
    subprocess.run([go, "build", "-o", binary, "."], cwd=source, check=True)
    return binary


def measure(name: str, ours: Sequence[str], theirs: Sequence[str], count: int, target: str = "") -> Figure:
    """Run both commands in turns; each prints the microseconds of CPU that `count` operations took."""
    own: list[float] = []
    peer: list[float] = []
    for _ in range(ROUNDS):
        own.append(_printed(ours) / count)
        peer.append(_printed(theirs) / count)
    return Figure(name, min(own), min(peer), target)


def _printed(command: Sequence[str]) -> float:
    return float(subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE, text=True).stdout)
