"""An API server that calls webhooks: mutation, validation, warnings and deletions."""

from __future__ import annotations

import logging

import pytest

from kubewright import Manager, Model, ObjectMeta, Resource, resource
from kubewright.client import Client
from kubewright.client.errors import Forbidden, Invalid
from kubewright.testing import Install, LocalWebhooks, Running
from kubewright.webhook import Denied, FieldCause, Review, defaults, serve_webhooks, validates


class LampSpec(Model):
    watts: int = 40
    colour: str | None = None


@resource("lamps.webhook.test/v1")
class Lamp(Resource[LampSpec, None]):
    """Gives light."""


@defaults(Lamp)
def white(review: Review[Lamp]) -> None:
    if review.object.spec.colour is None:
        review.object.spec.colour = "white"


@validates(Lamp, on=["CREATE", "UPDATE", "DELETE"])
async def check_lamp(review: Review[Lamp]) -> list[FieldCause]:
    if review.operation == "DELETE":
        if review.object.metadata.annotations.get("keep"):
            raise Denied("this lamp is kept")
        return []
    if review.object.spec.watts > 60:
        review.warn("this lamp gets hot")
    errors = []
    if review.object.spec.watts < 1:
        errors.append(FieldCause.invalid("spec.watts", review.object.spec.watts, "must be at least 1"))
    if review.old is not None and review.old.spec.colour != review.object.spec.colour:
        errors.append(FieldCause.forbidden("spec.colour", "may not be changed"))
    return errors


def lamp(namespace: str, name: str = "desk", **spec: object) -> Lamp:
    return Lamp(metadata=ObjectMeta(name=name, namespace=namespace), spec=LampSpec(**spec))  # type: ignore[arg-type]


async def test_a_server_defaults_and_validates_what_it_stores(
    admin: Client,
    namespace: str,
    install: Install,
    running: Running,
    local_webhooks: LocalWebhooks,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await install(Lamp)
    manager = Manager(admin, **local_webhooks.options)
    serve_webhooks(manager, white, check_lamp)
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        created = await admin.create(lamp(namespace))
        assert created.spec.colour == "white"

        with pytest.raises(Invalid) as invalid:
            await admin.create(lamp(namespace, "dark", watts=0))
        (cause,) = invalid.value.status.causes
        assert (cause.field, cause.reason) == ("spec.watts", "FieldValueInvalid")
        assert cause.message == "Invalid value: 0: must be at least 1"
        assert invalid.value.status.message == (
            f'admission webhook "{check_lamp.path[1:]}.kubewright.dev" denied the request: '
            'Lamp.lamps.webhook.test "dark" is invalid: spec.watts: Invalid value: 0: must be at least 1'
        )

        created.spec.colour = "red"
        with pytest.raises(Invalid, match="Forbidden: may not be changed"):
            await admin.patch(created)

        with caplog.at_level(logging.WARNING):
            hot = lamp(namespace, "hot", watts=100)
            hot.metadata.annotations["keep"] = "yes"
            await admin.create(hot)
        assert "this lamp gets hot" in caplog.text
        with pytest.raises(Forbidden, match="denied the request: this lamp is kept"):
            await admin.delete(hot)
        local_webhooks.renew()
        await admin.delete(created)
