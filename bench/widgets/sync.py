"""What it costs to have all Widgets in the cache: CPU until it is filled, and memory afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.widgets.program import Peer, progress, running


@dataclass
class Synced:
    """Of all rounds: the least seconds of CPU from the start of the process, and the least MB at the most.

    The MB after the sync are those in the middle: what else the machine does only ever adds to CPU, but how much a
    garbage collector has released by then varies both ways.
    """

    cpu: float = float("inf")
    peak: float = float("inf")
    residents: list[float] = field(default_factory=list)

    @property
    def resident(self) -> float:
        """MB after the sync."""
        return median(self.residents)


async def sync(kubeconfig: Path, peers: Sequence[Peer], count: int, *, rounds: int) -> list[Synced]:
    """Fill the cache of each program in turns. `count` is only printed: the server has that many Widgets."""
    results = [Synced() for _ in peers]
    for _ in range(rounds):
        for peer, result in zip(peers, results, strict=True):
            async with running(peer, "sync", kubeconfig) as program:
                await program.says("synced")
                await program.quiet()
                cpu, resident, peak = program.cpu(), program.resident(), program.peak()
                await program.stop()
            result.cpu, result.peak = min(result.cpu, cpu), min(result.peak, peak)
            result.residents.append(resident)
            progress(f"sync {count:,}: {peer.name}: {cpu:.2f} s of CPU, {resident:.0f} MB, at most {peak:.0f} MB")
    return results
