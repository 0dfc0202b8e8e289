from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Literal, Protocol

import pytest

from kubewright.api.core.v1 import Container, Node, NodeAddress, Pod, PodSpec
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Expectation, Field, deleted, exists, ready
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.nodes import SIMULATED
from kubewright.controlplane.controllers.pod_behaviour import PREFIX, Behaviour
from kubewright.controlplane.controllers.pod_script import PodScript
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.runtime import BuiltInController

Start = Callable[[BuiltInController], None]
PHASE = Field("status.phase")
STATE = Field("status.containerStatuses[0].state")
RESTARTS = Field("status.containerStatuses[0].restartCount")


class AdvancingClock(Clock, Protocol):
    def advance(self, seconds: float) -> None: ...


@pytest.fixture(autouse=True)
async def nodes(client: Client, pod_namespace: str) -> AsyncIterator[None]:
    """`fake`, which is simulated, and `machine`, which is not."""
    fake = await client.create(Node(metadata=ObjectMeta(name="fake", labels={SIMULATED: "true"})))
    fake.status.addresses = [NodeAddress(type="InternalIP", address="10.0.0.9")]
    await client.status.update(fake)
    await client.create(Node(metadata=ObjectMeta(name="machine")))
    yield
    for name in ("fake", "machine"):
        await client.delete(Node, name)


def pod(
    namespace: str,
    name: str = "web",
    *,
    node: str = "fake",
    restart_policy: Literal["Always", "Never", "OnFailure"] = "Always",
    **annotations: str,
) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            annotations={PREFIX + key.replace("_", "-"): value for key, value in annotations.items()},
        ),
        spec=PodSpec(node_name=node, restart_policy=restart_policy, containers=[Container(name="main", image="web:1")]),
    )


def waits_for(reason: str) -> Expectation:
    return STATE.equals({"waiting": {"reason": reason}})


async def test_a_pod_on_a_simulated_node_becomes_ready_and_has_addresses(
    client: Client, pod_namespace: str, start: Start
) -> None:
    start(PodSimulator(client))

    one = await client.wait_for(await client.create(pod(pod_namespace, "one")), ready)
    two = await client.wait_for(await client.create(pod(pod_namespace, "two")), ready)

    assert one is not None
    assert two is not None
    assert (one.status.phase, one.status.host_ip) == ("Running", "10.0.0.9")
    assert one.status.pod_ip
    assert one.status.pod_ip != two.status.pod_ip
    assert one.status.start_time is not None


async def test_pods_on_machines_are_not_touched(
    client: Client, pod_namespace: str, start: Start, writes: list[str]
) -> None:
    start(PodSimulator(client))
    await client.create(pod(pod_namespace, "real", node="machine"))

    await client.wait_for(await client.create(pod(pod_namespace, "simulated")), ready)

    assert not any("real" in write for write in writes)


async def test_a_settled_pod_costs_no_writes(
    client: Client, pod_namespace: str, start: Start, writes: list[str]
) -> None:
    start(PodSimulator(client))
    settled = await client.create(pod(pod_namespace, "settled"))
    await client.wait_for(settled, ready)
    writes.clear()

    await client.patch(settled, MergePatch({"metadata": {"labels": {"looked": "at"}}}))
    # When a later one is done, this one was reconciled.
    await client.wait_for(await client.create(pod(pod_namespace, "later")), ready)

    path = f"/api/v1/namespaces/{pod_namespace}/pods"
    assert writes == [f"PATCH {path}/settled", f"POST {path}", f"PUT {path}/later/status"]


