"""Controller references, and claiming objects by label selector.

A controller owns what refers to it as its controller. It adopts what its selector matches and has no controller, and
releases what its selector no longer matches. It never touches what another one controls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from kubewright.api.codec import to_json
from kubewright.api.dynamic import metadata_only
from kubewright.api.meta import LabelSelector, OwnerReference
from kubewright.api.resources import Object
from kubewright.api.selectors import label_matcher
from kubewright.cache import Cache, CachedClient, WatchHandle
from kubewright.client import StrategicMergePatch
from kubewright.client.errors import Invalid, NotFound
from kubewright.controller import Predicate
from kubewright.controlplane.controllers.decoded import Decoded

_INDEX = "controller"

OwnerT = TypeVar("OwnerT", bound=Object)
OwnedT = TypeVar("OwnedT", bound=Object)


def controller_of(obj: Object) -> OwnerReference | None:
    """The reference to the one object that controls `obj`."""
    return next((reference for reference in obj.metadata.owner_references if reference.controller), None)


is_new_orphan = Predicate(
    "not controlled by anybody",
    # Orphans of the initial list need no event: their possible owners are reconciled at the start, too.
    lambda event: (
        event.new is not None and not event.initial and not any(owner.controller for owner in event.new.owners)
    ),
)


class Owned(Generic[OwnedT]):
    """The objects of a watch handle by their controller. They are shared: copy one before changing it."""

    def __init__(self, cache: Cache, handle: WatchHandle[OwnedT]) -> None:
        cache.index(metadata_only(handle.kind), _INDEX, _controller_or_namespace)
        self._objects = Decoded(handle)

    def by(self, owner: Object) -> list[OwnedT]:
        """The objects that an object controls."""
        return self._objects.list(index=(_INDEX, owner.metadata.uid))

    def orphans(self, namespace: str, selector: LabelSelector) -> list[OwnedT]:
        """The objects of a namespace that have no controller and match a selector."""
        return self._objects.list(index=(_INDEX, _orphans_of(namespace)), labels=selector)


def _controller_or_namespace(obj: Object) -> tuple[str]:
    reference = controller_of(obj)
    return (reference.uid if reference is not None else _orphans_of(obj.metadata.namespace),)


def _orphans_of(namespace: str) -> str:
    # No uid contains a slash.
    return f"{namespace}/"


async def claimed(
    client: CachedClient, owner: OwnerT, selector: LabelSelector, candidates: Iterable[OwnedT]
) -> list[OwnedT]:
    """Those of the candidates that `owner` controls, after adopting and releasing. A dying owner does neither."""
    matcher = label_matcher(selector)
    mine: list[OwnedT] = []
    may_adopt: bool | None = None
    dying = owner.metadata.deletion_timestamp is not None
    for candidate in candidates:
        controller = controller_of(candidate)
        matches = matcher.matches(candidate.metadata.labels)
        if controller is not None and controller.uid != owner.metadata.uid:
            continue
        if controller is not None and matches:
            mine.append(candidate)
        elif controller is not None and not dying:
            await _release(client, owner, candidate)
        elif controller is None and matches and not dying and candidate.metadata.deletion_timestamp is None:
            if may_adopt is None:
                may_adopt = await _is_current(client, owner)
            if may_adopt and (adopted := await _adopt(client, owner, candidate)) is not None:
                mine.append(adopted)
    return mine


async def _is_current(client: CachedClient, owner: OwnerT) -> bool:
    # A live read: what is adopted for a deleted owner would be garbage-collected.
    fresh = await client.find(type(owner), owner.key, consistency="live")
    return fresh is not None and fresh.metadata.uid == owner.metadata.uid and fresh.metadata.deletion_timestamp is None


async def _adopt(client: CachedClient, owner: Object, orphan: OwnedT) -> OwnedT | None:
    metadata = {"uid": orphan.metadata.uid, "ownerReferences": [to_json(owner.as_owner())]}
    patch = StrategicMergePatch({"metadata": metadata})
    try:
        return await client.patch(orphan, patch)
    except NotFound:
        return None


async def _release(client: CachedClient, owner: Object, owned: OwnedT) -> None:
    patch = StrategicMergePatch(
        {
            "metadata": {
                "uid": owned.metadata.uid,
                "ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}],
            }
        }
    )
    try:
        await client.patch(owned, patch)
    except (NotFound, Invalid):
        # It is gone, or another one of the same name has taken its place: nothing left to release.
        return
