"""Admission webhooks beside the same ones on controller-runtime: CPU of a review, its latency, and memory.

Each server is a process of its own with metrics and logs, in turns; a third process sends the reviews over TLS, as an
API server does: half to a function that fills in defaults, half to one that validates, creations and updates in turn.
CPU and memory are those of the server alone; the least of all rounds counts.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, build_peer
from bench.interpreter import interpreter
from bench.webhooks import reviews
from bench.widgets.program import Peer, Program, progress, running, warm_up

_PEERS = Path(__file__).parent.parent / "peers"
_KINDS = {"widget": "object of 1 KB", "pod": "pod of 10 KB"}
_ROUNDS = 5
_COUNTS = {"widget": 8_000, "pod": 4_000}
_PACED = 1_000
_WARM_UP = 400

# An API server that nothing asks.
_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: bench
clusters: [{name: bench, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: bench, user: {}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
"""


@dataclass
class _Cost:
    """The least of all rounds: microseconds of CPU per review and of its p99, MB of memory at the end."""

    review: float = float("inf")
    p99: float = float("inf")
    memory: float = float("inf")


def run() -> list[Figure]:
    """Measure; needs the `go` command."""
    return _measured(_ROUNDS)


def run_quick() -> list[Figure]:
    """One round."""
    return _measured(1)


def _measured(rounds: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        reviews.write(directory)
        (directory / "kubeconfig").write_text(_KUBECONFIG)
        (directory / "load").mkdir()
        load = build_peer(Path(__file__).parent / "load", directory / "load")
        (directory / "go").mkdir()
        peers = [
            Peer("kubewright", [interpreter(), "-m", "bench.peers.kubewright_webhooks"]),
            Peer("controller-runtime", [str(build_peer(_PEERS / "controller_runtime", directory / "go"))]),
        ]
        warm_up(["bench.peers.kubewright_webhooks"])
        return [figure for kind in _KINDS for figure in asyncio.run(_compared(kind, peers, load, directory, rounds))]


async def _compared(kind: str, peers: Sequence[Peer], load: Path, directory: Path, rounds: int) -> list[Figure]:
    ours, theirs = costs = [_Cost() for _ in peers]
    for _ in range(rounds):
        for peer, cost in zip(peers, costs, strict=True):
            await _measure(kind, peer, load, directory, cost)
    name = _KINDS[kind]
    return [
        Figure(f"webhook review, {name} / controller-runtime", ours.review, theirs.review, "at most 1.0 x Go"),
        Figure(f"… p99 at 200 reviews/s, {kind}", ours.p99, theirs.p99, unit="us"),
        Figure(f"… memory, {kind}", ours.memory, theirs.memory, unit="MB"),
    ]


async def _measure(kind: str, peer: Peer, load: Path, directory: Path, cost: _Cost) -> None:
    port = _free_port()
    peer = Peer(
        peer.name,
        peer.command,
        {**peer.environment, "WEBHOOK_PORT": str(port), "WEBHOOK_CERT_DIR": str(directory)},
    )
    async with running(peer, "webhooks", directory / "kubeconfig") as program:
        await program.says("serving")

        async def send(mode: str, count: int) -> str:
            return await _sent(program, [str(load), mode, str(directory), str(port), kind, str(count)])

        await send("most", _WARM_UP)
        count = _COUNTS[kind]
        before = program.cpu()
        await send("most", count)
        review = (program.cpu() - before) / count * 1e6
        p99 = float(await send("paced", _PACED))
        memory = program.resident()
        await program.stop()
    cost.review, cost.p99, cost.memory = min(cost.review, review), min(cost.p99, p99), min(cost.memory, memory)
    progress(
        f"{kind}: {peer.name}: {review:.1f} us of CPU per review ({1e6 / review:,.0f} per second of CPU), "
        f"p99 {p99:.0f} us at 200/s, {memory:.1f} MB"
    )


async def _sent(program: Program, command: Sequence[str]) -> str:
    async with program.patience("did not answer all reviews"):
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with exit code {process.returncode}")
    return output.decode()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
