"""One clock for the whole control plane: the server and its controllers use the time that a test sets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from kubewright.api.authentication.v1 import SelfSubjectReview
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Event, Node, Pod, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config
from kubewright.client.config.credentials import StaticCredentials, bearer
from kubewright.client.errors import Unauthorized
from kubewright.client.wait import Field, exists
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.testing.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2040, 2, 3, 4, 5, 6, tzinfo=UTC))


@pytest.fixture
async def plane(clock: VirtualClock) -> AsyncIterator[EmbeddedControlPlane]:
    async with ControlPlane.embedded(clock=clock) as plane:
        yield plane


@pytest.fixture
async def client(plane: EmbeddedControlPlane) -> AsyncIterator[Client]:
    async with plane.client() as client:
        await client.wait_for(ServiceAccount, "default", exists, namespace="default", timeout=10)
        yield client.in_namespace("default")


async def test_server_and_controllers_share_one_time(client: Client, clock: VirtualClock) -> None:
    written = await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    node = await client.wait_for(Node, "node-1", Field("status.conditions[0].status").equals("False"), timeout=10)

    assert written.metadata.creation_timestamp == clock.now()
    assert node is not None
    assert {condition.last_transition_time for condition in node.status.conditions} == {clock.now()}


async def test_a_pod_moves_through_its_stages_when_time_does(client: Client, clock: VirtualClock) -> None:
    """Start after 60 s, ready after 60 more, ended after an hour of running: a test of milliseconds."""
    simulated = {"start": "60", "ready": "60", "run": "3600"}
    pod = await client.create(
        from_json(
            Pod,
            {
                "metadata": {
                    "name": "slow",
                    "annotations": {f"simulate.kubewright.dev/{name}": value for name, value in simulated.items()},
                },
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
            },
        )
    )
    waiting = Field("status.containerStatuses[0].state.waiting").satisfies(lambda why: why is not None, "is set")
    await client.wait_for(pod, waiting, timeout=10)
    clock.advance(60)
    running = await client.wait_for(pod, Field("status.phase").equals("Running"), timeout=10)
    assert running is not None
    assert not running.status.container_statuses[0].ready
    clock.advance(60)
    await client.wait_for(pod, Field("status.containerStatuses[0].ready").equals(True), timeout=10)
    clock.advance(3600)
    ended = await client.wait_for(pod, Field("status.phase").equals("Succeeded"), timeout=10)
    assert ended is not None
    finished = ended.status.container_statuses[0].state.terminated
    assert finished is not None
    assert finished.finished_at == clock.now()


async def test_a_token_expires_when_time_says_so(
    plane: EmbeddedControlPlane, client: Client, clock: VirtualClock
) -> None:
    token = (await client.token("default", expiration_seconds=600)).status.token or ""
    config = replace(Config.from_kubeconfig_text(plane.kubeconfig()), credentials=StaticCredentials(bearer(token)))
    async with Client(config) as robot:
        await robot.create(SelfSubjectReview())
        clock.advance(600 + 61)
        with pytest.raises(Unauthorized):
            await robot.create(SelfSubjectReview())


async def test_an_event_is_gone_an_hour_later(client: Client, clock: VirtualClock) -> None:
    event = await client.create(
        from_json(
            Event,
            {
                "metadata": {"name": "it"},
                "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a"},
                "reason": "Happened",
                "type": "Normal",
            },
        )
    )
    clock.advance(3599)
    assert await client.find(Event, "it") is not None
    async with client.watch(
        Event, resource_version=event.metadata.resource_version, fields={"metadata.name": "it"}
    ) as events:
        clock.advance(61)
        gone = await asyncio.wait_for(anext(aiter(events)), 10)
    assert (gone.type, gone.header.name) == ("DELETED", "it")
    assert await client.find(Event, "it") is None
