"""Pods in the hands of a test, on an embedded control plane in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from math import inf, nan
from typing import Literal

import pytest

from kubewright.api.core.v1 import Container, Event, Pod, PodSpec
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.wait import Field, deleted, ready
from kubewright.controlplane import ControlPlane, ControlPlaneError
from kubewright.controlplane.controllers.pod_behaviour import PREFIX, Behaviour
from kubewright.controlplane.controllers.pod_script import BehaviourChanges, PodScript
from kubewright.controlplane.controllers.pods import is_ready
from kubewright.patterns.conditions import get_condition
from kubewright.testing import virtual

STATE = Field("status.containerStatuses[0].state")
WAITING = Field("status.containerStatuses[0].state.waiting.reason")
RESTARTS = Field("status.containerStatuses[0].restartCount")


def pod(
    name: str = "web",
    image: str = "web:1",
    restart_policy: Literal["Always", "Never"] = "Always",
    **annotations: str,
) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            labels={"app": name},
            annotations={PREFIX + key.replace("_", "-"): value for key, value in annotations.items()},
        ),
        spec=PodSpec(restart_policy=restart_policy, containers=[Container(name="main", image=image)]),
    )


def test_all_of_a_behaviour_can_be_changed() -> None:
    assert [field.name for field in fields(Behaviour)] == list(BehaviourChanges.__annotations__)


def test_pods_are_selected_by_all_that_is_given() -> None:
    script = PodScript()
    script.where(name="web", namespace="default", labels={"app": "web"}, image="web:1").behave(start=1)
    script.where(lambda pod: pod.metadata.name == "other").behave(start=2)
    elsewhere = pod()
    elsewhere.metadata.namespace = "elsewhere"

    assert script.behaviour_of(pod()).start == 1
    assert script.behaviour_of(pod("other")).start == 2
    assert script.behaviour_of(elsewhere).start == 0
    assert script.behaviour_of(pod(image="web:2")).start == 0


def test_changes_add_up_and_the_last_one_counts() -> None:
    script = PodScript()
    everywhere, first = script.where(), script.where().behave(start=1, stop=5)
    second = everywhere.behave(start=2)
    subject = pod(ready="3")

    assert script.behaviour_of(subject) == Behaviour(start=2, ready=3, stop=5)
    second.end()
    second.end()
    assert script.behaviour_of(subject) == Behaviour(start=1, ready=3, stop=5)
    first.end()
    assert script.behaviour_of(subject) == Behaviour(ready=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": "5"}, "start is '5': expected seconds, such as 2.5, or math.inf"),
        ({"start": -1}, "start is -1"),
        ({"start": nan}, "start is nan"),
        ({"stop": 1e30}, r"stop is 1e\+30"),
        ({"ready": None}, "ready is None"),
        ({"run": "1"}, "run is '1': expected seconds, such as 2.5, or None"),
        ({"crashes": -1}, "crashes is -1: expected a number"),
        ({"failed_pulls": 1.5}, "failed_pulls is 1.5: expected a number, such as 3, or math.inf"),
        ({"exit_code": 256}, "exit_code is 256: expected a number from 0 to 255"),
        ({"exit_code": "1"}, "exit_code is '1'"),
        ({"reason": None}, "reason is None: expected a text"),
    ],
)
def test_what_cannot_be_a_behaviour_is_refused_where_it_is_written(changes: BehaviourChanges, message: str) -> None:
    """And not in the simulator, where every pod that it is for would wait for ever."""
    script = PodScript()

    with pytest.raises(ValueError, match=message):
        script.where().behave(**changes)

    assert script.behaviour_of(pod()) == Behaviour()


def test_a_misspelled_behaviour_is_refused_with_those_there_are() -> None:
    with pytest.raises(TypeError, match=r"no behaviour runn \(there are: crashes, exit_code, .*, run, "):
        PodScript().where().behave(runn=0)  # type: ignore[call-arg]


def test_a_name_without_a_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match=r"where\('web'\): expected a function of a Pod; by name it is where\(name="):
        PodScript().where("web")  # type: ignore[arg-type]


@virtual
async def test_a_predicate_that_fails_leaves_no_behaviour_behind() -> None:
    def fails(subject: Pod) -> bool:
        raise LookupError(subject.metadata.name)

    async with ControlPlane.embedded() as plane, plane.client() as client:
        await client.wait_for(await client.create(pod()), ready)
        with pytest.raises(LookupError, match="web"):
            plane.pods.where(fails).behave(run=0)

        await client.wait_for(await client.create(pod("other")), ready)


@virtual
async def test_a_pod_can_be_kept_from_starting_and_from_ending_for_ever() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        lasting = plane.pods.where(name="lasting").behave(run=inf)
        with plane.pods.where(name="late").behave(start=inf):
            late, _ = await client.create(pod("late")), await client.create(pod("lasting"))
            await asyncio.sleep(24 * 3600)
            pods = {one.metadata.name: one for one in await client.list(Pod)}
        await client.wait_for(late, ready)
        lasting.end()

    assert [state.waiting.reason for one in pods["late"].status.container_statuses if (state := one.state).waiting] == [
        "ContainerCreating"
    ]
    assert is_ready(pods["lasting"])
    assert pods["lasting"].status.container_statuses[0].restart_count == 0


@virtual
async def test_pods_of_a_failed_node_and_deleted_ones_cannot_crash() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        subject = await client.wait_for(await client.create(pod(stop="30")), ready)
        assert subject is not None
        plane.nodes.fail("node-1")
        with pytest.raises(ControlPlaneError, match="none of the selected pods runs on a simulated node that works"):
            plane.pods.where().crash()
        plane.nodes.recover("node-1")
        await client.delete(subject)
        await asyncio.sleep(10)
        with pytest.raises(ControlPlaneError, match="none of the selected pods runs"):
            plane.pods.where().evict()

        await asyncio.sleep(10)
        left = await client.get(Pod, "web", namespace="default")

    assert left.status.container_statuses[0].restart_count == 0
    assert left.status.phase == "Running"


@virtual
async def test_an_eviction_without_a_message_is_one_too() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        subject = await client.wait_for(await client.create(pod()), ready)
        assert subject is not None
        plane.pods.where().evict("")

        evicted = await client.wait_for(subject, Field("status.phase").equals("Failed"))

    assert evicted is not None
    assert evicted.status.reason == "Evicted"


@virtual
async def test_an_image_that_cannot_be_pulled_keeps_its_pods_waiting_until_it_can() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        with plane.pods.where(image="web:2").behave(failed_pulls=inf):
            good, bad = await client.create(pod("good")), await client.create(pod("bad", image="web:2"))
            await client.wait_for(good, ready)
            await client.wait_for(bad, WAITING.equals("ErrImagePull"))
            await client.wait_for(bad, WAITING.equals("ImagePullBackOff"))
            await client.wait_for(bad, WAITING.equals("ErrImagePull"))
        await client.wait_for(bad, ready)

        reasons = await _reasons(client, "bad")
        assert reasons == {"Scheduled", "Pulling", "Failed", "BackOff", "Pulled", "Created", "Started"}


@virtual
async def test_containers_crash_when_the_test_says_so() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        subject = await client.create(pod())
        await client.wait_for(subject, ready)

        plane.pods.where(labels={"app": "web"}).crash(exit_code=137, reason="OOMKilled")
        crashed = await client.wait_for(subject, RESTARTS.equals(1) & ready)
        await asyncio.sleep(3600)

        assert crashed is not None
        last = crashed.status.container_statuses[0].last_state.terminated
        assert last is not None
        assert (last.exit_code, last.reason) == (137, "OOMKilled")
        later = await client.get(Pod, subject.key)
        assert later.metadata.resource_version == crashed.metadata.resource_version, "it crashes once"


@virtual
async def test_a_crash_loop_ends_when_the_test_says_so() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        subject = await client.create(pod())
        await client.wait_for(subject, ready)

        with plane.pods.where(name="web").behave(run=5, exit_code=1):
            await client.wait_for(subject, WAITING.equals("CrashLoopBackOff") & RESTARTS.equals(3))
        await client.wait_for(subject, ready)
        await asyncio.sleep(3600)

        assert (await client.get(Pod, subject.key)).status.container_statuses[0].restart_count == 4


@virtual
async def test_a_pod_that_is_not_restarted_fails_with_its_crash() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        subject = await client.create(pod(restart_policy="Never"))
        await client.wait_for(subject, ready)

        plane.pods.where(name="web").crash()

        await client.wait_for(subject, Field("status.phase").equals("Failed"))


@virtual
async def test_an_evicted_pod_has_failed_and_is_reported() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        subject = await client.create(pod())
        await client.wait_for(subject, ready)

        plane.pods.where(name="web").evict("The node was low on resource: ephemeral-storage. ")
        evicted = await client.wait_for(subject, Field("status.phase").equals("Failed"))

        assert evicted is not None
        assert evicted.status.reason == "Evicted"
        assert "Evicted" in await _reasons(client, "web")


@virtual
async def test_only_pods_that_run_can_crash() -> None:
    async with ControlPlane.embedded() as plane, plane.client() as client:
        with pytest.raises(ControlPlaneError, match="none of the selected pods runs"):
            plane.pods.where(name="web").crash()
        waiting = await client.create(pod(failed_pulls="always"))
        await client.wait_for(waiting, WAITING.equals("ErrImagePull"))
        with pytest.raises(ControlPlaneError, match="none of the selected pods runs"):
            plane.pods.where(name="web").evict()


@virtual
async def test_a_pod_is_seen_to_have_ended_before_it_is_gone() -> None:
    """Operators that remove a pod from somewhere when it is not ready depend on it."""
    async with ControlPlane.embedded() as plane, plane.client() as client:
        subject = await client.create(pod())
        await client.wait_for(subject, ready)
        plane.pods.where(name="web").behave(stop=20)
        seen: list[Pod] = []

        async with client.watch(Pod, namespace="default", initial_events=True) as events:
            await client.delete(subject)
            await asyncio.sleep(19)
            slow = await client.get(Pod, subject.key)
            assert slow.metadata.deletion_timestamp is not None
            assert is_ready(slow), "until its containers have ended"
            async for event in events:
                if event.type == "DELETED":
                    break
                if event.type in ("ADDED", "MODIFIED"):
                    seen.append(event.object)

        await client.wait_for(subject, deleted)
        last = seen[-1]
        condition, terminated = get_condition(last, "Ready"), last.status.container_statuses[0].state.terminated
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "PodFailed")
        assert terminated is not None
        assert terminated.exit_code == 143


async def _reasons(client: Client, pod: str) -> set[str]:
    """Of the events about a pod."""
    # They are written a little later.
    await asyncio.sleep(10)
    return {
        one.reason or "" async for one in client.list(Event, namespace="default", fields={"involvedObject.name": pod})
    }


@virtual
async def test_a_reset_takes_back_what_was_set_since_the_snapshot() -> None:
    async with ControlPlane.embedded(controllers=["nodes", "scheduler", "pod-simulator", "serviceaccounts"]) as plane:
        plane.pods.where(name="a").behave(start=inf)
        before = plane.snapshot()
        plane.pods.where(name="b").behave(start=inf)
        plane.nodes.fail("node-1")
        plane.reset(before)
        async with plane.client() as client:
            for name in ("a", "b"):
                await client.create(pod(name))
            await client.wait_for(Pod, "b", ready, namespace="default")
            assert not is_ready(await client.get(Pod, "a", namespace="default"))


@virtual
async def test_nodes_can_fail_as_soon_as_the_control_plane_has_started() -> None:
    async with ControlPlane.embedded(controllers=["nodes"]) as plane:
        plane.nodes.fail("node-1")
        assert plane.nodes.failed_at("node-1") is not None
