"""An API server that has the versions of a kind converted by a webhook."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.webhook.boats import (
    Boat,
    BoatSpec,
    BoatV1Beta1,
    BoatV1Beta1Spec,
    Cabin,
    Leg,
)

from kubewright import Client, Manager, ObjectMeta, converts, serve_webhooks
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.client import MergePatch
from kubewright.client.errors import APIError
from kubewright.testing import LocalWebhooks, Running
from kubewright.webhook.stash import ANNOTATION


@pytest.fixture
async def client(
    admin: Client, namespace: str, running: Running, local_webhooks: LocalWebhooks
) -> AsyncIterator[Client]:
    """Of a user, while boats are converted."""
    manager = Manager(admin, **local_webhooks.options)
    serve_webhooks(manager, converts(Boat, BoatV1Beta1))
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        yield admin.in_namespace(namespace)
    definition = await admin.get(CustomResourceDefinition, "boats.boats.webhook.test")
    assert definition.spec.conversion is not None
    assert definition.spec.conversion.strategy == "None", "a webhook that is gone would block the end of the namespace"


async def test_an_object_of_one_version_is_served_in_the_other_and_loses_nothing(client: Client) -> None:
    spec = BoatSpec(
        owner="ann",
        crew=2,
        engine="electric",
        cabins=[Cabin(name="a", view="sea")],
        route=[Leg(to="Rome", miles=7)],
        flag="blue",
    )
    stored = await client.create(Boat(metadata=ObjectMeta(name="hub", labels={"a": "b"}), spec=spec))
    seen = await client.get(BoatV1Beta1, "hub")
    assert (seen.spec.sailors, seen.spec.motor, seen.spec.stops) == (2, True, ["Rome"])
    assert (seen.metadata.uid, seen.metadata.labels) == (stored.metadata.uid, {"a": "b"})

    seen.spec.sailors = 3
    seen = await client.update(seen)
    assert seen.spec.sailors == 3
    await client.patch(
        BoatV1Beta1, "hub", MergePatch({"spec": {"cabins": [{"name": "a", "beds": 4}], "nickname": "n"}})
    )
    changed = await client.get(Boat, "hub")
    spec.crew, spec.cabins[0].beds = 3, 4
    assert changed.spec == spec
    assert (await client.get(BoatV1Beta1, "hub")).spec.nickname == "n"

    applied = BoatV1Beta1(metadata=ObjectMeta(name="hub"), spec=BoatV1Beta1Spec(owner="ann", motor=False))
    await client.apply(applied, force=True)
    spec.engine, spec.crew, spec.route = "none", 1, []
    assert (await client.get(Boat, "hub")).spec == spec
    # The server takes away what was applied in the other version, and has the rest converted: it has no owner then.
    spec.flag = "red"
    await client.apply(Boat(metadata=ObjectMeta(name="hub"), spec=spec), force=True)
    assert (await client.get(Boat, "hub")).spec == spec

    made = BoatV1Beta1(metadata=ObjectMeta(name="spoke"), spec=BoatV1Beta1Spec(owner="bob", nickname="bobby"))
    await client.create(made)
    assert {each.metadata.name: each.spec.owner for each in await client.list(Boat)} == {"hub": "ann", "spoke": "bob"}
    both = {each.metadata.name: each for each in await client.list(BoatV1Beta1)}
    assert both["spoke"].spec == made.spec
    assert ANNOTATION not in both["spoke"].metadata.annotations
    # An update that changes nothing is none: converting twice gives the same bytes.
    for kind in (Boat, BoatV1Beta1):
        for each in await client.list(kind):
            assert (await client.update(each)).metadata.resource_version == each.metadata.resource_version


async def test_a_conversion_that_fails_is_answered_with_the_object_and_the_reason(client: Client) -> None:
    bad = BoatV1Beta1(metadata=ObjectMeta(name="bad"), spec=BoatV1Beta1Spec(owner="ann", sailors=-1))
    with pytest.raises(
        APIError, match=r"what BoatV1Beta1.to_hub returned is not valid: Boat .*/bad.*spec.crew"
    ) as error:
        await client.create(bad)
    assert "conversion webhook for boats.webhook.test/v1beta1, Kind=Boat failed: " in str(error.value)
