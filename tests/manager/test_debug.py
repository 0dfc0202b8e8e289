from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from tests.manager.scripted import get, running

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.controller import Request, Result, controller_for
from kubewright.controlplane import ControlPlane
from kubewright.manager import Manager


class Varied:
    """A reconciler that does what the name of the object says."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()

    async def reconcile(self, request: Request) -> Result:
        match request.name:
            case "failing":
                raise ValueError("the disk is full")
            case "later":
                return Result(requeue_after=3600)
            case "under-way":
                self.has_begun.set()
                await asyncio.Event().wait()
        return Result()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        yield client


async def create(client: Client, name: str) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))


async def test_it_is_off_by_default(client: Client) -> None:
    """It names objects."""
    manager = Manager(client, health_address="127.0.0.1:0", metrics_address="127.0.0.1:0")
    async with running(manager):
        await manager.elected.wait()
        assert manager.ports["debug"] == 0
        for server in ("health", "metrics"):
            assert (await get(manager.ports[server], "/debug/queues"))[0] == 404


async def test_the_queues_show_what_runs_and_what_is_delayed(client: Client) -> None:
    manager = Manager(client, debug_address="127.0.0.1:0", grace=0)
    reconciler = Varied()
    built = controller_for(manager, ConfigMap, namespace="default").complete(reconciler)
    await create(client, "later")
    async with asyncio.timeout(30), running(manager), built.reconciles() as reconciles:
        assert (await anext(reconciles)).key.name == "later"
        await create(client, "under-way")
        await reconciler.has_begun.wait()
        # The one worker is busy, so that this one waits.
        await create(client, "waiting")
        while not built.queue.depth().get(0):
            await asyncio.sleep(0.01)
        status, body = await get(manager.ports["debug"], "/debug/queues")
    assert status == 200
    queue = json.loads(body)["configmap"]
    assert queue["counts"] == {"due": 1, "running": 1, "delayed": 1}
    assert [entry["key"] for entry in queue["due"]] == ["default/waiting"]
    assert [entry["key"] for entry in queue["running"]] == ["default/under-way"]
    (delayed,) = queue["delayed"]
    assert delayed["key"] == "default/later"
    assert 0 < delayed["in_seconds"] <= 3600


async def test_the_caches_show_what_they_hold_and_what_blocks_them(client: Client) -> None:
    manager = Manager(client, debug_address="127.0.0.1:0")
    built = controller_for(manager, ConfigMap, namespace="default").complete(Varied())
    await create(client, "one")
    async with asyncio.timeout(30), running(manager), built.reconciles() as reconciles:
        await anext(reconciles)
        status, body = await get(manager.ports["debug"], "/debug/caches")
    assert status == 200
    (cache,) = json.loads(body)
    assert cache["revision"] > 0
    assert cache["bytes"] > 0
    assert {key: cache[key] for key in ("kind", "scope", "state", "blocked", "users", "objects", "relists")} == {
        "kind": "configmaps",
        "scope": "namespace default",
        "state": "watching",
        "blocked": "",
        "users": 1,
        "objects": 1,
        "relists": 0,
    }


async def test_what_blocks_a_cache_is_a_sentence() -> None:
    async with (
        ControlPlane.embedded(controllers=(), nodes=0) as plane,
        plane.client(plane.add_user("nobody")) as client,
    ):
        manager = Manager(client, debug_address="127.0.0.1:0", preflight=False)
        controller_for(manager, ConfigMap, namespace="default").complete(Varied())
        async with asyncio.timeout(30), running(manager):
            await manager.elected.wait()
            while True:
                _, body = await get(manager.ports["debug"], "/debug/caches")
                if (caches := json.loads(body)) and caches[0]["blocked"]:
                    break
                await asyncio.sleep(0.01)
    assert caches[0]["state"] == "forbidden"
    assert 'User "nobody" cannot' in caches[0]["blocked"]


async def test_the_last_reconcile_of_each_object_is_shown_with_its_outcome_and_its_reasons(client: Client) -> None:
    manager = Manager(client, debug_address="127.0.0.1:0")
    built = controller_for(manager, ConfigMap, namespace="default", max_attempts=1).complete(Varied())
    await create(client, "first")
    async with asyncio.timeout(30), running(manager), built.reconciles() as reconciles:
        assert (await anext(reconciles)).key.name == "first"
        await create(client, "failing")
        assert (await anext(reconciles)).key.name == "failing"
        status, body = await get(manager.ports["debug"], "/debug/reconciles")
    assert status == 200
    newest, oldest = json.loads(body)["configmap"]
    assert (newest["key"], newest["outcome"]) == ("default/failing", "ValueError: the disk is full")
    assert newest["reasons"] == ["ConfigMap added default/failing"]
    assert newest["seconds"] >= 0
    assert oldest["key"] == "default/first"
    assert oldest["outcome"].startswith("Result(")


async def test_the_tasks_are_shown_with_their_names_and_where_they_wait(client: Client) -> None:
    manager = Manager(client, debug_address="127.0.0.1:0")
    built = controller_for(manager, ConfigMap, namespace="default", workers=2).complete(Varied())
    await create(client, "one")

    async def patrol() -> None:
        await asyncio.Event().wait()

    manager.add(patrol)
    async with asyncio.timeout(30), running(manager), built.reconciles() as reconciles:
        await anext(reconciles)
        status, body = await get(manager.ports["debug"], "/debug/tasks")
    assert status == 200
    tasks = json.loads(body)
    assert tasks == sorted(tasks)
    assert any(task.startswith("patrol at ") and "patrol:" in task for task in tasks)
    assert sum(task.startswith("configmap: worker ") for task in tasks) == 2
    assert any(task.startswith("watch configmaps namespace default at ") for task in tasks)
