"""What the Wukong operator costs: machines with three disks and two networks, from nothing until all of them run.

The operator is a process of its own, and only it is measured; the control plane and the simulators of KubeVirt and CDI
are in this one. `python -m bench --quick wukong` has fewer machines.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path

from operators.wukong import Disk, Network, Wukong, WukongSnapshot, WukongSpec, simulators

from bench.figures import Figure
from bench.interpreter import environment, interpreter
from kubewright import ControlPlane, Manager, ObjectMeta
from kubewright.controlplane.definitions import DefinitionSource

MACHINES = 500
FEW = 20
ROOT = Path(__file__).parent.parent.parent

UNITS = {
    "CPU until it runs": "CPU us",
    "peak memory": "MiB",
    "memory of one": "KiB",
    "requests until it runs": "1",
    "a settled reconcile": "CPU us",
    "requests in 10 s at rest": "1",
}


def run() -> list[Figure]:
    """Measure."""
    return figures(MACHINES)


def run_quick() -> list[Figure]:
    """Measure with few machines."""
    return figures(FEW)


def figures(machines: int) -> list[Figure]:
    """What so many machines cost."""
    measured = asyncio.run(_measure(machines))
    targets = {"requests in 10 s at rest": "0"}
    return [
        Figure(f"wukong, {machines} VMs: {what}", measured[what], None, targets.get(what, ""), unit)
        for what, unit in UNITS.items()
    ]


def machine(number: int) -> Wukong:
    """Three disks, one of them imported, and two networks."""
    disks = [Disk(name=name, size="1Gi", storage_class_name="standard") for name in ("root", "data", "logs")]
    disks[0].image = "ubuntu:24.04"
    networks = [Network(name=name, type="bridge") for name in ("lan", "wan")]
    metadata = ObjectMeta(name=f"machine-{number}", namespace="default")
    return Wukong(metadata=metadata, spec=WukongSpec(cpu=1, disks=disks, networks=networks, os_image="ubuntu"))


async def _measure(machines: int) -> dict[str, float]:
    definitions: list[DefinitionSource] = [Wukong, WukongSnapshot, simulators.DEFINITIONS]
    async with ControlPlane.embedded(definitions=definitions) as plane, plane.client() as client:
        others = Manager(client, webhook_address="0")
        simulators.setup(others)
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder, "kubeconfig")
            kubeconfig.write_text(plane.kubeconfig())
            async with others.running():
                operator = asyncio.create_task(_operator(machines, kubeconfig))
                for number in range(machines):
                    await client.create(machine(number))
                return await operator


async def _operator(machines: int, kubeconfig: Path) -> dict[str, float]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), environment().get("PYTHONPATH", "")])
    process = await asyncio.create_subprocess_exec(
        interpreter(),
        "-m",
        "bench.wukong.operator",
        str(machines),
        env={**environment(), "KUBECONFIG": str(kubeconfig), "PYTHONPATH": paths},
        stdout=asyncio.subprocess.PIPE,
    )
    answer, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"bench: the operator ended with {process.returncode}")
    measured: dict[str, float] = json.loads(answer)
    return measured
