from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Event, ObjectReference
from kubewright.api.dynamic import Dynamic, PartialObject
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.api.resources import resource_info
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.wait import established
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.whole_cluster import WholeCluster
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane


class Notified:
    """Records the notifications of a WholeCluster, and waits for them."""

    def __init__(self) -> None:
        self.present: dict[str, PartialObject] = {}
        self.gone: set[str] = set()
        self._more = asyncio.Event()

    def changed(self, old: PartialObject | None, new: PartialObject | None) -> None:
        if new is not None:
            self.present[new.metadata.uid] = new
        elif old is not None:
            self.gone.add(old.metadata.uid)
        self._more.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                self._more.clear()
                await self._more.wait()

    def api_version(self, uid: str) -> str:
        return resource_info(type(self.present[uid])).gvk.api_version


@pytest.fixture
def notified() -> Notified:
    return Notified()


@pytest.fixture
async def cluster(client: Client, notified: Notified) -> AsyncIterator[WholeCluster]:
    cache = Cache(client)
    cluster = WholeCluster(client, cache, notified.changed)
    tasks = [asyncio.create_task(cache.run()), asyncio.create_task(cluster.run())]
    await cluster.complete()
    yield cluster
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def define(client: Client, namespace: str, versions: dict[str, bool]) -> CustomResourceDefinition:
    """The kind Gadget in a group of the test's own, in versions that are served or not; the last one is stored."""
    group = f"{namespace}.example.com"
    schema: JSONValue = {"openAPIV3Schema": {"type": "object"}}
    listed: list[JSONValue] = [
        {"name": name, "served": served, "storage": name == list(versions)[-1], "schema": schema}
        for name, served in versions.items()
    ]
    names: JSONValue = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    definition = from_json(
        CustomResourceDefinition,
        {
            "metadata": {"name": f"gadgets.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": listed},
        },
    )
    applied = await client.apply(definition)
    return await client.wait_for(applied, established) or applied


async def create_gadget(client: Client, namespace: str, group: str = "") -> Dynamic:
    group = group or f"{namespace}.example.com"
    gadget = Dynamic.of(f"{group}/v1", "Gadget", plural="gadgets", namespaced=True)
    return await client.create(gadget(metadata=ObjectMeta(generate_name="gadget-", namespace=namespace)))


async def test_objects_of_all_kinds_are_reported_except_events(
    client: Client, namespace: str, cluster: WholeCluster, notified: Notified
) -> None:
    event = await client.create(
        Event(
            metadata=ObjectMeta(generate_name="event-", namespace=namespace),
            involved_object=ObjectReference(namespace=namespace),
        )
    )
    role = await client.create(ClusterRole(metadata=ObjectMeta(name=f"role-of-{namespace}")))
    config_map = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace)))
    await notified.until(lambda: {role.metadata.uid, config_map.metadata.uid} <= notified.present.keys())
    assert event.metadata.uid not in notified.present
    assert cluster.kind("v1", "Event") is not None
    await client.delete(role)
    await notified.until(lambda: role.metadata.uid in notified.gone)


async def test_kinds_are_known_in_each_served_version_and_in_no_other(cluster: WholeCluster) -> None:
    newer, older = (cluster.kind(f"autoscaling/{version}", "HorizontalPodAutoscaler") for version in ("v2", "v1"))
    assert newer is not None
    assert newer is older
    assert cluster.kind("autoscaling/v2beta2", "HorizontalPodAutoscaler") is None
    assert cluster.kind("apps/v1", "HorizontalPodAutoscaler") is None


async def test_another_favourite_version_makes_nothing_go(
    client: Client, namespace: str, cluster: WholeCluster, notified: Notified
) -> None:
    await define(client, namespace, {"v1": True})
    gadget = await create_gadget(client, namespace)
    uid = gadget.metadata.uid
    await notified.until(lambda: uid in notified.present)
    assert notified.api_version(uid) == f"{namespace}.example.com/v1"
    await define(client, namespace, {"v1": True, "v2": True})
    await notified.until(lambda: notified.api_version(uid) == f"{namespace}.example.com/v2")
    assert uid not in notified.gone
    await client.delete(gadget)
    await notified.until(lambda: uid in notified.gone)


async def test_objects_of_a_kind_that_is_no_longer_served_are_not_gone(
    client: Client, namespace: str, cluster: WholeCluster, notified: Notified
) -> None:
    """They are still stored; taking them for gone would delete whatever they own."""
    await define(client, namespace, {"v1": True})
    gadget = await create_gadget(client, namespace)
    await notified.until(lambda: gadget.metadata.uid in notified.present)
    await define(client, namespace, {"v1": False})
    marker = await define(client, f"marker-{namespace}", {"v1": True})
    later = await create_gadget(client, namespace, marker.spec.group)
    await notified.until(lambda: later.metadata.uid in notified.present)
    assert cluster.kind(f"{namespace}.example.com/v1", "Gadget") is None
    assert gadget.metadata.uid not in notified.gone


async def test_the_objects_of_a_definition_go_with_it(
    client: Client, namespace: str, cluster: WholeCluster, notified: Notified
) -> None:
    definition = await define(client, namespace, {"v1": True})
    gadget = await create_gadget(client, namespace)
    await notified.until(lambda: gadget.metadata.uid in notified.present)
    await client.delete(definition)
    await notified.until(lambda: gadget.metadata.uid in notified.gone)


async def test_a_kind_absent_for_a_moment_loses_only_objects_that_were_deleted(notified: Notified) -> None:
    refused = 0

    def watches_gadgets(target: Target) -> bool:
        return target.resource == "gadgets" and target.verb == "watch"

    def is_refused(target: Target) -> bool:
        nonlocal refused
        refused += watches_gadgets(target)
        return watches_gadgets(target)

    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        assert isinstance(plane, EmbeddedControlPlane)
        await define(client, "default", {"v1": True})
        kept, lost = [(await create_gadget(client, "default")) for _ in range(2)]
        cache = Cache(client)
        cluster = WholeCluster(client, cache, notified.changed)
        tasks = [asyncio.create_task(cache.run()), asyncio.create_task(cluster.run())]
        await notified.until(lambda: {kept.metadata.uid, lost.metadata.uid} <= notified.present.keys())

        plane.faults.fail(is_refused, code=404, times=2)
        plane.faults.cut_open_watches(watches_gadgets)
        async with asyncio.timeout(60):
            while refused < 1:
                await asyncio.sleep(0)
        await client.delete(lost)
        await notified.until(lambda: lost.metadata.uid in notified.gone)
        assert cluster.is_complete
        assert kept.metadata.uid not in notified.gone

        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
