"""What it costs to have all Widgets in the cache: CPU until it is filled, and memory afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.widgets.program import Peer, progress, running


@dataclass
class Synced:
    """The least of all rounds: seconds of CPU from the start of the process, MB after the sync, MB at the most."""

    cpu: float = float("inf")
    resident: float = float("inf")
    peak: float = float("inf")


async def sync(kubeconfig: Path, peers: Sequence[Peer], count: int, *, rounds: int) -> list[Synced]:
    """Fill the cache of each program in turns. `count` is only told: the server has that many Widgets."""
    results = [Synced() for _ in peers]
    for _ in range(rounds):
        for peer, result in zip(peers, results, strict=True):
            async with running(peer, "sync", kubeconfig) as program:
                await program.says("synced")
                await program.quiet()
                cpu, resident, peak = program.cpu(), program.resident(), program.peak()
                await program.stop()
            result.cpu, result.resident, result.peak = (
                min(result.cpu, cpu),
                min(result.resident, resident),
                min(result.peak, peak),
            )
            progress(f"sync {count:,}: {peer.name}: {cpu:.2f} s of CPU, {resident:.0f} MB, at most {peak:.0f} MB")
    return results
