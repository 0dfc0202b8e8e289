from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.api.resources import Object
from kubewright.client import Client, MergePatch
from kubewright.client.wait import Field, deleted, established
from kubewright.controlplane.controllers.clock import SystemClock
from kubewright.controlplane.controllers.garbage import GarbageCollector
from kubewright.controlplane.controllers.runtime import BuiltInController

Start = Callable[[BuiltInController], None]

FINALIZER = "example.com/wait"
NO_FINALIZERS = MergePatch({"metadata": {"finalizers": []}})
DELETION_HAS_BEGUN = Field("metadata.deletionTimestamp").satisfies(bool, "is set")


@pytest.fixture
async def collector(client: Client, start: Start) -> None:
    start(GarbageCollector(client, SystemClock()))


def config_map(namespace: str, name: str, *owners: OwnerReference, finalizers: tuple[str, ...] = ()) -> ConfigMap:
    metadata = ObjectMeta(name=name, namespace=namespace, owner_references=list(owners), finalizers=list(finalizers))
    return ConfigMap(metadata=metadata)


def owned_by(owner: Object, *, blocking: bool | None = None) -> OwnerReference:
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        block_owner_deletion=blocking,
    )


def owned_by_absent(kind: str = "ConfigMap", api_version: str = "v1", uid: str = "never-was") -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name="never-was", uid=uid)


async def everything_before_is_done(client: Client, namespace: str) -> None:
    """Objects of one kind are reconciled in the order in which they changed, so garbage made last is deleted last."""
    for _ in range(2):
        canary = await client.create(
            ConfigMap(
                metadata=ObjectMeta(
                    generate_name="canary-", namespace=namespace, owner_references=[owned_by_absent(uid="canary")]
                )
            )
        )
        await client.wait_for(canary, deleted)


@pytest.mark.usefixtures("collector")
async def test_dependents_go_after_their_owner_and_so_do_theirs(client: Client, namespace: str) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    child = await client.create(config_map(namespace, "child", owned_by(owner)))
    grandchild = await client.create(config_map(namespace, "grandchild", owned_by(child)))
    await client.delete(owner)
    await client.wait_for(child, deleted)
    await client.wait_for(grandchild, deleted)


async def test_objects_that_lost_their_owner_before_the_start_are_deleted_too(
    client: Client, namespace: str, start: Start
) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    child = await client.create(config_map(namespace, "child", owned_by(owner)))
    kept = await client.create(config_map(namespace, "kept", owned_by(await client.get(Namespace, namespace))))
    await client.delete(owner)
    start(GarbageCollector(client, SystemClock()))
    await client.wait_for(child, deleted)
    assert await client.find(ConfigMap, kept.key) is not None


@pytest.mark.usefixtures("collector")
async def test_an_owner_that_never_existed_is_gone(client: Client, namespace: str) -> None:
    await client.wait_for(await client.create(config_map(namespace, "child", owned_by_absent())), deleted)


@pytest.mark.usefixtures("collector")
async def test_an_owner_of_the_same_name_and_another_uid_is_gone(client: Client, namespace: str) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    reference = owned_by(owner)
    reference.uid = "an-earlier-one"
    await client.wait_for(await client.create(config_map(namespace, "child", reference)), deleted)


@pytest.mark.usefixtures("collector")
async def test_an_owner_in_another_namespace_is_gone(client: Client, namespace: str) -> None:
    owner = await client.create(config_map("default", f"owner-of-{namespace}"))
    child = await client.create(config_map(namespace, "child", owned_by(owner)))
    await client.wait_for(child, deleted)
    assert await client.find(ConfigMap, owner.key) is not None


@pytest.mark.usefixtures("collector")
async def test_an_owner_in_no_namespace_is_found_from_every_namespace(client: Client, namespace: str) -> None:
    role = await client.create(ClusterRole(metadata=ObjectMeta(name=f"owner-of-{namespace}")))
    child = await client.create(config_map(namespace, "child", owned_by(role)))
    await everything_before_is_done(client, namespace)
    assert await client.find(ConfigMap, child.key) is not None
    await client.delete(role)
    await client.wait_for(child, deleted)


@pytest.mark.usefixtures("collector")
async def test_an_object_in_no_namespace_is_never_deleted_because_of_an_owner_in_one(
    client: Client, namespace: str
) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    metadata = ObjectMeta(name=f"child-{namespace}", owner_references=[owned_by(owner), owned_by_absent("ClusterRole")])
    metadata.owner_references[1].api_version = "rbac.authorization.k8s.io/v1"
    child = await client.create(ClusterRole(metadata=metadata))
    await client.delete(owner)
    await everything_before_is_done(client, namespace)
    kept = await client.get(ClusterRole, child.key)
    assert len(kept.metadata.owner_references) == 2


