"""The graph of owners: all objects by uid, the owners they name, and which to reconcile when one has changed.

It sends no requests. An owner that is named but was never seen is known by its uid alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple

from kubewright.api.dynamic import PartialObject
from kubewright.api.meta import OwnerReference
from kubewright.api.resources import resource_info

ORPHAN: Literal["orphan"] = "orphan"
FOREGROUND: Literal["foregroundDeletion"] = "foregroundDeletion"


class ObjectIdentity(NamedTuple):
    """What an owner reference names, and the namespace in which the object would have to be."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


def identity_of(obj: PartialObject) -> ObjectIdentity:
    """The identity that a reference to this object has."""
    gvk, metadata = resource_info(type(obj)).gvk, obj.metadata
    return ObjectIdentity(gvk.api_version, gvk.kind, metadata.namespace, metadata.name, metadata.uid)


def identities(reference: OwnerReference, dependent: PartialObject) -> list[ObjectIdentity]:
    """What a reference may mean: an object of the dependent's namespace, or one of no namespace."""
    return [
        ObjectIdentity(reference.api_version, reference.kind, namespace, reference.name, reference.uid)
        for namespace in dict.fromkeys((dependent.metadata.namespace, ""))
    ]


def waits_for(obj: PartialObject) -> Literal["orphan", "foregroundDeletion"] | None:
    """What has to happen to the dependents of an object that is being deleted, before it is removed."""
    if obj.metadata.deletion_timestamp is None:
        return None
    if ORPHAN in obj.metadata.finalizers:
        return ORPHAN
    return FOREGROUND if FOREGROUND in obj.metadata.finalizers else None


class OwnerGraph:
    """The objects that were seen, and the dependents of each uid."""

    def __init__(self) -> None:
        self._objects: dict[str, PartialObject] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def get(self, uid: str) -> PartialObject | None:
        """The object of that uid, as it was seen last."""
        return self._objects.get(uid)

    def dependents(self, uid: str) -> list[PartialObject]:
        """The objects that name `uid` as an owner."""
        return [self._objects[dependent] for dependent in self._dependents.get(uid, ())]

    def blocking_dependents(self, uid: str) -> list[PartialObject]:
        """Those dependents that the owner has to outlive when it is deleted in the foreground."""
        return [
            dependent
            for dependent in self.dependents(uid)
            if any(
                reference.uid == uid and reference.block_owner_deletion
                for reference in dependent.metadata.owner_references
            )
        ]

    def put(self, obj: PartialObject) -> list[str]:
        """Add or update an object; returns the uids to reconcile because of it."""
        uid = obj.metadata.uid
        previous = self._objects.get(uid)
        self._objects[uid] = obj
        affected: list[str] = []
        before, after = _owners(previous), _owners(obj)
        if before != after:
            self._unlink(uid, before.keys() - after.keys())
            for owner in after:
                self._dependents.setdefault(owner, {})[uid] = None
            affected += [uid, *self._waiting(before | after)]
        waiting = waits_for(obj)
        if waiting is not None and (previous is None or waits_for(previous) != waiting):
            affected.append(uid)
            if waiting == FOREGROUND:
                affected += self._dependents.get(uid, ())
        return affected

    def remove(self, uid: str) -> list[str]:
        """Remove a deleted object; returns the uids to reconcile because of it."""
        owners = _owners(self._objects.pop(uid, None))
        self._unlink(uid, owners.keys())
        return [*self._dependents.get(uid, ()), *self._waiting(owners)]

    def _unlink(self, uid: str, owners: AbstractSet[str]) -> None:
        for owner in owners:
            dependents = self._dependents[owner]
            del dependents[uid]
            if not dependents:
                del self._dependents[owner]

    def _waiting(self, owners: Iterable[str]) -> list[str]:
        """Of these owners, those that wait for their dependents to be deleted."""
        seen = ((uid, self._objects.get(uid)) for uid in owners)
        return [uid for uid, owner in seen if owner is not None and waits_for(owner) == FOREGROUND]


def _owners(obj: PartialObject | None) -> dict[str, OwnerReference]:
    return {} if obj is None else {reference.uid: reference for reference in obj.metadata.owner_references}
