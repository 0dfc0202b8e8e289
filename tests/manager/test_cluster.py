from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.manager.scripted import eventually, is_ready, running

from kubewright.api.core.v1 import ConfigMap, Namespace, Pod, Secret
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.controller import Controller, Request, for_object
from kubewright.controller.watched import Watched
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager
from kubewright.manager.cluster import Cluster
from kubewright.manager.preflight import PermissionsMissing


@pytest.fixture
async def home() -> AsyncIterator[EmbeddedControlPlane]:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane:
        yield plane


@pytest.fixture
async def away() -> AsyncIterator[EmbeddedControlPlane]:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane:
        yield plane


def config_map(name: str, namespace: str = "default", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data=data)


class Mirror:
    """Copies what is in one cluster into another."""

    def __init__(self, source: Cluster, target: Client) -> None:
        self.source = source
        self.target = target
        self.done: asyncio.Queue[str] = asyncio.Queue()

    async def reconcile(self, request: Request) -> None:
        found = await self.source.client.find(ConfigMap, request)
        if found is not None:
            await self.target.create(config_map(request.name, request.namespace, **found.data))
        self.done.put_nowait(request.name)


def mirror(manager: Manager, other: Cluster) -> Mirror:
    reconciler = Mirror(other, manager.live)
    built: Controller[Request] = Controller("mirror", reconciler)
    built.watch(Watched(other.cache, ConfigMap, for_object, namespace="default"))
    manager.add(built)
    return reconciler


@pytest.mark.parametrize("is_running", [False, True], ids=["before the start", "after the start"])
async def test_another_cluster_is_a_source(
    home: EmbeddedControlPlane, away: EmbeddedControlPlane, is_running: bool
) -> None:
    async with home.client() as here, away.client() as there:
        await there.create(config_map("existing", color="red"))
        manager, other = Manager(here), Cluster(there)
        if not is_running:
            manager.add_cluster(other)
            reconciler = mirror(manager, other)
        async with asyncio.timeout(30), running(manager):
            if is_running:
                await manager.elected.wait()
                manager.add_cluster(other)
                reconciler = mirror(manager, other)
            assert await reconciler.done.get() == "existing"
            await there.create(config_map("later", color="blue"))
            assert await reconciler.done.get() == "later"
            assert (await here.get(ConfigMap, "later", namespace="default")).data == {"color": "blue"}
            assert await is_ready(manager)
        # Its watch has ended with the manager, and the first cluster was never watched.
        assert other.cache.informers() == []
        assert manager.cache.informers() == []
        # Neither client was closed: their maker does that.
        assert (await there.get(ConfigMap, "later", namespace="default")).data == {"color": "blue"}


async def test_an_error_of_another_cluster_is_a_not_ready_reason(
    home: EmbeddedControlPlane, away: EmbeddedControlPlane
) -> None:
    restricted = away.add_user("visitor")
    async with home.client() as here, away.client(restricted) as there:
        manager, other = Manager(here, preflight=False), Cluster(there)
        manager.add_cluster(other)
        mirror(manager, other)
        async with running(manager):

            async def is_reported() -> bool:
                return 'User "visitor" cannot' in (await manager.ready.failing()).get("controllers", "")

            await eventually(is_reported)


async def test_permissions_in_another_cluster_are_checked_there(
    home: EmbeddedControlPlane, away: EmbeddedControlPlane
) -> None:
    """Of one who may do everything here that says nothing, and the other way round."""
    async with home.client() as here, away.client(away.add_user("visitor")) as there:
        manager, other = Manager(here), Cluster(there)
        manager.add_cluster(other)
        mirror(manager, other)
        with pytest.raises(PermissionsMissing, match='User "visitor" cannot list, watch resource "configmaps"'):
            await asyncio.wait_for(manager.run(), 30)
    async with home.client(home.add_user("visitor")) as here, away.client() as there:
        manager, other = Manager(here), Cluster(there)
        manager.add_cluster(other)
        mirror(manager, other)
        async with asyncio.timeout(30), running(manager):
            await manager.elected.wait()


async def test_reads_come_from_the_cache_of_what_is_watched_and_live_ones_never(home: EmbeddedControlPlane) -> None:
    async with home.client() as client:
        cluster = Cluster(client)
        await client.create(config_map("watched"))
        keeping = asyncio.create_task(cluster.cache.run())
        with cluster.cache.watch(ConfigMap, namespace="default") as handle:
            await handle.synced()
            requests = len(home.audit.events)
            await cluster.client.get(ConfigMap, "watched", namespace="default")
            assert len(home.audit.events) == requests
            await cluster.live.get(ConfigMap, "watched", namespace="default")
            assert len(home.audit.events) == requests + 1
            # An unwatched kind is read from the server, and does not become watched by that.
            assert await cluster.client.find(Secret, "unwatched", namespace="default") is None
            assert [informer.kind_name for informer in cluster.cache.informers()] == ["configmaps"]
        keeping.cancel()
        await asyncio.wait((keeping,))


async def test_its_namespaces_confine_watches_that_name_none(home: EmbeddedControlPlane) -> None:
    async with home.client() as client:
        cluster = Cluster(client, namespaces=["shop", "stock"])
        with (
            cluster.cache.watch(Pod),
            cluster.cache.watch(ConfigMap, namespace="default"),
            cluster.cache.watch(Namespace),
        ):
            watched = {(informer.kind_name, informer.scope.namespace) for informer in cluster.cache.informers()}
        assert watched == {
            ("pods", "shop"),
            ("pods", "stock"),
            ("configmaps", "default"),
            ("namespaces", ""),
        }


@pytest.mark.parametrize(("stream", "expected"), [(True, 0), (False, 1)])
async def test_without_stream_lists_are_read_in_pages(home: EmbeddedControlPlane, stream: bool, expected: int) -> None:
    async with home.client() as client:
        cluster = Cluster(client, stream=stream)
        keeping = asyncio.create_task(cluster.cache.run())
        with cluster.cache.watch(ConfigMap) as handle:
            await handle.synced()
        keeping.cancel()
        await asyncio.wait((keeping,))
        lists = [event for event in home.audit.events if (event.verb, event.resource) == ("list", "configmaps")]
        assert len(lists) == expected
