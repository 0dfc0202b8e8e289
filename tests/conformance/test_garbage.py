"""Garbage collection: owner references in all their forms, as kube-controller-manager and our collector treat them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from kubewright.api.core.v1 import ConfigMap, Event, Namespace
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.api.resources import Object
from kubewright.client import Client, MergePatch
from kubewright.client.errors import NotFound
from kubewright.client.paths import Propagation
from kubewright.client.wait import Field, deleted

HOLD = "example.com/hold"
GOING = Field("metadata.deletionTimestamp").satisfies(lambda value: value is not None, "is set")


def reference(owner: Object, *, blocking: bool | None = None) -> OwnerReference:
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        block_owner_deletion=blocking,
    )


async def create(client: Client, name: str, *owners: OwnerReference, held: bool = False) -> ConfigMap:
    metadata = ObjectMeta(name=name, owner_references=list(owners), finalizers=[HOLD] if held else [])
    return await client.create(ConfigMap(metadata=metadata))


async def let_go(client: Client, name: str) -> None:
    with suppress(NotFound):
        await client.patch(ConfigMap, name, MergePatch({"metadata": {"finalizers": None}}))


@asynccontextmanager
async def settled(client: Client) -> AsyncIterator[None]:
    """Whatever the collector makes of what happened before is over at the end: it has handled something later."""
    yield
    owner = await create(client, "canary")
    child = await create(client, "canary-child", reference(owner))
    await client.delete(owner, propagation="Background")
    await client.wait_for(child, deleted, timeout=30)


async def test_an_owner_that_never_existed_is_as_good_as_gone(client: Client) -> None:
    absent = OwnerReference(
        api_version="v1", kind="ConfigMap", name="nobody", uid="5d6a2f5c-0000-0000-0000-000000000000"
    )
    child = await create(client, "child", absent)

    assert await client.wait_for(child, deleted, timeout=30) is None


async def test_an_owner_of_the_same_name_and_another_uid_is_not_the_owner(client: Client) -> None:
    first = await create(client, "owner")
    await client.delete(first)
    second = await create(client, "owner")
    theirs, stranger = await create(client, "theirs", reference(second)), await create(client, "x", reference(first))

    assert await client.wait_for(stranger, deleted, timeout=30) is None
    assert (await client.get(ConfigMap, "theirs")).metadata.uid == theirs.metadata.uid


async def test_an_owner_in_another_namespace_is_none_and_an_event_says_so(admin: Client, namespace: str) -> None:
    client = admin.in_namespace(namespace)
    other = await admin.create(Namespace(metadata=ObjectMeta(name=f"{namespace}-other")))
    owner = await create(admin.in_namespace(other.metadata.name), "owner")
    async with settled(admin.in_namespace(other.metadata.name)):
        pass  # the collector knows of the owner
    child = await create(client, "child", reference(owner))

    assert await client.wait_for(child, deleted, timeout=30) is None
    async with asyncio.timeout(30):
        while not (events := [event async for event in client.list(Event) if event.involved_object.name == "child"]):
            await asyncio.sleep(0.02)
    (event,) = events
    await admin.delete(other)
    assert (event.type, event.reason) == ("Warning", "OwnerRefInvalidNamespace")
    assert event.message == (
        f"ownerRef [v1/ConfigMap, namespace: {namespace}, name: owner, uid: {owner.metadata.uid}] "
        f'does not exist in namespace "{namespace}"'
    )
    assert event.source is not None
    assert event.source.component == "garbage-collector-controller"
    assert event.involved_object.uid == child.metadata.uid


async def test_an_owner_without_a_namespace_is_found_from_every_namespace(client: Client, namespace: str) -> None:
    owner = await client.create(ClusterRole(metadata=ObjectMeta(name=f"{namespace}-owner")))
    child = await create(client, "child", reference(owner))
    async with settled(client):
        assert (await client.get(ConfigMap, "child")).metadata.uid == child.metadata.uid

    await client.delete(owner)

    assert await client.wait_for(child, deleted, timeout=30) is None


async def test_an_object_without_a_namespace_stays_whatever_owner_in_one_it_names(
    client: Client, namespace: str
) -> None:
    owner = await create(client, "owner")
    child = await client.create(
        ClusterRole(metadata=ObjectMeta(name=f"{namespace}-child", owner_references=[reference(owner)]))
    )
    async with settled(client):
        await client.delete(owner)

    assert (await client.get(ClusterRole, child.metadata.name)).metadata.uid == child.metadata.uid
    await client.delete(child)


async def test_of_two_owners_the_one_that_is_gone_is_forgotten(client: Client) -> None:
    first, second = await create(client, "first"), await create(client, "second")
    child = await create(client, "child", reference(first), reference(second))
    await client.delete(first)

    left = Field("metadata.ownerReferences").satisfies(
        lambda owners: isinstance(owners, list) and len(owners) == 1, "is one"
    )
    kept = await client.wait_for(child, left, timeout=30)
    assert kept is not None
    assert kept.metadata.owner_references == [reference(second)]
    await client.delete(second)
    assert await client.wait_for(child, deleted, timeout=30) is None


async def test_only_a_blocking_dependent_holds_up_a_foreground_deletion(client: Client) -> None:
    owner = await create(client, "owner")
    blocking = await create(client, "blocking", reference(owner, blocking=True), held=True)
    free = await create(client, "free", reference(owner), held=True)

    await client.delete(owner, propagation="Foreground")
    for dependent in (blocking, free):
        await client.wait_for(dependent, GOING, timeout=30)
    waiting = await client.get(ConfigMap, "owner")
    await let_go(client, "blocking")
    gone = await client.wait_for(owner, deleted, timeout=30)
    left = await client.find(ConfigMap, "free")
    await let_go(client, "free")

    assert waiting.metadata.finalizers == ["foregroundDeletion"]
    assert waiting.metadata.deletion_timestamp is not None
    assert gone is None
    assert left is not None


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_objects_that_own_each_other_go_together(client: Client, propagation: Propagation) -> None:
    one = await create(client, "one")
    two = await create(client, "two", reference(one, blocking=True))
    one.metadata.owner_references = [reference(two, blocking=True)]
    one = await client.update(one)

    await client.delete(one, propagation=propagation)

    for gone in (one, two):
        assert await client.wait_for(gone, deleted, timeout=30) is None


async def test_orphans_forget_the_owner_that_left_them_and_no_other(client: Client) -> None:
    owner, other = await create(client, "owner"), await create(client, "other")
    child = await create(client, "child", reference(owner, blocking=True), reference(other))
    await client.delete(owner, propagation="Orphan")

    assert await client.wait_for(owner, deleted, timeout=30) is None
    kept = await client.get(ConfigMap, "child")
    assert kept.metadata.uid == child.metadata.uid
    assert kept.metadata.owner_references == [reference(other)]


async def test_deletions_have_their_finalizers_at_once(client: Client) -> None:
    """What watchers see before the collector has acted."""
    finalizers = {}
    for propagation in ("Foreground", "Orphan", "Background"):
        held = await create(client, propagation.lower(), held=True)
        async with client.watch(
            ConfigMap,
            namespace=client.namespace,
            resource_version=held.metadata.resource_version,
            fields={"metadata.name": held.metadata.name},
            bookmarks=False,
        ) as events:
            await client.delete(held, propagation=propagation)
            first = await anext(aiter(events))
        finalizers[propagation] = sorted(first.object.metadata.finalizers)
        await let_go(client, held.metadata.name)

    assert finalizers == {
        "Foreground": [HOLD, "foregroundDeletion"],
        "Orphan": [HOLD, "orphan"],
        "Background": [HOLD],
    }
