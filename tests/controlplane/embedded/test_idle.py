"""What is settled costs next to nothing: a day of virtual time, counted in requests and in timers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextvars import Context
from typing import TypeVarTuple

from bench.controlplane.settled import create_workloads
from operators.podmanager import PodManager, PodManagerSpec, setup

from kubewright import ControlPlane, Manager, ObjectMeta
from kubewright.client.wait import condition, established
from kubewright.manifest.crd import definition_of
from kubewright.testing.virtual_time import VirtualTimeLoop, run_virtual

Arguments = TypeVarTuple("Arguments")

DAY = 24 * 3600.0


def test_the_controllers_of_a_settled_control_plane_send_no_request_in_a_day() -> None:
    async def main() -> Counter[tuple[bool, str]]:
        async with ControlPlane.embedded() as plane, plane.client() as admin, asyncio.TaskGroup() as tasks:
            client, manager = admin.in_namespace("default"), Manager(admin, webhook_address="0")
            await client.wait_for(await client.create(definition_of(PodManager)), established, timeout=20)
            setup(manager)
            tasks.create_task(manager.run())
            wanted = PodManager(metadata=ObjectMeta(name="it"), spec=PodManagerSpec(image="app:1"))
            await client.wait_for(await client.create(wanted), condition("Ready"), timeout=20)
            # Events are written a little later, and are gone after an hour.
            await asyncio.sleep(2 * 3600)
            plane.audit.events.clear()
            await asyncio.sleep(DAY)
            manager.stop()
            return Counter((event.user_agent == "kube-controller-manager", event.verb) for event in plane.audit.events)

    requests = run_virtual(main)
    assert {verb for is_internal, verb in requests if is_internal} == set()
    # The operator has two kinds to watch and restarts each watch after some five minutes, with at most one look at
    # the server's revision; it writes nothing.
    assert {verb for _, verb in requests} <= {"watch", "list"}
    assert requests.total() < 4 * DAY / 240


def test_the_controllers_of_settled_workloads_send_no_request_in_a_day() -> None:
    """A Deployment, a StatefulSet with claims, a DaemonSet, Jobs, a Service, a budget and a quota, on two nodes."""

    async def main() -> list[str]:
        async with ControlPlane.embedded(nodes=2) as plane, plane.client() as admin:
            await create_workloads(admin.in_namespace("default"))
            await asyncio.sleep(2 * 3600)
            plane.audit.events.clear()
            await asyncio.sleep(DAY)
            return [f"{event.verb} {event.path}" for event in plane.audit.events]

    assert run_virtual(main) == []


class CountingLoop(VirtualTimeLoop):
    """Counts the timers that were set."""

    timers = 0

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(when, callback, *args, context=context)


def test_nothing_ticks_in_an_idle_control_plane_but_the_sweep_of_a_minute() -> None:
    async def main() -> int:
        async with ControlPlane.embedded():
            await asyncio.sleep(60)
            loop = asyncio.get_running_loop()
            assert isinstance(loop, CountingLoop)
            before = loop.timers
            await asyncio.sleep(DAY)
            return loop.timers - before

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        assert runner.run(main()) <= DAY / 60 + 10
