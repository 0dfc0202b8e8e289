from __future__ import annotations

import pytest
from tests.patterns.parcels import Parcel, parcel

from kubewright import Client
from kubewright.patterns import add_finalizer, remove_finalizer
from kubewright.testing import Install, count_requests

OURS, THEIRS = "example.com/ours", "example.com/theirs"


@pytest.fixture
async def obj(admin: Client, namespace: str, install: Install) -> Parcel:
    await install(Parcel)
    return await admin.create(parcel(namespace=namespace))


async def let_go(admin: Client, obj: Parcel) -> None:
    there = await admin.find(obj)
    if there is not None:
        there.metadata.finalizers.clear()
        await admin.patch(there)


async def test_a_finalizer_is_put_on_once(admin: Client, obj: Parcel) -> None:
    held = await add_finalizer(admin, obj, OURS)
    assert held is not None
    assert held.metadata.finalizers == [OURS]
    with count_requests(admin) as requests:
        assert await add_finalizer(admin, held, OURS) is held
    assert requests.writes == 0
    await let_go(admin, obj)


async def test_finalizers_of_others_survive_both_ways(admin: Client, obj: Parcel) -> None:
    stale = await admin.get(obj)
    assert await add_finalizer(admin, obj, THEIRS)
    held = await add_finalizer(admin, stale, OURS)
    assert held is not None
    assert sorted(held.metadata.finalizers) == [OURS, THEIRS]
    stale = await admin.get(obj)
    assert await add_finalizer(admin, held, "example.com/third")
    await remove_finalizer(admin, stale, OURS)
    there = await admin.get(obj)
    assert sorted(there.metadata.finalizers) == [THEIRS, "example.com/third"]
    await let_go(admin, obj)


async def test_an_object_that_is_gone_or_being_deleted_gets_no_finalizer(
    admin: Client, obj: Parcel, namespace: str
) -> None:
    held = await add_finalizer(admin, await admin.get(obj), THEIRS)
    assert held is not None
    await admin.delete(held)
    assert await add_finalizer(admin, held, OURS) is None
    await let_go(admin, obj)
    assert await add_finalizer(admin, obj, OURS) is None
    await remove_finalizer(admin, held, THEIRS)
    successor = await admin.create(parcel(namespace=namespace))
    assert await add_finalizer(admin, obj, "example.com/third") is None
    assert (await admin.get(successor)).metadata.finalizers == []


async def test_only_qualified_names_are_finalizers(admin: Client, obj: Parcel) -> None:
    for name in ("cleanup", "example.com/", "/cleanup"):
        with pytest.raises(ValueError, match="is not a qualified name"):
            await add_finalizer(admin, obj, name)


async def test_a_finalizer_of_kubernetes_itself_is_taken_off(admin: Client, obj: Parcel) -> None:
    obj.metadata.finalizers.append("orphan")
    await remove_finalizer(admin, await admin.patch(obj), "orphan")
    assert (await admin.get(obj)).metadata.finalizers == []