@pytest.mark.usefixtures("collector")
async def test_an_owner_of_a_kind_that_is_not_served_is_not_gone(client: Client, namespace: str) -> None:
    unknown = await client.create(config_map(namespace, "a", owned_by_absent("Gadget", "example.com/v1")))
    outdated = await client.create(config_map(namespace, "b", owned_by_absent("Deployment", "apps/v1beta1")))
    await everything_before_is_done(client, namespace)
    assert await client.find(ConfigMap, unknown.key) is not None
    assert await client.find(ConfigMap, outdated.key) is not None


@pytest.mark.usefixtures("collector")
async def test_of_several_owners_only_the_one_that_is_gone_is_forgotten(client: Client, namespace: str) -> None:
    staying = await client.create(config_map(namespace, "staying"))
    going = await client.create(config_map(namespace, "going"))
    child = await client.create(config_map(namespace, "child", owned_by(staying), owned_by(going)))
    await client.delete(going)
    await client.wait_for(child, Field("metadata.ownerReferences[1]").equals(None))
    kept = await client.get(ConfigMap, child.key)
    assert kept.metadata.owner_references == [owned_by(staying)]


@pytest.mark.usefixtures("collector")
async def test_an_owner_deleted_in_the_foreground_outlives_what_blocks_it(client: Client, namespace: str) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    blocking = await client.create(
        config_map(namespace, "blocking", owned_by(owner, blocking=True), finalizers=(FINALIZER,))
    )
    other = await client.create(config_map(namespace, "other", owned_by(owner), finalizers=(FINALIZER,)))
    await client.delete(owner, propagation="Foreground")
    await client.wait_for(blocking, DELETION_HAS_BEGUN)
    await client.wait_for(other, DELETION_HAS_BEGUN)
    await everything_before_is_done(client, namespace)
    assert (await client.get(ConfigMap, owner.key)).metadata.finalizers == ["foregroundDeletion"]
    await client.patch(blocking, NO_FINALIZERS)
    await client.wait_for(owner, deleted)
    assert await client.find(ConfigMap, other.key) is not None
    await client.patch(other, NO_FINALIZERS)


@pytest.mark.usefixtures("collector")
async def test_foreground_deletion_reaches_the_dependents_of_dependents_first(client: Client, namespace: str) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    child = await client.create(config_map(namespace, "child", owned_by(owner, blocking=True)))
    grandchild = await client.create(
        config_map(namespace, "grandchild", owned_by(child, blocking=True), finalizers=(FINALIZER,))
    )
    await client.delete(owner, propagation="Foreground")
    await client.wait_for(grandchild, DELETION_HAS_BEGUN)
    assert (await client.get(ConfigMap, child.key)).metadata.finalizers == ["foregroundDeletion"]
    await client.patch(grandchild, NO_FINALIZERS)
    await client.wait_for(owner, deleted)
    assert await client.find(ConfigMap, child.key) is None


@pytest.mark.usefixtures("collector")
async def test_a_dependent_that_another_owner_keeps_does_not_hold_up_the_foreground(
    client: Client, namespace: str
) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    staying = await client.create(config_map(namespace, "staying"))
    child = await client.create(config_map(namespace, "child", owned_by(owner, blocking=True), owned_by(staying)))
    await client.delete(owner, propagation="Foreground")
    await client.wait_for(owner, deleted)
    assert (await client.get(ConfigMap, child.key)).metadata.owner_references == [owned_by(staying)]


@pytest.mark.usefixtures("collector")
async def test_a_dependent_that_stops_blocking_lets_its_owner_go(client: Client, namespace: str) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    child = await client.create(config_map(namespace, "child", owned_by(owner, blocking=True), finalizers=(FINALIZER,)))
    await client.delete(owner, propagation="Foreground")
    child = await client.wait_for(child, DELETION_HAS_BEGUN) or child
    child.metadata.owner_references[0].block_owner_deletion = False
    child = await client.patch(child)
    await client.wait_for(owner, deleted)
    await client.patch(child, NO_FINALIZERS)


