"""What all built-in controllers have in common, on a server of the tests' own that does nothing by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import Forbidden, Status
from kubewright.controller import Channel, Request, Watched, for_object
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.runtime import Alarms, Runtime
from kubewright.testing.clock import VirtualClock

A, B = Request("default", "a"), Request("default", "b")


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        yield client


@asynccontextmanager
async def running(*work: Awaitable[None]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        yield
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


class Reconciles:
    """The keys that were reconciled, in their order."""

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        self.keys: list[Request] = []
        self._act = act
        self._more = asyncio.Event()

    async def reconcile(self, request: Request) -> None:
        self.keys.append(request)
        self._more.set()
        self._act()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                self._more.clear()
                await self._more.wait()


async def test_of_several_alarms_for_a_key_the_earliest_rings_and_by_the_clock(
    client: Client, clock: VirtualClock
) -> None:
    alarms, others, reconciles = Alarms[Request](clock), Channel[Request](), Reconciles()
    async with running(Runtime(client).run("test", reconciles.reconcile, alarms, others)):
        for seconds in (10, 5, 7):
            alarms.set(A, seconds)
        clock.advance(4.9)
        others.send(B)
        await reconciles.until(lambda: B in reconciles.keys)
        assert reconciles.keys == [B]
        clock.advance(0.1)
        await reconciles.until(lambda: A in reconciles.keys)
        clock.advance(100)
        others.send(B)
        await reconciles.until(lambda: reconciles.keys.count(B) == 2)
        assert reconciles.keys == [B, A, B]


async def test_an_alarm_does_not_outlive_its_controller(client: Client, clock: VirtualClock) -> None:
    alarms, reconciles = Alarms[Request](clock), Reconciles()
    async with running(Runtime(client).run("test", reconciles.reconcile, alarms)):
        alarms.set(B, 0)
        clock.advance(0)
        await reconciles.until(lambda: B in reconciles.keys)
        alarms.set(A, 5)
    again = Reconciles()
    async with running(Runtime(client).run("test", again.reconcile, alarms)):
        clock.advance(5)
        alarms.send(B)
        await again.until(lambda: B in again.keys)
    assert A not in again.keys


async def test_refused_requests_are_retried_silently_even_when_the_clock_stands_still(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        if len(reconciles.keys) < 3:
            raise Forbidden(Status(code=403, reason="Forbidden", message="not yet"))

    reconciles, keys = Reconciles(refuse), Channel[Request]()
    keys.send(A)
    caplog.set_level(logging.INFO)
    async with running(Runtime(client).run("test", reconciles.reconcile, keys)):
        await reconciles.until(lambda: reconciles.keys == [A, A, A])
    assert not caplog.records


async def test_a_mistake_is_reported_and_blocks_no_other(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        if reconciles.keys == [A]:
            raise ValueError("a mistake")

    reconciles, keys = Reconciles(fail), Channel[Request]()
    keys.send(A)
    keys.send(B)
    async with running(Runtime(client).run("test", reconciles.reconcile, keys, workers=1)):
        await reconciles.until(lambda: reconciles.keys == [A, B, A])
    assert "a mistake" in caplog.text


async def test_an_object_that_is_written_all_the_time_is_not_slowed(client: Client) -> None:
    """A ReplicaSet of 300 pods is written hundreds of times within the second in which they become ready."""
    runtime = Runtime(client)
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    done = asyncio.Event()

    async def count(request: Request) -> None:
        found = await runtime.client.find(ConfigMap, request)
        assert found is not None
        found.data["count"] = str(int(found.data.get("count", "0")) + 1)
        await runtime.client.update(found)
        if found.data["count"] == "300":
            done.set()

    async with running(runtime.run("test", count, Watched(runtime.cache, ConfigMap, for_object))):
        # Paused as a hot loop it would take hours: each pass from the hundredth on waits longer, up to a minute.
        await asyncio.wait_for(done.wait(), 60)


async def test_nothing_is_reconciled_before_all_sources_are_complete(client: Client) -> None:
    class Slow(Channel[Request]):
        complete = asyncio.Event()

        async def synced(self) -> None:
            await self.complete.wait()

    reconciles, quick, slow = Reconciles(), Channel[Request](), Slow()
    quick.send(A)
    async with running(Runtime(client).run("test", reconciles.reconcile, quick, slow)):
        for _ in range(20):
            await asyncio.sleep(0)
        assert reconciles.keys == []
        slow.complete.set()
        await reconciles.until(lambda: reconciles.keys == [A])


async def test_a_side_task_ends_with_the_controller(client: Client) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def beside() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with running(Runtime(client).run("test", Reconciles().reconcile, beside=(beside,))):
        await asyncio.wait_for(begun.wait(), 10)
        assert not ended.is_set()
    assert ended.is_set()


async def test_controllers_with_one_cache_share_its_watches(client: Client) -> None:
    cache, first, second = Cache(client), Reconciles(), Reconciles()
    runtimes = [Runtime(client, cache), Runtime(client, cache)]
    runs = [
        runtime.run("test", reconciles.reconcile, Watched(runtime.cache, ConfigMap, for_object))
        for runtime, reconciles in zip(runtimes, (first, second), strict=True)
    ]
    async with running(cache.run(), *runs):
        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
        await first.until(lambda: A in first.keys)
        await second.until(lambda: A in second.keys)
        assert len(cache.informers()) == 1
