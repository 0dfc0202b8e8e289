"""A program on the machine of a developer, whose webhooks an API server calls by URL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self

from kubewright import (
    Client,
    Manager,
    Model,
    ObjectMeta,
    Resource,
    Review,
    converts,
    defaults,
    resource,
    serve_webhooks,
    validates,
)
from kubewright.api.admissionregistration.v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.client.errors import APIError, NotFound
from kubewright.testing import Install, Running

NAME = "tents-in-a-test"


class TentSpec(Model):
    pegs: int = 4
    color: str | None = None


@resource("development.webhook.test/v1")
class Tent(Resource[TentSpec, None]):
    """Stands."""


class TentV1Beta1Spec(Model):
    nails: int = 4


@resource("development.webhook.test/v1beta1", kind="Tent", storage=False)
class TentV1Beta1(Resource[TentV1Beta1Spec, None]):
    """Stands on nails."""

    def to_hub(self) -> Tent:
        return Tent(spec=TentSpec(pegs=self.spec.nails))

    @classmethod
    def from_hub(cls, hub: Tent) -> Self:
        return cls(spec=TentV1Beta1Spec(nails=hub.spec.pegs))


@defaults(Tent)
def default_color(review: Review[Tent]) -> None:
    review.object.spec.color = review.object.spec.color or "red"


@validates(Tent)
def warn(review: Review[Tent]) -> None:
    review.warn("checked")


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await asyncio.sleep(0.02)


async def test_webhooks_are_called_by_url_while_a_program_runs_and_no_longer(
    admin: Client, namespace: str, install: Install, running: Running
) -> None:
    await install(Tent)
    client = admin.in_namespace(namespace)
    manager = Manager(admin, name=NAME, webhook_address="127.0.0.1:0", webhook_url="https://127.0.0.1")
    serve_webhooks(manager, default_color, warn, converts(Tent, TentV1Beta1))

    async def color() -> str | None:
        probe = Tent(metadata=ObjectMeta(name="probe"), spec=TentSpec())
        return (await client.create(probe, dry_run=True)).spec.color

    async def is_defaulted() -> bool:
        return await color() == "red"

    async def is_converted() -> bool:
        with suppress(NotFound):  # until the server has seen that there is another version
            return (await client.get(TentV1Beta1, "tent")).spec.nails == 7
        return False

    async def is_over() -> bool:
        with suppress(APIError):  # until the server has seen that there is no webhook
            return await color() is None
        return False

    async with running(manager):
        await eventually(is_defaulted)
        await client.create(Tent(metadata=ObjectMeta(name="tent"), spec=TentSpec(pegs=7)))
        await eventually(is_converted)
        validating = await admin.get(ValidatingWebhookConfiguration, f"{NAME}-development")
        assert [each.client_config.url for each in validating.webhooks] == [
            f"https://127.0.0.1:{manager.ports['webhook']}/validate-development-webhook-test-v1-tent"
        ]

    await eventually(is_over)
    assert await admin.find(MutatingWebhookConfiguration, f"{NAME}-development") is None
    assert await admin.find(ValidatingWebhookConfiguration, f"{NAME}-development") is None
    definition = await admin.get(CustomResourceDefinition, "tents.development.webhook.test")
    assert definition.spec.conversion is not None
    assert definition.spec.conversion.strategy == "None"