@pytest.mark.usefixtures("collector")
async def test_orphans_forget_their_owner_and_stay(client: Client, namespace: str) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    other = await client.create(config_map(namespace, "other"))
    child = await client.create(config_map(namespace, "child", owned_by(owner)))
    shared = await client.create(config_map(namespace, "shared", owned_by(owner), owned_by(other)))
    await everything_before_is_done(client, namespace)
    await client.delete(owner, propagation="Orphan")
    await client.wait_for(owner, deleted)
    await everything_before_is_done(client, namespace)
    assert (await client.get(ConfigMap, child.key)).metadata.owner_references == []
    assert (await client.get(ConfigMap, shared.key)).metadata.owner_references == [owned_by(other)]


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_objects_that_own_each_other_go_together(client: Client, namespace: str, propagation: str) -> None:
    one = await client.create(config_map(namespace, "one"))
    two = await client.create(config_map(namespace, "two", owned_by(one, blocking=True)))
    one.metadata.owner_references = [owned_by(two, blocking=True)]
    one = await client.update(one)
    await everything_before_is_done(client, namespace)
    await client.delete(one, propagation="Background" if propagation == "Background" else "Foreground")
    await client.wait_for(one, deleted)
    await client.wait_for(two, deleted)


@pytest.mark.usefixtures("collector")
async def test_kinds_that_are_defined_later_are_collected_too(client: Client, namespace: str) -> None:
    definition = await define(client, namespace, served=("v1",))
    gadget = gadget_of(definition)
    owner = await client.create(gadget(metadata=ObjectMeta(name="owner", namespace=namespace)))
    child = await client.create(config_map(namespace, "child", owned_by(owner)))
    grandchild = await client.create(
        gadget(metadata=ObjectMeta(name="grandchild", namespace=namespace, owner_references=[owned_by(child)]))
    )
    await client.delete(owner)
    await client.wait_for(grandchild, deleted)


@pytest.mark.usefixtures("collector")
async def test_dependents_of_custom_resources_are_deleted_with_the_definition(client: Client, namespace: str) -> None:
    definition = await define(client, namespace, served=("v1",))
    gadget = gadget_of(definition)
    owner = await client.create(gadget(metadata=ObjectMeta(name="owner", namespace=namespace)))
    child = await client.create(config_map(namespace, "child", owned_by(owner)))
    await client.delete(definition)
    await client.wait_for(child, deleted)


@pytest.mark.usefixtures("collector")
async def test_owners_are_the_same_in_every_version_of_their_kind(client: Client, namespace: str) -> None:
    definition = await define(client, namespace, served=("v1",))
    owner = await client.create(gadget_of(definition)(metadata=ObjectMeta(name="owner", namespace=namespace)))
    child = await client.create(config_map(namespace, "child", owned_by(owner)))
    definition = await define(client, namespace, served=("v1", "v2"))
    reference = owned_by(owner)
    reference.api_version = f"{definition.spec.group}/v2"
    newer = await client.create(config_map(namespace, "newer", reference))
    await everything_before_is_done(client, namespace)
    assert await client.find(ConfigMap, child.key) is not None
    assert await client.find(ConfigMap, newer.key) is not None
    await client.delete(owner)
    await client.wait_for(child, deleted)
    await client.wait_for(newer, deleted)


@pytest.mark.usefixtures("collector")
async def test_nothing_is_written_for_objects_whose_owners_exist(
    client: Client, namespace: str, writes: list[str]
) -> None:
    owner = await client.create(config_map(namespace, "owner"))
    await asyncio.gather(
        *(client.create(config_map(namespace, f"child-{number}", owned_by(owner))) for number in range(20))
    )
    await everything_before_is_done(client, namespace)
    by_the_collector = [write for write in writes if not write.startswith("POST")]
    assert all("/configmaps/canary-" in write for write in by_the_collector)
    assert len(by_the_collector) == 2


async def define(client: Client, namespace: str, *, served: tuple[str, ...]) -> CustomResourceDefinition:
    """The kind Gadget in a group of the test's own; the last version is the one that is stored."""
    group = f"{namespace}.example.com"
    schema: JSONValue = {"openAPIV3Schema": {"type": "object"}}
    versions: list[JSONValue] = [
        {"name": name, "served": True, "storage": name == served[-1], "schema": schema} for name in served
    ]
    definition = from_json(
        CustomResourceDefinition,
        {
            "metadata": {"name": f"gadgets.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
                "versions": versions,
            },
        },
    )
    applied = await client.apply(definition)
    return await client.wait_for(applied, established) or applied


def gadget_of(definition: CustomResourceDefinition) -> type[Dynamic]:
    """The first version of the kind. Discovery is not used, because it lags behind new definitions."""
    return Dynamic.of(f"{definition.spec.group}/v1", "Gadget", plural="gadgets", namespaced=True)
