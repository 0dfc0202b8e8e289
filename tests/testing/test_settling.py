"""An operator at rest, and operators that never are."""

from __future__ import annotations

import asyncio

import pytest

from kubewright import Client, ControlPlane, Manager, ObjectMeta, Request, Result, controller_for
from kubewright.api.core.v1 import ConfigMap
from kubewright.testing import count_requests, settled, virtual


class Labelling:
    """Labels each ConfigMap once; or, `restless`, each time."""

    def __init__(self, manager: Manager, *, restless: bool = False) -> None:
        self.client = manager.client
        self.restless = restless
        self.reconciles = 0

    async def reconcile(self, request: Request) -> Result:
        self.reconciles += 1
        found = await self.client.find(ConfigMap, request)
        if found is not None:
            found.metadata.labels["seen"] = str(self.reconciles) if self.restless else "yes"
            await self.client.patch(found)
        return Result()


async def create(client: Client, name: str) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))


@virtual
async def test_it_returns_when_there_is_nothing_left_to_do() -> None:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        manager = Manager(client, namespaces=["default"])
        labelling = Labelling(manager)
        controller_for(manager, ConfigMap).complete(labelling)
        async with manager.running():
            for number in range(5):
                await create(client, f"a{number}")
            await settled(manager, quiet=600, timeout=3600)

            reconciles = labelling.reconciles
            with count_requests(client) as requests:
                await asyncio.sleep(600)
            assert (labelling.reconciles, requests.writes) == (reconciles, 0)
            assert reconciles >= 5
            assert [found.metadata.labels for found in await client.list(ConfigMap, namespace="default")] == [
                {"seen": "yes"}
            ] * 5


@virtual
async def test_an_object_that_does_not_settle_is_named() -> None:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        manager = Manager(client, namespaces=["default"])
        controller_for(manager, ConfigMap, name="labelling").complete(Labelling(manager, restless=True))
        async with manager.running():
            await create(client, "busy")
            with pytest.raises(AssertionError) as caught:
                await settled(manager, quiet=1, timeout=5)
    message = str(caught.value)
    assert message.startswith("the operator did not settle within 5 s; in the last 1 s: ")
    assert "labelling reconciled default/busy" in message
    assert "PATCH /api/v1/namespaces/default/configmaps/busy" in message


@virtual
async def test_an_operator_that_requeues_periodically_is_settled_only_in_between() -> None:
    class Polling:
        async def reconcile(self, request: Request) -> Result:
            return Result(requeue_after=10)

    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        manager = Manager(client, namespaces=["default"])
        controller_for(manager, ConfigMap, name="polling").complete(Polling())
        async with manager.running():
            await create(client, "a")
            await settled(manager, quiet=5)
            with pytest.raises(AssertionError, match=r"polling reconciled default/a \(1 x\)$"):
                await settled(manager, quiet=11)
