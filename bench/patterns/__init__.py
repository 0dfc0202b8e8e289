"""What the patterns cost over the same reconciler written by hand: an object like a User, with seven children.

Both run as processes of their own against one embedded control plane, which is not measured: CPU per object until all
are ready, and CPU per reconcile when nothing is left to do. Least of interleaved rounds.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path

from bench.figures import ROUNDS, Figure
from bench.interpreter import environment, interpreter
from bench.patterns.account import CHILDREN, Account, AccountSpec
from kubewright import Client, ControlPlane, ObjectMeta

_OBJECTS = 100
_TARGET = "at most 1.15 x by hand"


def run() -> list[Figure]:
    """Measure."""
    measured = asyncio.run(_measure())
    return [
        Figure(
            f"patterns beside by hand: {what}",
            min(each[what] for each in measured["patterns"]),
            min(each[what] for each in measured["hand"]),
            _TARGET,
        )
        for what in ("converging an object", "reconciling a settled one")
    ]


async def _measure() -> dict[str, list[dict[str, float]]]:
    measured: dict[str, list[dict[str, float]]] = {"hand": [], "patterns": []}
    async with ControlPlane.embedded(definitions=[Account], controllers=[]) as plane, plane.client() as client:
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder, "kubeconfig")
            kubeconfig.write_text(plane.kubeconfig())
            for _ in range(2 * ROUNDS):
                for variant, figures in measured.items():
                    await _create(client)
                    figures.append(await _program(variant, kubeconfig))
                    await _clear(client)
    return measured


async def _create(client: Client) -> None:
    for number in range(_OBJECTS):
        metadata = ObjectMeta(name=f"account-{number}", namespace="default")
        await client.create(Account(metadata=metadata, spec=AccountSpec(email="somebody@example.com")))


async def _clear(client: Client) -> None:
    for account in await client.list(Account):
        account.metadata.finalizers.clear()
        await client.patch(account)
    await client.delete_all(Account, namespace="default")
    for kind in CHILDREN:
        await client.delete_all(kind, namespace="default")


async def _program(variant: str, kubeconfig: Path) -> dict[str, float]:
    process = await asyncio.create_subprocess_exec(
        interpreter(),
        "-m",
        "bench.patterns.operator",
        variant,
        str(_OBJECTS),
        env={**environment(), "KUBECONFIG": str(kubeconfig), "PYTHONPATH": os.pathsep.join(_paths())},
        stdout=asyncio.subprocess.PIPE,
    )
    answer, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"bench: the operator {variant} ended with {process.returncode}")
    figures: dict[str, float] = json.loads(answer)
    return figures


def _paths() -> list[str]:
    root = Path(__file__).parent.parent.parent
    return [str(root), str(root / "src"), *filter(None, [environment().get("PYTHONPATH", "")])]
