"""From a change to its reconcile: 1,000 changes per second, and the cost of a reconcile that only reads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.widgets.program import REQUEUES, Peer, ProgramFailed, progress, running

OBJECTS = 1000
RATE = 1000


@dataclass
class Latency:
    """The least of all rounds: microseconds from stamp to reconcile, and of CPU for each change and each reconcile.

    `rate` is the most changes per second that came about.
    """

    median: float = float("inf")
    p99: float = float("inf")
    rate: float = 0.0
    change: float = float("inf")
    read_reconcile: float = float("inf")


async def measure(
    kubeconfig: Path, peers: Sequence[Peer], seconds: float, change: Callable[[], Awaitable[float]], *, rounds: int
) -> list[Latency]:
    """Let `change` stamp the `OBJECTS` Widgets of the server for so many seconds; it returns the rate it kept."""
    results = [Latency() for _ in peers]
    for _ in range(rounds):
        for peer, result in zip(peers, results, strict=True):
            async with running(peer, "read", kubeconfig) as program:
                await program.says("synced")
                await program.quiet()
                before = program.cpu()
                async with program.patience("did not take the changes"):
                    rate = await change()
                await program.quiet()
                changes = RATE * seconds
                change_cpu = (program.cpu() - before) / changes * 1e6
                before = program.cpu()
                await program.requeue_all()
                read_cpu = (program.cpu() - before) / (REQUEUES * OBJECTS) * 1e6
                counted = await program.stop()
            samples = sorted(counted.latencies or [])
            # A change that comes before the one before it was read hides it; more than a few mean that it fell behind.
            if len(samples) < 0.5 * changes:
                raise ProgramFailed(f"{peer.name} saw {len(samples)} of {changes:.0f} changes")
            median, p99 = float(samples[len(samples) // 2]), float(samples[len(samples) * 99 // 100])
            result.median, result.p99 = min(result.median, median), min(result.p99, p99)
            result.rate = max(result.rate, rate)
            result.change, result.read_reconcile = min(result.change, change_cpu), min(result.read_reconcile, read_cpu)
            progress(
                f"{rate:.0f} changes/s: {peer.name}: p50 {median:.0f} us, p99 {p99:.0f} us ({len(samples):,} samples), "
                f"{change_cpu:.0f} us of CPU each; {read_cpu:.0f} us for a reconcile that only reads"
            )
    return results
