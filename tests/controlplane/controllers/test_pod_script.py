"""Pods in the hands of a test, on an embedded control plane in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from math import inf
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
