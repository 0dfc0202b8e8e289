"""When a webhook fails: what the API server makes of it, and what no request notices."""

from __future__ import annotations

import asyncio

import pytest

from kubewright import Manager, Model, ObjectMeta, Resource, resource
from kubewright.client import Client
from kubewright.client.errors import APIError, InternalError
from kubewright.testing import Install, LocalWebhooks, Running
from kubewright.webhook import Denied, Review, serve_webhooks, validates


class BellSpec(Model):
    volume: int = 1


@resource("failures.webhook.test/v1")
class Bell(Resource[BellSpec, None]):
    """Rings, unless a webhook fails."""


def labelled(value: str) -> dict[str, str]:
    return {"asked": value}


@validates(Bell, path="/raising", object_selector=labelled("raising"), timeout=30, failure_policy="Ignore")
def raising(review: Review[Bell]) -> None:
    raise LookupError("no rope")


@validates(Bell, path="/slow", object_selector=labelled("slow"), timeout=1)
async def slow(review: Review[Bell]) -> None:
    await asyncio.Event().wait()


@validates(Bell, path="/slow-ignored", object_selector=labelled("slow-ignored"), timeout=1, failure_policy="Ignore")
async def slow_ignored(review: Review[Bell]) -> None:
    await asyncio.Event().wait()


@validates(Bell, path="/needed", object_selector=labelled("needed"))
def needed(review: Review[Bell]) -> None:
    if review.object.spec.volume > 10:
        raise Denied("too loud")


@validates(Bell, path="/optional", object_selector=labelled("optional"), timeout=30, failure_policy="Ignore")
def optional(review: Review[Bell]) -> None:
    raise Denied("unless it is down")


def bell(name: str, asked: str, volume: int = 1) -> Bell:
    return Bell(metadata=ObjectMeta(name=name, labels=labelled(asked)), spec=BellSpec(volume=volume))


async def test_failure_policies_decide_when_a_webhook_cannot_answer_and_only_then(
    admin: Client, namespace: str, install: Install, running: Running, local_webhooks: LocalWebhooks
) -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    @validates(Bell, path="/last", object_selector=labelled("last"), timeout=30)
    async def last(review: Review[Bell]) -> None:
        asked.set()
        await may_answer.wait()

    def served(address: str) -> Manager:
        manager = Manager(admin, webhook_address=address, webhook_cert_dir=local_webhooks.options["webhook_cert_dir"])
        serve_webhooks(manager, raising, slow, slow_ignored, needed, optional, last)
        return manager

    await install(Bell)
    client = admin.in_namespace(namespace)
    manager = served("127.0.0.1:0")
    async with asyncio.timeout(300), asyncio.TaskGroup() as tasks:
        run = tasks.create_task(manager.run())
        await manager.webhooks_served.wait()
        port = manager.ports["webhook"]
        async with local_webhooks.installed(manager, admin, namespace=namespace):
            # A function that raises has answered.
            with pytest.raises(InternalError, match="denied the request: raising failed: LookupError: no rope"):
                await client.create(bell("raising", "raising"))
            ignored = tasks.create_task(client.create(bell("ignored", "slow-ignored")))
            with pytest.raises(
                InternalError, match=r'failed calling webhook "slow.kubewright.dev": failed to call webhook'
            ):
                await client.create(bell("slow", "slow"))
            assert (await ignored).metadata.name == "ignored"
            with pytest.raises(APIError, match="unless it is down"):
                await client.create(bell("denied", "optional"))

            # What is asked before the end is answered.
            under_way = tasks.create_task(client.create(bell("last", "last")))
            await asked.wait()
            manager.stop()
            while manager.webhooks_served.is_set():
                await asyncio.sleep(0.01)
            may_answer.set()
            assert (await under_way).metadata.name == "last"
            await run

            with pytest.raises(InternalError, match=r'failed calling webhook "needed.kubewright.dev": failed to call'):
                await client.create(bell("needed", "needed"))
            await client.create(bell("admitted", "optional"))

            # Another replica in its place.
            async with running(again := served(f"127.0.0.1:{port}")):
                await again.webhooks_served.wait()
                await client.create(bell("needed", "needed"))
                with pytest.raises(APIError, match="denied the request: too loud"):
                    await client.create(bell("loud", "needed", volume=11))
