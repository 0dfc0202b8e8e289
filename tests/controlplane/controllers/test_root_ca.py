from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, deleted, exists
from kubewright.controlplane.controllers.clock import SystemClock
from kubewright.controlplane.controllers.root_ca import RootCAPublisher
from kubewright.controlplane.controllers.runtime import BuiltInController

NAME = "kube-root-ca.crt"


@pytest.fixture
async def published(client: Client, namespace: str, start: Callable[[BuiltInController], None]) -> ConfigMap:
    """The ConfigMap that the running controller has put into the namespace."""
    start(RootCAPublisher(client, SystemClock(), ca_certificate="the certificate"))
    found = await client.wait_for(ConfigMap, NAME, exists, namespace=namespace)
    assert found is not None
    return found


async def test_every_namespace_gets_the_certificate(client: Client, published: ConfigMap) -> None:
    assert published.data == {"ca.crt": "the certificate"}
    assert published.metadata.annotations["kubernetes.io/description"].startswith("Contains a CA bundle that can be")
    later = await client.create(Namespace(metadata=ObjectMeta(generate_name="later-")))
    await client.wait_for(ConfigMap, NAME, exists, namespace=later.metadata.name)


@pytest.mark.parametrize(
    "damage",
    [
        {"data": {"ca.crt": "another"}},
        {"data": {"more": "of it"}},
        {"data": None},
        {"metadata": {"annotations": None}},
    ],
)
async def test_damage_is_repaired(client: Client, published: ConfigMap, damage: dict[str, JSONValue]) -> None:
    await client.patch(published, MergePatch({**damage, "metadata": {"labels": {"by": "me"}, **_metadata(damage)}}))
    whole = Field("data").equals({"ca.crt": "the certificate"}) & Field(
        'metadata.annotations["kubernetes.io/description"]'
    ).satisfies(bool, "is there")
    repaired = await client.wait_for(published, whole)
    assert repaired is not None
    assert repaired.metadata.labels == {"by": "me"}


async def test_a_deleted_certificate_comes_again(client: Client, published: ConfigMap) -> None:
    await client.delete(published)
    await client.wait_for(published, deleted)
    await client.wait_for(ConfigMap, NAME, exists, namespace=published.metadata.namespace)


async def test_a_description_of_ones_own_is_no_damage(client: Client, published: ConfigMap, writes: list[str]) -> None:
    own: JSONValue = {"kubernetes.io/description": "ours"}
    await client.patch(published, MergePatch({"metadata": {"annotations": own}}))
    later = await client.create(Namespace(metadata=ObjectMeta(generate_name="later-")))
    await client.wait_for(ConfigMap, NAME, exists, namespace=later.metadata.name)
    kept = await client.get(ConfigMap, published.key)
    assert kept.metadata.annotations == own
    assert len([write for write in writes if f"/{published.metadata.namespace}/" in write]) == 1


def _metadata(damage: dict[str, JSONValue]) -> dict[str, JSONValue]:
    found = damage.get("metadata")
    return found if isinstance(found, dict) else {}