async def test_the_stages_pass_with_the_clock(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    start(PodSimulator(client, clock=clock))
    subject = await client.create(
        pod(pod_namespace, restart_policy="Never", start="1.5", ready="2", run="10", exit_code="7")
    )

    await client.wait_for(subject, PHASE.equals("Pending") & waits_for("ContainerCreating"))
    clock.advance(1.5)
    await client.wait_for(subject, PHASE.equals("Running") & ~ready)
    clock.advance(2)
    await client.wait_for(subject, PHASE.equals("Running") & ready)
    clock.advance(8)
    ended = await client.wait_for(subject, PHASE.equals("Failed"))

    assert ended is not None
    terminated = ended.status.container_statuses[0].state.terminated
    assert terminated is not None
    assert (terminated.exit_code, terminated.reason) == (7, "Error")


async def test_a_crash_loop_continues_with_the_clock(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    start(PodSimulator(client, clock=clock))
    subject = await client.create(pod(pod_namespace, run="1", exit_code="1"))
    await client.wait_for(subject, ready)

    clock.advance(1)
    await client.wait_for(subject, RESTARTS.equals(1) & ready)
    clock.advance(1)
    crashed = await client.wait_for(subject, RESTARTS.equals(1) & ~ready)
    assert crashed is not None
    waiting = crashed.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "CrashLoopBackOff"
    clock.advance(10)
    await client.wait_for(subject, RESTARTS.equals(2) & ready)


async def test_a_running_pod_completes_when_its_annotation_says_so(
    client: Client, pod_namespace: str, start: Start
) -> None:
    start(PodSimulator(client))
    subject = await client.create(pod(pod_namespace, restart_policy="OnFailure"))
    await client.wait_for(subject, ready)

    await client.patch(
        Pod, "web", MergePatch({"metadata": {"annotations": {f"{PREFIX}run": "0"}}}), namespace=pod_namespace
    )

    await client.wait_for(subject, PHASE.equals("Succeeded"))


async def test_a_rule_in_python_decides_instead_of_annotations(
    client: Client, pod_namespace: str, start: Start
) -> None:
    def rule(pod: Pod) -> Behaviour:
        return Behaviour(waiting="CreateContainerError") if pod.metadata.name == "bad" else Behaviour()

    start(PodSimulator(client, script=PodScript(rule)))

    await client.wait_for(await client.create(pod(pod_namespace, "good", waiting="RunContainerError")), ready)
    await client.wait_for(await client.create(pod(pod_namespace, "bad")), waits_for("CreateContainerError"))


async def test_an_annotation_that_makes_no_sense_is_reported_in_the_status(
    client: Client, pod_namespace: str, start: Start
) -> None:
    start(PodSimulator(client))

    subject = await client.create(pod(pod_namespace, start="soon"))

    pending = await client.wait_for(
        subject, Field("status.containerStatuses[0].state.waiting.reason").equals("CreateContainerConfigError")
    )
    assert pending is not None
    waiting = pending.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.message == f'the annotation {PREFIX}start is "soon": expected seconds, such as "2.5"'


async def test_a_pod_that_is_deleted_is_removed_after_its_stop_stage(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    start(PodSimulator(client, clock=clock))
    slow = await client.create(pod(pod_namespace, stop="5"))
    quick = await client.create(pod(pod_namespace, "quick", stop="0"))
    await client.wait_for(slow, ready)
    await client.wait_for(quick, ready)

    await client.delete(slow)
    # When one that was deleted later is gone, this one's time is running.
    await client.delete(quick)
    await client.wait_for(quick, deleted)
    dying = await client.get(Pod, slow.key)
    assert dying.metadata.deletion_timestamp is not None

    clock.advance(5)
    await client.wait_for(slow, deleted)


async def test_a_deleted_pod_exists_for_another_second(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    """kubectl 1.32 gets a pod and then lists it by name: one of the same name that is back in between is waited for."""
    start(PodSimulator(client, clock=clock))
    usual, quick = await client.create(pod(pod_namespace)), await client.create(pod(pod_namespace, "quick", stop="0"))
    await client.wait_for(usual, ready)
    await client.wait_for(quick, ready)

    await client.delete(usual)
    # When one that was deleted later is gone, this one's time is running.
    await client.delete(quick)
    await client.wait_for(quick, deleted)
    assert (await client.get(Pod, usual.key)).metadata.uid == usual.metadata.uid

    clock.advance(1)
    await client.wait_for(usual, deleted)


async def test_a_pod_that_is_deleted_by_force_is_gone_at_once(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    start(PodSimulator(client, clock=clock))
    forced = await client.create(pod(pod_namespace))
    await client.wait_for(forced, ready)

    await client.delete(forced, grace_period=0)

    assert await client.find(Pod, forced.key) is None


async def test_no_pod_outlives_its_grace_period(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    start(PodSimulator(client, clock=clock))
    stubborn = await client.create(pod(pod_namespace, stop="1000"))
    await client.wait_for(stubborn, ready)
    await client.delete(stubborn, grace_period=3)
    # When a later one is ready, this one's time is running.
    await client.wait_for(await client.create(pod(pod_namespace, "later")), ready)

    clock.advance(3)

    await client.wait_for(stubborn, deleted)


async def test_a_pod_held_by_a_finalizer_is_seen_to_have_ended(
    client: Client, pod_namespace: str, start: Start
) -> None:
    start(PodSimulator(client))
    held = pod(pod_namespace)
    held.metadata.finalizers = ["example.com/hold"]
    held = await client.create(held)
    await client.wait_for(held, ready)

    await client.delete(held)
    await client.wait_for(
        held, exists & PHASE.equals("Failed") & Field("metadata.deletionGracePeriodSeconds").equals(0)
    )

    await client.patch(held, MergePatch({"metadata": {"finalizers": None}}))
    await client.wait_for(held, deleted)


async def test_a_restarted_simulator_continues_where_the_status_says(
    client: Client, pod_namespace: str, start: Start, clock: AdvancingClock
) -> None:
    subject = await client.create(pod(pod_namespace, restart_policy="Never", run="60"))
    first = asyncio.create_task(PodSimulator(client, clock=clock).run())
    await client.wait_for(subject, ready)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)

    clock.advance(60)
    start(PodSimulator(client, clock=clock))

    await client.wait_for(subject, PHASE.equals("Succeeded"))
