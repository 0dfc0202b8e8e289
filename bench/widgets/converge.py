"""How an operator brings Widgets to where they should be, and what it costs it that they are there already."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.widgets import objects
from bench.widgets.program import REQUEUES, Peer, Program, ProgramFailed, progress, running
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.events.v1 import Event
from kubewright.client import Client

_TOUCHES = 3


@dataclass
class Converged:
    """The least of all rounds: seconds of CPU and MB to converge, microseconds of CPU for a no-op reconcile.

    `events` is how many of the events the operator recorded reached the server: what is dropped costs nothing.
    """

    cpu: float = float("inf")
    peak: float = float("inf")
    events: float = float("inf")
    settled_reconcile: float = float("inf")
    touched_pass: float = float("inf")


async def converge(
    client: Client, kubeconfig: Path, peers: Sequence[Peer], count: int, *, rounds: int, settled: bool = False
) -> list[Converged]:
    """Start each program on `count` new Widgets, in turns; the CPU is that of the process from its start.

    With `settled`, measure afterwards what a reconcile costs that has nothing to do.
    """
    results = [Converged() for _ in peers]
    for _ in range(rounds):
        for peer, result in zip(peers, results, strict=True):
            await objects.create(client, count)
            began = time.monotonic()
            async with running(peer, "operate", kubeconfig) as program:
                async with program.patience(f"did not converge {count} Widgets"):
                    await objects.converged(client, count)
                seconds = time.monotonic() - began
                await program.quiet()
                cpu, peak = program.cpu(), program.peak()
                result.cpu, result.peak = min(result.cpu, cpu), min(result.peak, peak)
                events, children = await objects.count(client, Event), await objects.count(client, ConfigMap)
                if children != count:
                    raise ProgramFailed(
                        f"{peer.name} says that {count} Widgets are ready and made {children} ConfigMaps"
                    )
                result.events = min(result.events, events)
                progress(
                    f"converge {count:,}: {peer.name}: {cpu:.2f} s of CPU, at most {peak:.0f} MB, in {seconds:.1f} s, "
                    f"{events:,} events"
                )
                if settled:
                    await _settled(client, program, peer, result, count)
                await program.stop()
            await objects.clear(client)
    return results


async def _settled(client: Client, program: Program, peer: Peer, result: Converged, count: int) -> None:
    before = program.cpu()
    await program.requeue_all()
    requeued = (program.cpu() - before) / (REQUEUES * count) * 1e6
    await program.quiet()
    before = program.cpu()
    for touch in range(_TOUCHES):
        await objects.relabel(client, count, str(touch))
    await program.quiet()
    touched = (program.cpu() - before) / (_TOUCHES * count) * 1e6
    result.settled_reconcile = min(result.settled_reconcile, requeued)
    result.touched_pass = min(result.touched_pass, touched)
    progress(f"settled {count:,}: {peer.name}: {requeued:.0f} us of CPU when requeued, {touched:.0f} us when touched")
