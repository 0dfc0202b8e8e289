"""Whatever is done to a Devbox, in whatever order: it ends in the phase of its state, and no file of its user is lost.

DEVBOX_EXAMPLES=1000 runs more sequences, with another choice each time.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from datetime import timedelta
from math import inf
from typing import Literal, NamedTuple, get_args

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from operators.devbox import Devbox, DevboxStatus, Options
from operators.devbox.tests.disks import Disks, followed
from operators.devbox.tests.world import COMMITS, LONG, World, running_world
from operators.devbox.types import State

from kubewright import Conflict, Invalid, NotFound
from kubewright.api.batch.v1 import Job
from kubewright.api.core.v1 import PersistentVolumeClaim, Pod, Secret, Service
from kubewright.client import MergePatch
from kubewright.controlplane.controllers.pod_script import ScriptedBehaviour
from kubewright.controlplane.errors import ControlPlaneError
from kubewright.patterns import is_true
from kubewright.testing import run_virtual

EXAMPLES = int(os.environ.get("DEVBOX_EXAMPLES", "0"))

States = st.sampled_from(["Running", "Paused", "Stopped", "Shutdown"])
Seconds = st.sampled_from([0.0, 0.01, 0.3, 1.0, 2.0, 4.0, 12.0, 70.0, 400.0])
Deed = Literal[
    "crash",
    "evict",
    "delete pod",
    "strip labels",
    "images fail",
    "commits fail",
    "slow stop",
    "slow commits",
    "evict commits",
    "delete job",
    "suspend job",
    "delete archive",
    "pods are well",
    "node fails",
    "node recovers",
    "kill",
    "start",
    "work",
    "delete secret",
    "delete service",
    "change image",
    "change labels",
    "remove owners",
    "lose status",
    "read status",
    "earlier status",
]
Deeds: st.SearchStrategy[Deed] = st.sampled_from(get_args(Deed))


class Move(NamedTuple):
    """What is done, a while after the one before."""

    after: float
    deed: State | Deed


Moves = st.lists(st.builds(Move, Seconds, st.one_of(States, Deeds)), min_size=1, max_size=14)


class Play:
    """One sequence of moves in one world."""

    def __init__(self, world: World, disks: Disks, status: DevboxStatus, *, is_remembered: bool) -> None:
        """`is_remembered` when the status is never lost, nor replaced by an earlier one."""
        self.world = world
        self.disks = disks
        self._earlier = status
        self._is_remembered = is_remembered
        self._scripts: list[ScriptedBehaviour] = []
        self._is_killed = False

    async def do(self, deed: State | Deed) -> None:
        world, pods = self.world, self.world.plane.pods
        match deed:
            case "Running" | "Paused" | "Stopped" | "Shutdown":
                with suppress(Invalid):  # by the rules about states
                    await world.set_state(deed)
            case "work":
                self.disks.work()
            case "crash" | "evict" | "evict commits":
                chosen = pods.where(labels=COMMITS) if deed == "evict commits" else pods.where(name="it")
                with suppress(ControlPlaneError):  # nothing runs
                    chosen.crash() if deed == "crash" else chosen.evict()
            case "images fail":
                self._scripts.append(pods.where(name="it").behave(failed_pulls=inf))
            case "commits fail":
                self._scripts.append(pods.where(labels=COMMITS).behave(run=1, exit_code=1))
            case "slow stop":
                self._scripts.append(pods.where(name="it").behave(stop=30))
            case "slow commits":
                self._scripts.append(pods.where(labels=COMMITS).behave(run=30))
            case "pods are well":
                self._heal()
            case "node fails":
                world.plane.nodes.fail("node-1")
            case "node recovers":
                world.plane.nodes.recover("node-1")
            case "kill":
                self._is_killed = True
                await world.kill()
            case "start":
                await self._start()
            case "delete pod":
                await world.admin.delete(Pod, "it", missing_ok=True)
            case "delete job":
                # As kubectl does: its pod goes on for a while.
                await world.admin.delete(Job, "it-commit", propagation="Background", missing_ok=True)
            case "suspend job":
                with suppress(NotFound):
                    await world.admin.patch(Job, "it-commit", MergePatch({"spec": {"suspend": True}}))
            case "delete archive":
                await self._delete_archive()
            case "delete secret":
                await world.admin.delete(Secret, "it", missing_ok=True)
            case "delete service":
                await world.admin.delete(Service, "it-svc", missing_ok=True)
            case "strip labels":
                if await world.pod() is not None:
                    await world.admin.patch(Pod, "it", MergePatch({"metadata": {"labels": None}}))
            case "change image":
                await world.change(lambda devbox: setattr(devbox.spec, "image", f"{devbox.spec.image}.1"))
            case "change labels":
                await world.change(
                    lambda devbox: devbox.spec.config.labels.update({f"n{devbox.metadata.generation}": "x"})
                )
            case "remove owners":
                for claim in await world.admin.list(PersistentVolumeClaim):
                    with suppress(NotFound):
                        await world.admin.patch(claim, MergePatch({"metadata": {"ownerReferences": None}}))
            case "lose status":
                # As when objects are restored from a backup.
                await world.admin.status.patch(Devbox, "it", MergePatch({"status": None}))
            case "read status":
                self._earlier = (await world.read()).status
            case "earlier status":
                # As when a client of v1alpha1 applies what it has read before.
                found = await world.read()
                found.status = self._earlier
                with suppress(Conflict):
                    await world.admin.status.update(found)

    async def end(self) -> Devbox:
        """Let everything work again, and return the Devbox when nothing happens any more."""
        self._heal()
        self.world.plane.nodes.recover("node-1")
        await self._start()
        for _ in range(100):
            devbox = await self.world.at_rest()
            if is_true(devbox, "Ready"):
                return devbox
            await asyncio.sleep(10)
        raise AssertionError(f"it does not come to the end: {devbox.status}")

    async def _delete_archive(self) -> None:
        """Delete that of a content that is known to need it no more."""
        status = (await self.world.read()).status
        if self._is_remembered and status.record.start_time is not None:
            archive = status.record.base_image.removeprefix("archive/")
            await self.world.admin.delete(PersistentVolumeClaim, archive, missing_ok=True)

    async def _start(self) -> None:
        if self._is_killed:
            self._is_killed = False
            await self.world.start()

    def _heal(self) -> None:
        for script in self._scripts:
            script.end()
        self._scripts.clear()


async def play(moves: list[Move]) -> None:
    options = Options(commit_tries=1_000_000, commit_timeout=timedelta(minutes=2))
    async with running_world(nodes=2, options=options) as world:
        with followed(world.plane) as disks:
            status = (await world.run()).status
            disks.work()
            is_remembered = not {"lose status", "earlier status"} & {move.deed for move in moves}
            one = Play(world, disks, status, is_remembered=is_remembered)
            for move in moves:
                await asyncio.sleep(move.after)
                await one.do(move.deed)
            async with asyncio.timeout(10 * LONG):
                devbox = await one.end()
            await check(world, devbox, disks, is_remembered=is_remembered)


async def check(world: World, devbox: Devbox, disks: Disks, *, is_remembered: bool) -> None:
    """The Devbox is in the phase of its state, has what belongs to that, and all files.

    If its status is of the present, nothing else is left of what it was in between.
    """
    status, state = devbox.status, devbox.spec.state
    assert disks.problems == []
    assert (status.phase, status.state) == (state, state)
    assert status.observed_generation == devbox.metadata.generation
    claims = set(await world.claims())
    contents = {name for name in claims if not name.endswith("-archive")}
    services = {name for name in await world.names(Service) if name != "kubernetes"}
    assert (await world.pod() is not None) == (state == "Running")
    assert services == {status.network.unique_id, *(() if state == "Shutdown" else ("it-svc",))}
    base = status.record.base_image.removeprefix("archive/")
    archives = claims - contents
    assert archives <= {base} or not is_remembered
    for claim in await world.admin.list(PersistentVolumeClaim):
        assert [owner.uid for owner in claim.metadata.owner_references] == [devbox.metadata.uid]
    if state in ("Stopped", "Shutdown"):
        assert contents == set()
        assert disks.missing(base) == []
    elif f"it-{status.content_id}" in contents:
        assert contents == {f"it-{status.content_id}"}
        assert disks.missing(f"it-{status.content_id}") == [] or disks.missing(base) == []
    else:
        assert (state, disks.missing(base)) == ("Paused", [])


@settings(
    max_examples=EXAMPLES or 3,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(Moves)
@example([Move(0.0, "Stopped"), Move(0.3, "kill"), Move(1.0, "Running"), Move(70.0, "start"), Move(4.0, "Shutdown")])
@example([Move(0.0, "commits fail"), Move(0.0, "Stopped"), Move(12.0, "Running"), Move(4.0, "work")])
@example([Move(0.0, "node fails"), Move(70.0, "Stopped"), Move(400.0, "node recovers"), Move(0.3, "Running")])
@example([Move(0.0, "Stopped"), Move(12.0, "images fail"), Move(0.0, "Running"), Move(12.0, "Shutdown")])
@example([Move(0.0, "Paused"), Move(12.0, "lose status"), Move(1.0, "Running")])
@example([Move(0.0, "Stopped"), Move(12.0, "lose status"), Move(1.0, "Running")])
@example([Move(0.0, "Stopped"), Move(2.0, "read status"), Move(0.01, "earlier status")])
def test_whatever_happens_a_devbox_ends_in_the_phase_of_its_state_and_loses_no_file(moves: list[Move]) -> None:
    run_virtual(lambda: play(moves))
