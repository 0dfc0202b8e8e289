"""The 409 of the server: whether reading again helps, or an action is needed."""

from __future__ import annotations

import asyncio
import copy

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.client.errors import AlreadyExists, Conflict


async def created(client: Client) -> ConfigMap:
    return await client.create(ConfigMap(metadata=ObjectMeta(name="settings"), data={"a": "1"}))


async def outdated(client: Client) -> ConfigMap:
    """The object as it was before another client changed it."""
    before = await created(client)
    changed = copy.deepcopy(before)
    changed.data["a"] = "2"
    await client.update(changed)
    before.data["a"] = "3"
    return before


async def test_an_update_of_a_changed_object_is_an_optimistic_lock_conflict(client: Client) -> None:
    with pytest.raises(Conflict) as raised:
        await client.update(await outdated(client))
    assert raised.value.is_optimistic_lock


async def test_a_patch_of_a_changed_object_is_an_optimistic_lock_conflict(client: Client) -> None:
    before = await outdated(client)
    revision = before.metadata.resource_version
    patch = MergePatch({"metadata": {"resourceVersion": revision}, "data": {"a": "3"}})
    with pytest.raises(Conflict) as raised:
        await client.patch(ConfigMap, "settings", patch)
    assert raised.value.is_optimistic_lock


async def test_a_deletion_of_a_changed_object_is_an_optimistic_lock_conflict(client: Client) -> None:
    before = await outdated(client)
    with pytest.raises(Conflict) as raised:
        await client.delete(before, resource_version=before.metadata.resource_version)
    assert raised.value.is_optimistic_lock


async def test_fields_of_another_manager_are_none(client: Client) -> None:
    wanted = ConfigMap(metadata=ObjectMeta(name="settings"), data={"a": "1"})
    await client.apply(wanted, field_manager="one")
    wanted.data["a"] = "2"
    with pytest.raises(Conflict) as raised:
        await client.apply(wanted, field_manager="two")
    assert not raised.value.is_optimistic_lock


async def test_an_object_of_another_uid_is_none(client: Client) -> None:
    other = await created(client)
    other.metadata.uid = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(Conflict) as deleting:
        await client.delete(ConfigMap, "settings", uid=other.metadata.uid)
    with pytest.raises(Conflict) as updating:
        await client.update(other)
    assert not deleting.value.is_optimistic_lock
    assert not updating.value.is_optimistic_lock


async def test_a_name_that_is_taken_is_no_optimistic_lock_conflict(client: Client) -> None:
    await created(client)
    with pytest.raises(AlreadyExists) as raised:
        await created(client)
    assert not isinstance(raised.value, Conflict)


async def test_many_clients_that_change_one_list_at_once_all_succeed(client: Client) -> None:
    """Each adds a finalizer of its own to a list that a merge patch replaces whole."""
    before = await created(client)

    async def add(name: str) -> None:
        mine = copy.deepcopy(before)
        mine.metadata.finalizers.append(f"example.com/{name}")
        await client.patch(mine)

    names = [f"writer-{number}" for number in range(12)]
    await asyncio.gather(*map(add, names))
    found = await client.get(before)
    await client.patch(found, MergePatch({"metadata": {"finalizers": None}}))
    assert sorted(found.metadata.finalizers) == sorted(f"example.com/{name}" for name in names)
