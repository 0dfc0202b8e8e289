"""Pods that fail, and a change of the state in the middle of it. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

import pytest
from operators.devbox.tests.disks import followed
from operators.devbox.tests.world import LONG, World, devbox, running_world
from operators.devbox.types import Phase, State

from kubewright import Field
from kubewright.api.core.v1 import Node, PersistentVolumeClaim, Pod
from kubewright.client import MergePatch
from kubewright.client.wait import deleted, exists
from kubewright.patterns import get_condition, is_true
from kubewright.testing import run_virtual

Ending = Callable[[], Awaitable[None]]
Fault = Callable[[World], Awaitable[Ending]]
"""Strikes the pods of all Devboxes, and returns what ends it."""

STATES: list[State] = ["Running", "Paused", "Stopped", "Shutdown"]
TERMINATING = Field("metadata.deletionTimestamp").satisfies(lambda time: time is not None, "is set")


async def nothing() -> None:
    """There is nothing to end."""


async def image_cannot_be_pulled(world: World) -> Ending:
    pulls = world.plane.pods.where(image="dev:1").behave(failed_pulls=inf)
    waiting = Field("status.containerStatuses[0].state.waiting.reason").equals("ImagePullBackOff")
    for pod in await delete_pods(world):
        await world.admin.wait_for(Pod, pod.metadata.name, waiting, timeout=LONG)

    async def end() -> None:
        pulls.end()

    return end


async def container_crashes(world: World) -> Ending:
    world.plane.pods.where(image="dev:1").crash(exit_code=3)
    return nothing


async def pod_is_evicted(world: World) -> Ending:
    world.plane.pods.where(image="dev:1").evict()
    return nothing


async def node_is_lost(world: World) -> Ending:
    pods = await world.admin.list(Pod)
    nodes = {pod.spec.node_name or "" for pod in pods}
    for node in nodes:
        world.plane.nodes.fail(node)
    # Pods are not evicted when no node is left: a drained one does the same.
    for pod in pods:
        await world.admin.delete(pod)
        await world.admin.wait_for(pod, TERMINATING, timeout=LONG)

    async def end() -> None:
        for node in nodes:
            world.plane.nodes.recover(node)

    return end


async def pod_terminates_slowly(world: World) -> Ending:
    world.plane.pods.where(image="dev:1").behave(stop=inf)
    await delete_pods(world, grace_period=120)
    return nothing


async def delete_pods(world: World, grace_period: int | None = None) -> list[Pod]:
    """Pods that their user deletes, and the operator replaces."""
    pods = await world.admin.list(Pod)
    for pod in pods:
        await world.admin.delete(pod, grace_period=grace_period)
    return pods


FAULTS: dict[str, Fault] = {
    "image pull": image_cannot_be_pulled,
    "crash": container_crashes,
    "eviction": pod_is_evicted,
    "node loss": node_is_lost,
    "slow termination": pod_terminates_slowly,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_state_that_is_set_in_the_middle_of_a_failure_is_reached(fault: str) -> None:
    async def main() -> None:
        async with running_world() as world:
            for state in STATES:
                await world.create(devbox(name=state.lower()))
            for state in STATES:
                await world.reaches("Running", state.lower())
            end = await FAULTS[fault](world)
            await asyncio.sleep(1)
            for state in STATES[1:]:
                await world.set_state(state, state.lower())
            await asyncio.sleep(20)
            await end()
            for state in STATES:
                await world.reaches(state, state.lower())
            for state in STATES:
                await check_end(world, state)

    run_virtual(main)


async def check_end(world: World, state: State) -> None:
    """A Devbox has just what belongs to its state."""
    ended = await world.at_rest(state.lower())
    assert ended.status.phase == state
    assert ended.status.observed_generation == ended.metadata.generation
    assert is_true(ended, "Ready")
    pod = await world.pod(state.lower())
    assert (pod is not None) == (state == "Running")
    claims = [name for name in await world.claims() if name.startswith(state.lower())]
    content = f"{state.lower()}-{ended.status.content_id}"
    if state in ("Running", "Paused"):
        assert claims == [content]
    else:
        (archive,) = claims
        assert ended.status.record.base_image == f"archive/{archive}"


def phase_and_reason(expected: Phase) -> Callable[[World], Awaitable[str]]:
    async def found(world: World) -> str:
        devbox = await world.reaches(expected)
        ready = get_condition(devbox, "Ready")
        assert ready is not None
        assert (ready.status, ready.reason) == ("False", expected)
        return ready.message

    return found


def test_what_keeps_a_devbox_from_running_is_reported() -> None:
    async def main() -> None:
        async with running_world() as world:
            await world.run()
            end = await image_cannot_be_pulled(world)
            await asyncio.sleep(5)
            assert "ImagePull" in await phase_and_reason("Pending")(world)
            await end()
            await world.reaches("Running")
            world.plane.pods.where(name="it").crash(exit_code=137, reason="OOMKilled")
            assert await phase_and_reason("Error")(world) == "the pod does not run: OOMKilled, exit code 137"
            crashed = await world.read()
            assert crashed.status.last_container_status is not None
            terminated = crashed.status.last_container_status.state.terminated
            assert terminated is not None
            assert terminated.exit_code == 137

    run_virtual(main)


def test_an_image_that_was_corrected_is_pulled_at_once() -> None:
    async def main() -> None:
        async with running_world() as world:
            world.plane.pods.where(image="typo:1").behave(failed_pulls=inf)
            wanted = devbox()
            wanted.spec.image = "typo:1"
            await world.create(wanted)
            await asyncio.sleep(60)
            await world.change(lambda found: setattr(found.spec, "image", "dev:2"))
            ran = await world.reaches("Running", timeout=20)
            assert ran.status.record.base_image == "dev:2"
            assert (await world.running_pod()).spec.containers[0].image == "dev:2"

    run_virtual(main)


def test_a_container_that_keeps_ending_is_started_ever_later() -> None:
    async def main() -> None:
        async with running_world() as world:
            world.plane.pods.where(name="it").behave(run=1, exit_code=1)
            await world.create()
            gaps, started, uid = list[int](), asyncio.get_running_loop().time(), ""
            for _ in range(7):
                pod = await world.running_pod(other_than=uid)
                gaps.append(round((asyncio.get_running_loop().time() - started) / 10))
                started, uid = asyncio.get_running_loop().time(), pod.metadata.uid
            assert gaps == [0, 1, 2, 4, 8, 16, 30]
            assert (await world.read()).status.restarts == 6
            await world.set_state("Paused")
            paused = await world.reaches("Paused")
            assert paused.status.restarts == 0

    run_virtual(main)


def test_a_pod_on_a_lost_node_is_waited_for_because_it_may_still_write() -> None:
    async def main() -> None:
        async with running_world(nodes=2) as world:
            await world.run()
            lost = await world.running_pod()
            world.plane.nodes.fail(lost.spec.node_name or "")
            await world.admin.wait_for(lost, TERMINATING, timeout=LONG)
            await world.set_state("Stopped")
            await asyncio.sleep(3600)
            waiting = await world.read()
            assert (waiting.status.phase, waiting.status.record.commit_status) == ("Stopping", "Pending")
            ready = get_condition(waiting, "Ready")
            assert ready is not None
            assert ready.message == f"the pod on {lost.spec.node_name} is terminating"
            # The node is given up by its administrator.
            await world.admin.delete(Node, lost.spec.node_name or "")
            await world.admin.wait_for(lost, deleted, timeout=LONG)
            await world.reaches("Stopped")

    run_virtual(main)


@pytest.mark.parametrize("state", ["Paused", "Stopped"])
def test_a_pod_that_has_lost_its_labels_while_the_operator_was_down_is_removed(state: State) -> None:
    async def main() -> None:
        async with running_world() as world:
            with followed(world.plane) as disks:
                await world.run()
                disks.work()
                await world.kill()
                await world.admin.patch(Pod, "it", MergePatch({"metadata": {"labels": None}}))
                await world.set_state(state)
                await world.start()
                await world.reaches(state)
                assert await world.pod() is None
                await world.set_state("Running")
                await world.reaches("Running")
                assert disks.problems == []

    run_virtual(main)


def test_a_volume_that_is_deleted_before_its_pod_has_a_node_is_claimed_again() -> None:
    async def main() -> None:
        async with running_world() as world:
            await world.admin.patch(Node, "node-1", MergePatch({"spec": {"unschedulable": True}}))
            await world.create()
            await world.admin.wait_for(Pod, "it", exists, timeout=LONG)
            (claim,) = await world.claims()
            await world.admin.delete(PersistentVolumeClaim, claim)
            await world.admin.patch(Node, "node-1", MergePatch({"spec": {"unschedulable": None}}))
            await world.reaches("Running")
            assert await world.claims() == [claim]

    run_virtual(main)


def test_no_pod_is_made_for_a_volume_that_is_being_deleted() -> None:
    async def main() -> None:
        async with running_world() as world:
            await world.run()
            await world.set_state("Paused")
            await world.reaches("Paused")
            (claim,) = await world.claims()
            hold = {"metadata": {"finalizers": ["example.com/hold"]}}
            await world.admin.patch(PersistentVolumeClaim, claim, MergePatch(hold))
            await world.admin.delete(PersistentVolumeClaim, claim)
            await world.set_state("Running")
            await asyncio.sleep(60)
            synced = get_condition(await world.read(), "PodSynced")
            assert synced is not None
            assert synced.message == f"the volume {claim} is being deleted"
            assert await world.pod() is None
            await world.admin.patch(PersistentVolumeClaim, claim, MergePatch({"metadata": {"finalizers": None}}))
            await world.reaches("Running")

    run_virtual(main)
