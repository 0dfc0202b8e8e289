"""What a manager leaves behind, and what others see of it."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from tests.manager.scripted import (
    LEASE,
    Journal,
    Reconciles,
    Recording,
    candidate,
    config_map,
    eventually,
    get,
    running,
    virtually,
)

from kubewright.api.core.v1 import ConfigMap, Namespace, Pod
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.wait import exists
from kubewright.controller import Request, controller_for
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager
from kubewright.manager.fence import system_clock
from kubewright.manager.leader_election import LeaderElection
from kubewright.testing.namespaces import unique_name


async def test_the_metrics_of_a_run_have_the_names_that_dashboards_know(
    embedded_control_plane: EmbeddedControlPlane,
) -> None:
    journal = Journal()
    async with embedded_control_plane.client() as client:
        # The control plane's own controllers put one into each namespace.
        await client.wait_for(ConfigMap, "kube-root-ca.crt", exists, namespace="default", timeout=30)
        await client.create(config_map("object"))
        manager = Manager(client, metrics_address="127.0.0.1:0", election=candidate(client, "a"))
        controller_for(manager, ConfigMap, namespace="default", workers=3).complete(Reconciles(journal))
        async with running(manager):
            objects = len([each async for each in client.list(ConfigMap, namespace="default")])
            await journal.until("object is done")
            await eventually(lambda: sum(word.endswith("is done") for word in journal.entries) == objects)
            status, text = await get(manager.ports["metrics"], "/metrics")
    assert status == 200
    families = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert families >= {
        "controller_runtime_active_workers",
        "controller_runtime_max_concurrent_reconciles",
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_time_seconds",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "leader_election_master_status",
        "rest_client_requests_total",
        "workqueue_adds_total",
        "workqueue_depth",
        "workqueue_longest_running_processor_seconds",
        "workqueue_queue_duration_seconds",
        "workqueue_retries_total",
        "workqueue_unfinished_work_seconds",
        "workqueue_work_duration_seconds",
        "kubewright_cache_objects",
        "kubewright_cache_bytes",
        "kubewright_cache_lag_seconds",
        "kubewright_cache_relists_total",
        "kubewright_cache_watch_restarts_total",
    }
    lines = text.splitlines()
    assert 'controller_runtime_max_concurrent_reconciles{controller="configmap"} 3' in lines
    assert 'leader_election_master_status{name="operator"} 1' in lines
    done = len([words for words in journal.entries if words.endswith("is done")])
    assert f'controller_runtime_reconcile_total{{controller="configmap",result="success"}} {done}' in lines
    assert f'kubewright_cache_objects{{resource="configmaps",scope="namespace default"}} {objects}' in lines


@asynccontextmanager
async def two_planes() -> AsyncIterator[tuple[Client, Client]]:
    async with (
        ControlPlane.embedded(controllers=()) as one,
        ControlPlane.embedded(controllers=()) as two,
        one.client() as client_one,
        two.client() as client_two,
    ):
        yield client_one, client_two


async def test_two_managers_in_one_process_share_nothing() -> None:
    """The same names on both sides, and what one does or ends is nothing to the other."""
    async with two_planes() as (client_one, client_two):
        told_one, told_two = Journal(), Journal()
        addresses = {"health_address": "127.0.0.1:0", "metrics_address": "127.0.0.1:0"}
        first = Manager(client_one, election=candidate(client_one, "same"), **addresses)  # type: ignore[arg-type]  # only addresses
        second = Manager(client_two, election=candidate(client_two, "same"), **addresses)  # type: ignore[arg-type]  # only addresses
        controller_for(first, ConfigMap).complete(Reconciles(told_one))
        controller_for(second, ConfigMap).complete(Reconciles(told_two))
        second.add(Recording("leader", told_two))
        async with running(second):
            async with running(first):
                await client_one.create(config_map("of-one"))
                await client_two.create(config_map("of-two"))
                await told_one.until("of-one is done")
                await told_two.until("of-two is done", "leader begins")
                assert first.ports["health"] != second.ports["health"]
                assert first.elected.is_set()
            # The first has ended; the second has not noticed.
            await client_two.create(config_map("later"))
            await told_two.until("later is done")
            assert second.elected.is_set()
            assert (await get(second.ports["health"], "/readyz"))[0] == 200
        assert "of-two is done" not in told_one.entries
        assert "of-one is done" not in told_two.entries


def open_files() -> set[str]:
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208  # names are all there is
        try:
            found.add(f"{descriptor} {os.readlink(f'/proc/self/fd/{descriptor}')}")  # noqa: PTH115  # as above
        except FileNotFoundError:
            continue  # that of the listing itself
    return found


async def test_no_task_no_socket_and_no_thread_is_left_after_run(real_control_plane: ControlPlane) -> None:
    """On a server whose own tasks and sockets are not in this process."""
    journal = Journal()
    loop = asyncio.get_running_loop()

    class Blocking:
        def reconcile(self, request: Request) -> None:
            loop.call_soon_threadsafe(journal, f"{request.name} is done")

    namespace = unique_name("outside")
    async with real_control_plane.client() as admin:
        await admin.create(Namespace(metadata=ObjectMeta(name=namespace)))
        await admin.create(config_map("object", namespace))
    tasks, threads, files = asyncio.all_tasks(), set(threading.enumerate()), open_files()
    async with real_control_plane.client() as client:
        manager = Manager(
            client,
            namespaces=[namespace],
            election=LeaderElection(client, LEASE, namespace=namespace),
            health_address="127.0.0.1:0",
            metrics_address="127.0.0.1:0",
            debug_address="127.0.0.1:0",
        )
        controller_for(manager, ConfigMap, workers=2).owns(Pod).complete(Blocking())
        manager.add(Recording("leader", journal))
        async with running(manager):
            await journal.until("leader begins", "object is done")
            # A client that keeps its connection is no reason to stay.
            reader, writer = await asyncio.open_connection("127.0.0.1", manager.ports["health"])
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
    assert {task.get_name() for task in asyncio.all_tasks() - tasks} == set()
    # Idle threads of a pool end when they notice that it is over. Those of the event loop are its own.
    await eventually(lambda: not {thread for thread in threading.enumerate() if "asyncio" not in thread.name} - threads)
    await eventually(lambda: not {file for file in open_files() - files if "socket" in file})


@pytest.fixture
def fences(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], float | None]]:
    """The deadlines that were given to a fence, instead of a thread that checks them."""
    deadlines: list[Callable[[], float | None]] = []

    @contextmanager
    def noted(deadline: Callable[[], float | None]) -> Iterator[None]:
        deadlines.append(deadline)
        yield

    monkeypatch.setattr("kubewright.manager.lifecycle.fenced", noted)
    return deadlines


async def test_the_fence_goes_by_the_clock_that_counts_suspended_time(
    embedded_control_plane: EmbeddedControlPlane, fences: list[Callable[[], float | None]]
) -> None:
    async with embedded_control_plane.client() as client:
        manager = Manager(client, election=candidate(client, "a"))
        async with running(manager):
            await manager.elected.wait()
            deadline = fences[0]()
            assert deadline is not None
            assert abs(deadline - system_clock()) <= 15
        assert fences[0]() is None


def test_there_is_no_fence_in_virtual_time(fences: list[Callable[[], float | None]]) -> None:
    """Its thread goes by the machine's clock, and would end the process that runs the tests."""

    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        manager = Manager(client, election=candidate(client, "a"))
        async with running(manager):
            await manager.elected.wait()

    scenario()
    assert fences == []
