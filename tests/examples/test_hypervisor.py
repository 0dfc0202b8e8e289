"""`examples/hypervisor.py`: machines on a system outside the cluster."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from examples.hypervisor import Hypervisor, Machine, MachineSpec, setup

from kubewright import ObjectMeta, ready
from kubewright.testing import World, explore, virtual

ROOT = Path(__file__).parent.parent.parent
WEB = Machine(metadata=ObjectMeta(name="web", namespace="default"), spec=MachineSpec())


def test_it_runs_and_is_short() -> None:
    command = [sys.executable, "-m", "examples.hypervisor"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == "{'default/web': 'running'}\n{}\n"
    assert len((ROOT / "examples" / "hypervisor.py").read_text().splitlines()) < 100


@virtual
async def test_a_domain_that_is_deleted_while_it_starts_does_not_come_back() -> None:
    hypervisor = Hypervisor()
    await hypervisor.start("default/web")
    hypervisor.become("default/web", "shutoff")
    del hypervisor.domains["default/web"]
    await asyncio.sleep(1)
    assert hypervisor.domains == {}


def test_a_domain_that_is_stopped_elsewhere_is_started_again_whatever_fails() -> None:
    async def stop(world: World[Hypervisor]) -> None:
        await world.create(WEB)
        await world.wait(WEB, ready)
        world.outside.become("default/web", "shutoff")

    explore(
        setup,
        outside=Hypervisor,
        kinds=[Machine],
        when=stop,
        until=lambda world: world.settled(),
        compare=lambda world: world.outside.domains,
        seeds=2,
    ).same_end()
