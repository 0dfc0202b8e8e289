"""An API server that calls webhooks: mutation, validation, warnings and deletions."""

from __future__ import annotations

import json
import logging
from base64 import b64decode
from collections.abc import AsyncIterator

import pytest
from tests.webhook.connections import post, trusting
from tests.webhook.reviews import review

from kubewright import Manager, Model, ObjectMeta, Resource, resource
from kubewright.api import to_json
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


@pytest.fixture
async def served(
    admin: Client, namespace: str, install: Install, running: Running, local_webhooks: LocalWebhooks
) -> AsyncIterator[Manager]:
    """A manager whose webhooks the server calls."""
    await install(Lamp)
    manager = Manager(admin, **local_webhooks.options)
    serve_webhooks(manager, white, check_lamp)
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        yield manager


async def test_item_15_a_mutating_webhook_answers_with_a_patch_and_the_uid_of_the_request(
    admin: Client, namespace: str, served: Manager, local_webhooks: LocalWebhooks
) -> None:
    created = await admin.create(lamp(namespace))
    assert created.spec.colour == "white"

    async def send(body: object) -> tuple[int, bytes]:
        tls = trusting(local_webhooks.authority)
        return await post(served.ports["webhook"], tls, white.path, json.dumps(body).encode())

    kind = {"group": "lamps.webhook.test", "version": "v1", "kind": "Lamp"}
    asked = review(new=to_json(lamp(namespace)), kind=kind)
    status, content = await send(asked)
    answer = json.loads(content)
    assert (status, answer["apiVersion"], answer["kind"]) == (200, "admission.k8s.io/v1", "AdmissionReview")
    patch = json.loads(b64decode(answer["response"].pop("patch")))
    assert answer["response"] == {"uid": asked["request"]["uid"], "allowed": True, "patchType": "JSONPatch"}
    assert patch == [{"op": "add", "path": "/spec/colour", "value": "white"}]
    assert (await send({**asked, "kind": "Lamp"}))[0] == 400


async def test_item_16_a_validating_webhook_allows_denies_and_warns(
    admin: Client, namespace: str, served: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    created = await admin.create(lamp(namespace))

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
    await admin.delete(created)


async def test_item_17_many_webhooks_are_served_by_the_manager_which_is_ready_only_then(
    admin: Client, namespace: str, install: Install, running: Running, local_webhooks: LocalWebhooks
) -> None:
    await install(Lamp)
    manager = Manager(admin, **local_webhooks.options)
    serve_webhooks(manager, white, check_lamp)
    assert (await manager.ready.failing())["webhooks"] == "the webhook server is not serving"
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        assert "webhooks" not in await manager.ready.failing()
        assert (await admin.create(lamp(namespace))).spec.colour == "white"
        with pytest.raises(Invalid, match="must be at least 1"):
            await admin.create(lamp(namespace, "dark", watts=0))
