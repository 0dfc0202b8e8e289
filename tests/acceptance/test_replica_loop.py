"""Acceptance item 19: the loop of a ReplicaSet, written by a user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from kubewright import CachedClient, Client, Manager, Model, ObjectMeta, Request, Resource, Result, resource
from kubewright.api.core.v1 import Container, Pod, PodSchedulingGate, PodSpec
from kubewright.api.resources import Object
from kubewright.controller import controller_for


class PodSetSpec(Model):
    replicas: int


@resource("replica-loop.acceptance.kubewright.test/v1")
class PodSet(Resource[PodSetSpec, None]):
    """So many pods."""


def pod_of(owner: PodSet) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            generate_name=f"{owner.metadata.name}-",
            namespace=owner.metadata.namespace,
            owner_references=[owner.as_owner()],
        ),
        # Kept from being scheduled, so that nothing happens to the pods but what is done here.
        spec=PodSpec(
            containers=[Container(name="app", image="app:1")],
            scheduling_gates=[PodSchedulingGate(name="test.kubewright.dev/stays")],
        ),
    )


class PodSetReconciler:
    """Creates the pods that are missing, and writes down how many that were in each reconcile."""

    def __init__(self, client: CachedClient) -> None:
        self.created: list[int] = []
        self.seen: list[int] = []
        self._client = client
        self._news = asyncio.Condition()

    async def reconcile(self, request: Request) -> Result:
        owner = await self._client.find(PodSet, request)
        if owner is None:
            return Result()
        pods = [
            pod
            for pod in await self._client.list(Pod, namespace=request.namespace)
            if pod.metadata.deletion_timestamp is None
            and any(each.controller and each.uid == owner.metadata.uid for each in pod.metadata.owner_references)
        ]
        missing = owner.spec.replicas - len(pods)
        for _ in range(missing):
            await self._client.create(pod_of(owner))
        async with self._news:
            self.created.append(missing)
            self.seen.append(len(pods))
            self._news.notify_all()
        return Result()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30), self._news:
            await self._news.wait_for(holds)


async def test_item_19_replica_set_style_loop(
    admin: Client,
    namespace: str,
    install: Callable[[type[Object]], Awaitable[None]],
    manager: Manager,
    running: Callable[[Manager], AbstractAsyncContextManager[None]],
) -> None:
    await install(PodSet)
    client = admin.in_namespace(namespace)
    owner = await client.create(PodSet(metadata=ObjectMeta(name="set"), spec=PodSetSpec(replicas=5)))
    present = {(await client.create(pod_of(owner))).metadata.name for _ in range(3)}
    reconciler = PodSetReconciler(manager.client)
    controller_for(manager, PodSet).owns(Pod).complete(reconciler)

    async with running(manager):
        # The first reconcile creates two; the events of these two lead to reconciles that have nothing to do.
        await reconciler.until(lambda: 5 in reconciler.seen)
        assert (reconciler.created[0], reconciler.seen[0]) == (2, 3)
        assert set(reconciler.created[1:]) == {0}
        pods = await client.list(Pod)
        assert len(pods) == 5
        assert {pod.metadata.name for pod in pods} > present
        assert [pod.metadata.owner_references for pod in pods] == [[owner.as_owner()]] * 5

        before = len(reconciler.created)
        await client.delete(Pod, min(present), grace_period=0)
        await reconciler.until(lambda: 1 in reconciler.created[before:])
        pods = await client.list(Pod)
        assert len(pods) == 5
        assert min(present) not in {pod.metadata.name for pod in pods}
