from __future__ import annotations

import pytest
from tests.patterns.parcels import Parcel, parcel

from kubewright import AlreadyExists, Client, Conflict, Manager, ObjectMeta, partial
from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.cache import CachedClient
from kubewright.patterns import Context, NotYet, create_or_update, ensure
from kubewright.testing import Install, RecordedEvents, Running, count_requests


@pytest.fixture
async def owner(admin: Client, namespace: str, install: Install) -> Parcel:
    await install(Parcel)
    return await admin.create(parcel(namespace=namespace))


def config(size: str, name: str = "settings") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data={"size": size})


async def test_item_55_a_child_is_created_updated_or_left_alone(admin: Client, owner: Parcel) -> None:
    created = await ensure(admin, config("1"), owner=owner)
    assert created.outcome == "created"
    assert created.object.metadata.namespace == owner.metadata.namespace
    assert created.object.metadata.owner_references == [owner.as_owner()]
    assert (await ensure(admin, config("1"), owner=owner)).outcome == "unchanged"
    updated = await ensure(admin, config("2"), owner=owner)
    assert (updated.outcome, updated.object.data) == ("updated", {"size": "2"})


async def test_a_watched_child_that_is_as_wanted_costs_no_request(
    admin: Client, owner: Parcel, running: Running
) -> None:
    manager = Manager(admin, namespaces=[owner.metadata.namespace])
    watch = manager.cache.watch(ConfigMap)
    async with running(manager):
        await watch.synced()
        await ensure(manager.client, config("1"), owner=owner)
        with count_requests(admin) as requests:
            again = await ensure(manager.client, config("1"), owner=owner)
        assert (again.outcome, requests.reads, requests.writes) == ("unchanged", 0, 0)


async def test_what_others_added_to_a_child_stays(admin: Client, owner: Parcel) -> None:
    child = (await ensure(admin, config("1"), owner=owner)).object
    child.metadata.labels["team"] = "blue"
    await admin.patch(child)
    child = (await ensure(admin, config("2"), owner=owner)).object
    assert child.metadata.labels == {"team": "blue"}


async def test_a_field_of_another_manager_is_taken_over_unless_force_is_off(admin: Client, owner: Parcel) -> None:
    child = (await ensure(admin, config("1"), owner=owner)).object
    child.data["size"] = "9"
    await admin.patch(child, field_manager="somebody")
    with pytest.raises(Conflict, match="somebody"):
        await ensure(admin, config("2"), owner=owner, force=False)
    assert (await ensure(admin, config("2"), owner=owner)).object.data == {"size": "2"}


async def test_ensure_does_not_change_its_argument(admin: Client, owner: Parcel, namespace: str) -> None:
    wanted = config("1")
    await ensure(admin, wanted, owner=owner)
    assert wanted == config("1")
    other = await admin.create(parcel("other", namespace))
    with pytest.raises(ValueError, match="controlled by Parcel web already"):
        await ensure(admin, await admin.get(ConfigMap, "settings", namespace=namespace), owner=other)


async def test_a_child_that_another_owner_controls_is_refused_and_stays(
    admin: Client, owner: Parcel, namespace: str
) -> None:
    """By server-side apply the reference of one field manager would replace the other one it has set."""
    await ensure(admin, config("1"), owner=owner)
    other = await admin.create(parcel("other", namespace))
    for attempt in (ensure(admin, config("2"), owner=other), _in_context(admin, other), _in_block(admin, other)):
        with pytest.raises(ValueError, match="controlled by Parcel web already"):
            await attempt
    child = await admin.get(ConfigMap, "settings", namespace=namespace)
    assert (child.metadata.owner_references, child.data) == ([owner.as_owner()], {"size": "1"})


async def test_a_child_without_a_controller_is_adopted_unless_its_owner_is_being_deleted(
    admin: Client, owner: Parcel, namespace: str
) -> None:
    """With --cascade=orphan a child may be seen without its owner before the owner is seen to be deleted."""
    orphan = await admin.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace=namespace)))
    seen_before = await admin.get(owner)
    owner.metadata.finalizers = ["example.com/held"]
    await admin.delete(await admin.patch(owner))
    for attempt in (ensure(admin, config("2"), owner=seen_before), _in_block(admin, seen_before)):
        with pytest.raises(NotYet, match=f"the Parcel {namespace}/web is being deleted"):
            await attempt
    assert (await admin.get(orphan)).metadata.owner_references == []

    other = await admin.create(parcel("other", namespace))
    adopted = await ensure(admin, config("2"), owner=other)
    assert adopted.object.metadata.owner_references == [other.as_owner()]


async def _in_context(admin: Client, owner: Parcel) -> None:
    await Context(owner, admin, RecordedEvents()).ensure(config("2"))


async def _in_block(admin: Client, owner: Parcel) -> None:
    async with create_or_update(admin, config("2"), owner=owner) as child:
        child.data["size"] = "2"


async def test_a_partial_child_is_owned_and_the_rest_of_it_is_not_ours(
    admin: Client, owner: Parcel, namespace: str
) -> None:
    wanted = partial(ConfigMap, "settings")
    wanted.data = {"size": "1"}
    child = (await ensure(admin, wanted, owner=owner)).object
    assert child.metadata.owner_references == [owner.as_owner()]
    child.immutable = True
    await admin.patch(child)
    assert (await ensure(admin, wanted, owner=owner)).object.immutable is True
    assert wanted.metadata == ObjectMeta(name="settings")


