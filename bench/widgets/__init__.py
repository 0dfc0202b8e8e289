"""The Widget workload: operators on kubewright, on controller-runtime and on kopf, side by side in one run.

Each is a process of its own with 16 workers and default settings (metrics, logs at info, events), in turns on one
kube-apiserver with etcd. CPU and memory are those of the operator alone; the least of all rounds counts. What needs
more objects, or more exact changes, than this server could give on a small machine is measured on a scripted server
and says so.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.figures import Figure, build_peer
from bench.interpreter import interpreter
from bench.widgets import latency, objects
from bench.widgets.converge import converge
from bench.widgets.program import Peer, ProgramFailed, warm_up
from bench.widgets.scripted import scripted_server
from bench.widgets.sync import Synced, sync
from kubewright.client import Client, Config
from kubewright.controlplane import ControlPlane

_PEERS = Path(__file__).parent.parent / "peers"


@dataclass(frozen=True)
class _Plan:
    """How much is measured."""

    rounds: int
    converge: Sequence[int]
    sync: int
    seconds: float
    latency_rounds: int
    flat: Sequence[int]
    kopf: bool


_WHOLE = _Plan(
    rounds=2,
    converge=(1_000, 10_000),
    sync=10_000,
    seconds=4.0,
    # Latencies vary more than CPU does, as everything on the machine adds to them.
    latency_rounds=4,
    flat=(1_000, 10_000, 100_000),
    kopf=True,
)
_QUICK = _Plan(rounds=1, converge=(1_000,), sync=1_000, seconds=2.0, latency_rounds=1, flat=(1_000,), kopf=False)


def run() -> list[Figure]:
    """Measure; needs the `go` command and the binaries, and takes about fifteen minutes."""
    return _measured(_WHOLE)


def run_quick() -> list[Figure]:
    """The same with few objects, in single rounds and without kopf: figures of about the right size in a minute."""
    return _measured(_QUICK)


def _measured(plan: _Plan) -> list[Figure]:
    try:
        return asyncio.run(_run(plan))
    except ProgramFailed as error:
        raise SystemExit(f"bench: {error}") from None


@dataclass(frozen=True)
class _Programs:
    """The operators, and the scripted server."""

    ours: Peer
    ours_paged: Peer
    go: Peer
    go_paged: Peer
    kopf: Peer
    kopf_tuned: Peer
    server: Path


def _build(directory: Path) -> _Programs:
    def python(name: str, module: str, **environment: str) -> Peer:
        return Peer(name, [interpreter(), "-m", f"bench.peers.{module}"], environment)

    def compiled(name: str) -> Path:
        (directory / name).mkdir()
        return build_peer(_PEERS / name, directory / name)

    warm_up(["bench.peers.kubewright_widgets", "bench.peers.kopf_widgets"])
    go = str(compiled("controller_runtime"))
    return _Programs(
        ours=python("kubewright", "kubewright_widgets"),
        ours_paged=python("kubewright, paged list", "kubewright_widgets", PAGED_LIST="true"),
        go=Peer("controller-runtime", [go]),
        go_paged=Peer("controller-runtime, paged list", [go], {"KUBE_FEATURE_WatchListClient": "false"}),
        kopf=python("kopf", "kopf_widgets"),
        kopf_tuned=python("kopf, tuned", "kopf_widgets", KOPF_TUNED="true"),
        server=compiled("scripted_server"),
    )


async def _run(plan: _Plan) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        programs = _build(directory)
        async with _real(directory) as (client, kubeconfig):
            figures = [
                *await _sync(plan, programs, client, kubeconfig),
                *await _converge(plan, programs, client, kubeconfig),
                *await _latency(plan, programs, client, kubeconfig),
            ]
        return [
            *figures,
            *await _scripted_latency(plan, programs, directory),
            *await _flat(plan, programs, directory),
        ]


@asynccontextmanager
async def _real(directory: Path) -> AsyncIterator[tuple[Client, Path]]:
    # More workers only make clearing up between two rounds faster.
    async with ControlPlane.real(api_server_flags=["--delete-collection-workers=16"]) as plane:
        kubeconfig = plane.write_kubeconfig(directory / "real.yaml")
        async with Client(Config.from_kubeconfig(kubeconfig), timeout=None) as client:
            await objects.define(client)
            yield client, kubeconfig


async def _sync(plan: _Plan, programs: _Programs, client: Client, kubeconfig: Path) -> list[Figure]:
    peers = [programs.ours, programs.ours_paged, programs.go, programs.go_paged]
    # The memory of the Go programs varies by a tenth between rounds, which are short.
    rounds = 4 * plan.rounds
    empty, empty_paged, go_empty, go_empty_paged = await sync(kubeconfig, peers, 0, rounds=plan.rounds)
    await objects.create(client, plan.sync)
    ours, ours_paged, go, go_paged = await sync(kubeconfig, peers, plan.sync, rounds=rounds)
    await objects.clear(client)
    what = f"cache sync of {plan.sync:,} of 3 KB"

    def held(full: Synced, base: Synced) -> float:
        return (full.resident - base.resident) / plan.sync * 1e6

    return [
        Figure(f"{what}, streamed list", ours.cpu * 1e3, go.cpu * 1e3, "at most 0.35 x Go", "CPU ms"),
        Figure(f"{what}, paged list", ours_paged.cpu * 1e3, go_paged.cpu * 1e3, "", "CPU ms"),
        Figure("… ours streamed / Go paged list", ours.cpu * 1e3, go_paged.cpu * 1e3, "at most 0.6 x Go", "CPU ms"),
        Figure(
            "… memory per object, streamed list", held(ours, empty), held(go, go_empty), "at most 0.4 x Go", "bytes"
        ),
        Figure(
            "… memory per object, paged list",
            held(ours_paged, empty_paged),
            held(go_paged, go_empty_paged),
            "",
            "bytes",
        ),
        Figure("… memory with no objects", empty.resident, go_empty.resident, "", "MB"),
        Figure("… peak memory, streamed list", ours.peak, go.peak, "", "MB"),
        Figure("… peak memory, paged list", ours_paged.peak, go_paged.peak, "", "MB"),
    ]


async def _converge(plan: _Plan, programs: _Programs, client: Client, kubeconfig: Path) -> list[Figure]:
    figures = []
    for count in plan.converge:
        # What a settled object costs, and kopf, are measured with the least objects. These are also the ones that can
        # be had in many rounds: between two, the CPU of the same program varies by a fifth.
        first = count == plan.converge[0]
        rounds = 4 * plan.rounds if first else plan.rounds
        ours, go = await converge(client, kubeconfig, [programs.ours, programs.go], count, rounds=rounds, settled=first)
        what = f"converge {count:,} widgets"
        figures += [
            Figure(what, ours.cpu * 1e3, go.cpu * 1e3, "at most 0.6 x Go", "CPU ms"),
            Figure("… peak memory", ours.peak, go.peak, "at most 0.8 x Go", "MB"),
            Figure("… events that reached the server", ours.events, go.events, "", "events"),
        ]
        if first:
            figures += [
                Figure(
                    "settled reconcile: widget and child from the cache", ours.settled_reconcile, go.settled_reconcile
                ),
                Figure("… with the watch event that caused it", ours.touched_pass, go.touched_pass),
            ]
        if first and plan.kopf:
            kopf, tuned = await converge(client, kubeconfig, [programs.kopf, programs.kopf_tuned], count, rounds=1)
            figures += [
                Figure(f"{what} / kopf", ours.cpu * 1e3, kopf.cpu * 1e3, "at most 0.1 x kopf", "CPU ms"),
                Figure("… peak memory / kopf", ours.peak, kopf.peak, "", "MB"),
                Figure(f"{what} / kopf, tuned", ours.cpu * 1e3, tuned.cpu * 1e3, "", "CPU ms"),
                Figure("… peak memory / kopf, tuned", ours.peak, tuned.peak, "", "MB"),
            ]
    return figures


async def _latency(plan: _Plan, programs: _Programs, client: Client, kubeconfig: Path) -> list[Figure]:
    # Of large ones the server, on two cores, takes no more than 400 changes a second.
    await objects.create_small(client, latency.OBJECTS)
    change = partial(objects.stamp, client, latency.OBJECTS, latency.RATE, plan.seconds)
    peers = [programs.ours, programs.go]
    ours, go = await latency.measure(kubeconfig, peers, plan.seconds, change, rounds=plan.latency_rounds)
    await objects.clear(client)
    return [
        Figure("no-op reconcile: widget from the cache", ours.read_reconcile, go.read_reconcile, "at most 60"),
        Figure("change to reconcile, 1,000/s, write included, p50", ours.median, go.median, "", "us"),
        Figure("… p99", ours.p99, go.p99, "at most 1.0 x Go", "us"),
        Figure("… changes that the server took", ours.rate, go.rate, "", "per s"),
        Figure("… CPU of each", ours.change, go.change),
    ]


async def _scripted_latency(plan: _Plan, programs: _Programs, directory: Path) -> list[Figure]:
    async with scripted_server(programs.server, directory, latency.OBJECTS) as server:
        change = partial(server.emit, latency.RATE, round(latency.RATE * plan.seconds))
        peers = [programs.ours, programs.go]
        ours, go = await latency.measure(server.kubeconfig, peers, plan.seconds, change, rounds=plan.latency_rounds)
    return [
        Figure("event to reconcile, 1,000/s, scripted server, p50", ours.median, go.median, "", "us"),
        Figure("… p99", ours.p99, go.p99, "at most 1.0 x Go", "us"),
        Figure("… changes that came about", ours.rate, go.rate, "", "per s"),
        Figure("… CPU of each, 3 KB", ours.change, go.change),
    ]


async def _flat(plan: _Plan, programs: _Programs, directory: Path) -> list[Figure]:
    peers = [programs.ours, programs.go]
    results: dict[int, list[Synced]] = {}
    for count in (0, *plan.flat):
        async with scripted_server(programs.server, directory, count) as server:
            # The fewer objects, the more does the start of the process, with all its chance, hide what they cost.
            rounds = 2 * plan.rounds if count < 10_000 else 1
            results[count] = await sync(server.kubeconfig, peers, count, rounds=rounds)
    empty, go_empty = results.pop(0)
    figures = []
    for count, (ours, go) in results.items():
        cpu, go_cpu = ours.cpu - empty.cpu, go.cpu - go_empty.cpu
        held, go_held = ours.resident - empty.resident, go.resident - go_empty.resident
        figures += [
            Figure(f"sync per object at {count:,}, scripted server", cpu / count * 1e6, go_cpu / count * 1e6, "flat"),
            Figure("… memory", held / count * 1e6, go_held / count * 1e6, "flat", "bytes"),
        ]
    return figures
