"""Between an operator and its server stands something that answers by itself."""

from __future__ import annotations

import asyncio

import pytest
from tests.faults.wire import behind_a_proxy

from kubewright import Client, Manager, ObjectMeta, Request, Result
from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.meta import OwnerReference
from kubewright.client.errors import NotFound
from kubewright.controller import controller_for
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.testing.virtual_time import run_virtual


class ThreeOfEach:
    """Keeps three children of each ConfigMap. Their names are made by the server."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.reconciles = 0

    async def reconcile(self, request: Request) -> Result:
        self.reconciles += 1
        owner = await self.client.find(ConfigMap, request)
        if owner is None:
            return Result()
        children = [
            child
            for child in await self.client.list(Secret, namespace=request.namespace)
            if any(reference.uid == owner.metadata.uid for reference in child.metadata.owner_references)
        ]
        reference = OwnerReference(
            api_version="v1", kind="ConfigMap", name=owner.metadata.name, uid=owner.metadata.uid, controller=True
        )
        for _ in range(3 - len(children)):
            await self.client.create(
                Secret(
                    metadata=ObjectMeta(
                        generate_name="child-", namespace=request.namespace, owner_references=[reference]
                    )
                )
            )
        return Result()


@pytest.mark.parametrize("lost", ["watch=true", "/secrets", "/"], ids=["watches", "the children", "everything"])
def test_children_are_not_recreated_when_a_proxy_answers_404_for_them(lost: str) -> None:
    """It answers watches with 404, and the operator must not take that for the end of all objects."""

    async def scenario() -> None:
        async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as admin:
            assert isinstance(plane, EmbeddedControlPlane)
            client = plane.client()
            proxy = behind_a_proxy(client)
            manager = Manager(client)
            reconciler = ThreeOfEach(manager.client)
            controller_for(manager, ConfigMap).owns(Secret).complete(reconciler)
            task = asyncio.create_task(manager.run())
            await admin.create(ConfigMap(metadata=ObjectMeta(name="owner", namespace="default")))
            await asyncio.sleep(10)
            assert len(await admin.list(Secret, namespace="default")) == 3
            proxy.loses = lambda target: lost in target
            plane.faults.cut_open_watches(lambda target: target.verb == "watch")
            await asyncio.sleep(60)
            proxy.loses = lambda target: False
            reconciles = reconciler.reconciles
            owner = await admin.get(ConfigMap, "owner", namespace="default")
            owner.data["changed"] = "yes"
            await admin.update(owner)
            await asyncio.sleep(60)
            assert reconciler.reconciles > reconciles
            assert len(await admin.list(Secret, namespace="default")) == 3
            manager.stop()
            await task
            await client.aclose()

    run_virtual(scenario)


async def test_an_object_is_not_gone_because_a_proxy_says_404() -> None:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        secret = await client.create(Secret(metadata=ObjectMeta(name="kept", namespace="default")))
        proxy = behind_a_proxy(client)
        proxy.loses = lambda target: True
        with pytest.raises(NotFound, match="default backend - 404"):
            await client.find(Secret, secret.key)
        with pytest.raises(NotFound, match="default backend - 404"):
            await client.delete(secret, missing_ok=True)