async def test_a_child_needs_a_name(admin: Client, owner: Parcel) -> None:
    nameless = ConfigMap(metadata=ObjectMeta(generate_name="settings-"))
    with pytest.raises(ValueError, match="the ConfigMap has no name"):
        await ensure(admin, nameless, owner=owner)
    with pytest.raises(ValueError, match="the ConfigMap has no name"):
        async with create_or_update(admin, nameless, owner=owner):
            pass


async def test_an_owner_that_the_garbage_collector_would_not_find_is_refused(admin: Client, owner: Parcel) -> None:
    with pytest.raises(ValueError, match="the owner has a namespace and the child has none"):
        await ensure(admin, Namespace(metadata=ObjectMeta(name="elsewhere")), owner=owner)
    elsewhere = ConfigMap(metadata=ObjectMeta(name="settings", namespace="elsewhere"))
    with pytest.raises(ValueError, match="they are in different namespaces"):
        await ensure(admin, elsewhere, owner=owner)
    with pytest.raises(ValueError, match="they are in different namespaces"):
        async with create_or_update(admin, elsewhere, owner=owner):
            pass


async def test_item_55_a_block_creates_updates_or_does_nothing(admin: Client, owner: Parcel, namespace: str) -> None:
    async def count() -> str:
        change = create_or_update(admin, ConfigMap(metadata=ObjectMeta(name="key")), owner=owner)
        async with change as child:
            child.data.setdefault("key", "1")
        assert change.object.data == {"key": "1"}
        assert change.object.metadata.owner_references == [owner.as_owner()]
        return change.outcome

    assert await count() == "created"
    with count_requests(admin) as requests:
        assert await count() == "unchanged"
    assert requests.writes == 0
    await admin.delete(ConfigMap, "key", namespace=namespace)
    await admin.create(ConfigMap(metadata=ObjectMeta(name="key", namespace=namespace), data={"foreign": "2"}))
    change = create_or_update(admin, ConfigMap(metadata=ObjectMeta(name="key")), owner=owner)
    async with change as child:
        child.data["key"] = "1"
    assert change.outcome == "updated"
    assert (await admin.get(ConfigMap, "key", namespace=namespace)).data == {"foreign": "2", "key": "1"}


async def test_item_55_a_block_that_renames_is_refused(admin: Client, owner: Parcel, namespace: str) -> None:
    for found in (False, True):
        with count_requests(admin) as requests, pytest.raises(ValueError, match="does not rename"):
            async with create_or_update(admin, config("1"), owner=owner) as child:
                child.metadata.name = "another"
        assert requests.writes == 0
        if not found:
            await ensure(admin, config("1"), owner=owner)


async def test_a_block_that_raises_writes_nothing(admin: Client, owner: Parcel) -> None:
    with count_requests(admin) as requests, pytest.raises(KeyError):
        async with create_or_update(admin, config("1"), owner=owner) as child:
            child.data["size"] = child.data["no"]
    assert requests.writes == 0


async def test_item_56_a_concurrent_change_of_a_child_survives(admin: Client, owner: Parcel, namespace: str) -> None:
    await ensure(admin, config("1"), owner=owner)
    async with create_or_update(admin, config("1"), owner=owner) as child:
        foreign = await admin.get(ConfigMap, "settings", namespace=namespace)
        foreign.metadata.labels["team"] = "blue"
        foreign.metadata.finalizers.append("example.com/theirs")
        await admin.patch(foreign)
        child.data["size"] = "2"
        child.metadata.finalizers.append("example.com/ours")
    child = await admin.get(ConfigMap, "settings", namespace=namespace)
    assert (child.data, child.metadata.labels) == ({"size": "2"}, {"team": "blue"})
    assert sorted(child.metadata.finalizers) == ["example.com/ours", "example.com/theirs"]
    child.metadata.finalizers.clear()
    await admin.patch(child)


class Stale(CachedClient):
    """Has not seen any object yet."""

    async def find(self, *args: object, **options: object) -> None:
        return None


async def test_a_child_created_between_read_and_create_is_changed(admin: Client, owner: Parcel, namespace: str) -> None:
    await admin.create(
        ConfigMap(
            metadata=ObjectMeta(name="settings", namespace=namespace, finalizers=["example.com/theirs"]),
            data={"foreign": "yes", "size": "1"},
        )
    )
    stale = Stale(admin, Manager(admin).cache)
    change = create_or_update(stale, ConfigMap(metadata=ObjectMeta(name="settings")), owner=owner)
    async with change as child:
        child.data["size"] = "2"
    assert change.outcome == "updated"
    there = await admin.get(ConfigMap, "settings", namespace=namespace)
    assert there.data == {"foreign": "yes", "size": "2"}
    assert there.metadata.finalizers == ["example.com/theirs"]
    assert there.metadata.owner_references == [owner.as_owner()]
    there.metadata.finalizers.clear()
    await admin.patch(there)


async def test_a_creation_that_is_refused_is_raised(admin: Client, owner: Parcel) -> None:
    child = ConfigMap(metadata=ObjectMeta(name="Not A Name"))
    with pytest.raises(Exception, match="Not A Name") as raised:
        async with create_or_update(admin, child, owner=owner):
            pass
    assert not isinstance(raised.value, AlreadyExists)
