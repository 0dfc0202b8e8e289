"""What `explore` promises beside finding mistakes: worlds that can be run again, alone, and the same each time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.testing.exploration.broken import DoubledChild, machines_by
from tests.testing.exploration.operators import MACHINE, Cloud, Machine, explore_living_machines, machines

from kubewright import Field, Manager, Request, Result, controller_for, now, ready
from kubewright.controller.defaults import ControllerDefaults
from kubewright.testing import Exploration, World, explore

ROOT = Path(__file__).parents[3]
SEEDED = "seed@11"
ALONE = """
from tests.testing.exploration.test_exploration import doubled, SEEDED
for finding in doubled().findings(only=SEEDED):
    print(finding)
"""


def doubled() -> Exploration[Cloud]:
    return explore_living_machines(machines_by(DoubledChild), seeds=0)


def test_a_seed_is_the_same_world_in_every_process() -> None:
    def run(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        environment.pop("PYTEST_CURRENT_TEST", None)
        command = [sys.executable, "-c", ALONE]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    first = run("1")
    assert SEEDED in first
    assert run("2") == first


def test_a_world_that_is_run_alone_is_the_same_as_among_others() -> None:
    exploration = doubled()
    (among_others,) = exploration.findings(limit=1)
    assert exploration.worlds > 3
    (alone,) = doubled().findings(only=among_others.world)
    assert str(alone) == str(among_others)


def test_the_report_has_the_line_that_runs_only_this_world(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError) as raised:
        doubled().same_end()
    report = str(raised.value)
    assert report.startswith("crash-after@2: it ends differently from the undisturbed world\n")
    line = report.splitlines()[-1].strip()
    assert line.startswith("KUBEWRIGHT_EXPLORE=crash-after@2 pytest ")
    assert line.endswith("test_exploration.py::test_the_report_has_the_line_that_runs_only_this_world")

    monkeypatch.setenv("KUBEWRIGHT_EXPLORE", "crash-after@2")
    again = doubled()
    with pytest.raises(AssertionError, match="crash-after@2"):
        again.same_end()
    assert again.worlds == 2  # the undisturbed one is what it is compared with


def test_the_number_of_seeds_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEWRIGHT_EXPLORE_SEEDS", "3")
    exploration = explore(
        machines,
        outside=Cloud,
        kinds=[Machine],
        when=lambda world: world.create(MACHINE),
        until=lambda world: world.wait(MACHINE, ready),
        faults=["cut"],
        seeds=0,
    )
    exploration.same_end()
    calls = 3  # finalizer, child, status
    assert exploration.worlds == 1 + 2 + calls + 3  # undisturbed, jittered, cut, seeded


def test_the_random_numbers_of_the_program_go_on_as_if_nothing_had_been_explored() -> None:
    random.seed(1)
    expected = [random.random() for _ in range(2)]
    random.seed(1)
    before = random.random()
    doubled().findings(only="undisturbed")
    assert [before, random.random()] == expected


def test_an_error_of_the_test_itself_is_raised() -> None:
    async def misspelt(world: World[Cloud]) -> None:
        raise KeyError("nothing of the operator's")

    with pytest.raises(KeyError):
        explore(machines, outside=Cloud, kinds=[Machine], when=misspelt, until=misspelt).same_end()


def test_an_operator_that_ends_by_itself_is_found() -> None:
    def setup(manager: Manager, cloud: Cloud) -> None:
        async def fail() -> None:
            raise RuntimeError("no disk")

        machines(manager, cloud)
        manager.add(fail)

    (found,) = explore_living_machines(setup).findings()
    assert (found.world, "RuntimeError: no disk" in found.problem.summary) == ("undisturbed", True)


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no world"):
        doubled().findings(only="crash-after")
    with pytest.raises(ValueError, match="there is no such fault"):
        explore(
            machines,
            outside=Cloud,
            when=lambda world: world.create(MACHINE),
            until=lambda world: world.settled(),
            faults=["crash"],  # type: ignore[list-item]  # what is tested
        )
    with pytest.raises(TypeError, match=r"the setup of explore is a function of \(manager\); machines.* missing"):
        explore(machines, when=lambda world: world.settled(), until=lambda world: world.settled())
    with pytest.raises(TypeError, match=r"the manager of explore is a function of \(client\), not 4"):
        explore(
            machines,
            outside=Cloud,
            when=lambda world: world.settled(),
            until=lambda world: world.settled(),
            manager=4,  # type: ignore[arg-type]  # what is tested
        )


def test_the_managers_of_the_explored_processes_can_be_chosen() -> None:
    made: list[Manager] = []

    def make(*args: Any, **options: Any) -> Manager:
        made.append(Manager(*args, **options, controllers=ControllerDefaults(workers=7)))
        return made[-1]

    exploration = explore(
        machines,
        outside=Cloud,
        kinds=[Machine],
        when=lambda world: world.create(MACHINE),
        until=lambda world: world.wait(MACHINE, ready),
        manager=make,
    )
    assert exploration.findings(only="crash-after@1") == []
    assert len(made) == 3  # undisturbed, and before and after the crash
    assert {manager.controller_defaults.workers for manager in made} == {7}


def label_new_machines(manager: Manager) -> None:
    """The controller of somebody else, who labels machines some time after they are made."""

    async def label(request: Request) -> Result | None:
        machine = await manager.client.find(Machine, request)
        if machine is None or machine.metadata.labels:
            return None
        assert machine.metadata.creation_timestamp is not None
        if now() < machine.metadata.creation_timestamp + timedelta(seconds=20):
            return Result(requeue_after=20)
        machine.metadata.labels["seen"] = "true"
        await manager.client.patch(machine)
        return None

    controller_for(manager, Machine, name="labeller").complete(label)


def test_controllers_of_others_run_in_every_world_and_are_not_struck() -> None:
    exploration = explore(
        machines,
        outside=Cloud,
        kinds=[Machine],
        others=label_new_machines,
        when=lambda world: world.create(MACHINE),
        until=lambda world: world.wait(MACHINE, Field("metadata.labels.seen").equals("true")),
        faults=["crash-after", "errors"],
        seeds=0,
    )
    assert exploration.findings() == []
    assert exploration.worlds > 3


def test_an_error_of_others_is_not_a_finding() -> None:
    def fails(manager: Manager) -> None:
        raise LookupError("no such simulator")

    exploration = explore(
        machines,
        outside=Cloud,
        kinds=[Machine],
        others=fails,
        when=lambda world: world.create(MACHINE),
        until=lambda world: world.wait(MACHINE, ready),
    )
    with pytest.raises(LookupError, match="no such simulator"):
        exploration.same_end()
