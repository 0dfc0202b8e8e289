from __future__ import annotations

import asyncio

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import LabelSelector, ObjectMeta, OwnerReference
from kubewright.cache import Cache
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.ownership import (
    Owned,
    controller_of,
)


def test_only_a_reference_that_says_so_is_the_controller() -> None:
    owner = ConfigMap(metadata=ObjectMeta(name="owner", uid="1"))
    plain = OwnerReference(api_version="v1", kind="ConfigMap", name="plain", uid="2")
    orphan = ConfigMap(metadata=ObjectMeta(name="a", namespace="shop", owner_references=[plain]))
    owned = ConfigMap(metadata=ObjectMeta(name="b", namespace="shop", owner_references=[plain, owner.as_owner()]))

    assert controller_of(orphan) is None
    assert controller_of(owned) == owner.as_owner()


async def test_objects_are_found_by_their_controller_and_orphans_by_their_labels() -> None:
    owner = ConfigMap(metadata=ObjectMeta(name="owner", namespace="default", uid="1"))
    labels = {"app": "web"}
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        for name, references in (("owned", [owner.as_owner()]), ("orphan", []), ("other", [])):
            metadata = ObjectMeta(
                name=name,
                namespace="default",
                labels=labels if name != "other" else {},
                owner_references=references,
            )
            await client.create(ConfigMap(metadata=metadata))
        cache = Cache(client)
        task = asyncio.create_task(cache.run())
        with cache.watch(ConfigMap) as handle:
            owned = Owned(cache, handle)
            await handle.synced()
            assert [obj.metadata.name for obj in owned.by(owner)] == ["owned"]
            selector = LabelSelector(match_labels=labels)
            assert [obj.metadata.name for obj in owned.orphans("default", selector)] == ["orphan"]
            assert owned.orphans("kube-system", selector) == []
        task.cancel()
        await asyncio.wait([task])
