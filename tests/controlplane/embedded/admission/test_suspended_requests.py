"""Requests that wait for webhooks while the rest of the cluster goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubewright import Manager, ObjectMeta, Review, defaults, serve_webhooks
from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.client.errors import NotFound
from kubewright.controlplane import ControlPlane
from kubewright.testing import LocalWebhooks


async def test_nothing_is_created_in_a_namespace_that_is_gone_when_the_webhook_has_answered(tmp_path: Path) -> None:
    local = LocalWebhooks(tmp_path)
    async with ControlPlane.embedded(nodes=0) as plane, plane.client() as client, asyncio.timeout(60):

        @defaults(ConfigMap, on=["CREATE"])
        async def slow(review: Review[ConfigMap]) -> None:
            if review.object.metadata.name == "late":
                await client.delete(Namespace, "short")
                while await client.find(Namespace, "short") is not None:
                    await asyncio.sleep(0.01)

        manager = Manager(client, **local.options)
        serve_webhooks(manager, slow)
        await client.create(Namespace(metadata=ObjectMeta(name="short")))
        running = asyncio.create_task(manager.run())
        async with local.installed(manager, client, namespace="short"):
            with pytest.raises(NotFound, match='namespaces "short" not found'):
                await client.create(ConfigMap(metadata=ObjectMeta(namespace="short", name="late")))
        running.cancel()
        await asyncio.wait((running,))
