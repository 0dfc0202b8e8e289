"""Garbage collection: dependents of deleted owners are deleted, by the propagation policy of the deletion.

Background: when an owner is deleted, each dependent loses that owner, and is deleted when it was the last one.
Foreground: an owner with the finalizer `foregroundDeletion` is removed after the dependents that block it.
Orphan: an owner with the finalizer `orphan` is removed after its dependents have lost the reference.

An owner is absent when its deletion was observed, or when a live read of the reference finds no object of that uid. So
an owner that never existed, or that is in another namespace, is absent, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from typing import Literal, TypeAlias

import msgspec

from kubewright.api.dynamic import PartialObject
from kubewright.api.errors import KubernetesError
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import Conflict, NotFound
from kubewright.client.paths import Propagation
from kubewright.controller import Channel
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.owner_graph import (
    FOREGROUND,
    ORPHAN,
    ObjectIdentity,
    OwnerGraph,
    identities,
    identity_of,
    waits_for,
)
from kubewright.controlplane.controllers.runtime import Runtime
from kubewright.controlplane.controllers.served import ServedKind
from kubewright.controlplane.controllers.whole_cluster import WholeCluster
from kubewright.manager.core_event_form import CoreV1
from kubewright.manager.recorder import EventBroadcaster

_WORKERS = 8
_MAX_ABSENT = 500
_MAX_START_SECONDS = 30.0

_OwnerState: TypeAlias = Literal["solid", "gone", "waiting", "impossible"]
_Change: TypeAlias = Callable[[ObjectMeta], None]
"""Changes metadata, lists by new ones."""


class _NotDecided(KubernetesError):
    """An object cannot be judged yet; it is retried later."""

    temporary = True


class _Affected(Channel[str]):
    """The uids of the objects to reconcile, complete when everything stored was seen."""

    def __init__(self, cluster: WholeCluster) -> None:
        super().__init__("owners")
        self._cluster = cluster

    async def synced(self) -> None:
        # A kind that cannot be read, because its conversion is broken, must not keep all others waiting for ever.
        with suppress(TimeoutError):
            async with asyncio.timeout(_MAX_START_SECONDS):
                await self._cluster.complete()


class GarbageCollector:
    """Runs over every kind that can be listed, watched and deleted; kinds of new definitions join as they appear."""

    name = "garbage-collector"

    def __init__(self, client: Client, clock: Clock | None = None, *, cache: Cache | None = None) -> None:
        # Not one that reads from the cache: it reads what was not seen, and the newest of what was.
        self._client = client
        self._runtime = Runtime(client, cache)
        now = (clock or SystemClock()).now
        self._events = EventBroadcaster(
            client, instance="", now=now, form=CoreV1(field_manager="kube-controller-manager")
        )
        self._recorder = self._events.recorder("garbage-collector-controller")
        self._graph = OwnerGraph()
        self._cluster = WholeCluster(client, self._runtime.cache, self._changed)
        self._affected = _Affected(self._cluster)
        self._absent: dict[ObjectIdentity, None] = {}

    async def run(self) -> None:
        """Collect until cancelled."""
        await self._runtime.run(
            self.name,
            self.reconcile,
            self._affected,
            workers=_WORKERS,
            beside=(self._cluster.run, self._events.run),
        )

    async def reconcile(self, uid: str) -> None:
        """Collect one object if it is garbage. Nothing is sent for an object whose owners all exist."""
        obj = self._graph.get(uid)
        if obj is None:
            return
        waiting = waits_for(obj)
        if waiting == ORPHAN:
            await self._orphan(obj)
        elif waiting == FOREGROUND:
            await self._release(obj)
        elif obj.metadata.deletion_timestamp is None and obj.metadata.owner_references:
            await self._collect(obj)

    def _changed(self, old: PartialObject | None, new: PartialObject | None) -> None:
        affected: list[str] = []
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            affected += self._graph.remove(old.metadata.uid)
            if affected:
                self._remember_absent(identity_of(old))
        if new is not None:
            affected += self._graph.put(new)
        for uid in affected:
            self._affected.send(uid)

    async def _orphan(self, owner: PartialObject) -> None:
        if not self._cluster.is_complete:
            # A dependent that was not seen yet would be taken for garbage once the owner is gone.
            raise _NotDecided(f"{owner.key}: not all kinds have been read yet")
        for dependent in self._graph.dependents(owner.metadata.uid):
            await self._edit(dependent, _without_owners({owner.metadata.uid}))
        await self._edit(owner, _without_finalizer(ORPHAN))

    async def _release(self, owner: PartialObject) -> None:
        blocking = self._graph.blocking_dependents(owner.metadata.uid)
        for dependent in blocking:
            if waits_for(dependent) != FOREGROUND:
                self._affected.send(dependent.metadata.uid)
        if not blocking:
            await self._edit(owner, _without_finalizer(FOREGROUND))

    async def _collect(self, obj: PartialObject) -> None:
        references = obj.metadata.owner_references
        states = [await self._state(reference, obj) for reference in references]
        if "impossible" in states:
            return
        if "waiting" in states and "solid" not in states and self._graph.dependents(obj.metadata.uid):
            await self._delete_in_foreground(obj)
        elif "solid" not in states:
            await self._delete(obj, _propagation(obj))
        elif not all(state == "solid" for state in states):
            # An owner that waits for its dependents would wait for ever for one that another owner keeps.
            lost = {reference.uid for reference, state in zip(references, states, strict=True) if state != "solid"}
            await self._edit(obj, _without_owners(lost))
        found = (reference.uid for reference, state in zip(references, states, strict=True) if state == "solid")
        if any(self._graph.get(uid) is None for uid in found):
            # It exists and was not seen: its deletion might not be seen either.
            raise _NotDecided(f"{obj.key}: an owner exists, but was not seen yet")

    async def _state(self, reference: OwnerReference, dependent: PartialObject) -> _OwnerState:
        possible = identities(reference, dependent)
        owner = self._graph.get(reference.uid)
        if owner is not None and owner.metadata.namespace not in ("", dependent.metadata.namespace):
            self._recorder.warning(dependent, "OwnerRefInvalidNamespace", _elsewhere(reference, dependent))
        if any(identity in self._absent for identity in possible):
            return "gone"
        if owner is None or identity_of(owner) not in possible:
            kind = self._cluster.kind(reference.api_version, reference.kind)
            if kind is None:
                owned_by = f"{reference.api_version} {reference.kind}"
                raise _NotDecided(f'{dependent.key}: its owner is a "{owned_by}", which is not served')
            if kind.namespaced and not dependent.metadata.namespace:
                # There is no namespace to search. Kubernetes leaves such objects alone.
                return "impossible"
            owner = await self._read_owner(reference, kind, dependent.metadata.namespace if kind.namespaced else "")
        if owner is None:
            return "gone"
        return "waiting" if waits_for(owner) == FOREGROUND else "solid"

    async def _read_owner(self, reference: OwnerReference, kind: ServedKind, namespace: str) -> PartialObject | None:
        """The owner as the server has it; None when it does not exist."""
        view = kind.view_in(reference.api_version.rpartition("/")[2])
        owner = await self._client.find(view, reference.name, namespace=namespace or None)
        if owner is None or owner.metadata.uid != reference.uid:
            self._remember_absent(
                ObjectIdentity(reference.api_version, reference.kind, namespace, reference.name, reference.uid)
            )
            return None
        return owner

    async def _delete_in_foreground(self, obj: PartialObject) -> None:
        if any(waits_for(dependent) == FOREGROUND for dependent in self._graph.dependents(obj.metadata.uid)):
            # They own each other: one of them has to stop blocking, or neither would ever be removed.
            edited = await self._edit(obj, _not_blocking)
            if edited is None:
                return
            obj = edited
        await self._delete(obj, "Foreground")

    async def _delete(self, obj: PartialObject, propagation: Propagation) -> None:
        """Delete just this object, if its owners are still those that were judged."""
        metadata = obj.metadata
        try:
            await self._client.delete(
                obj,
                propagation=propagation,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
                missing_ok=True,
            )
        except Conflict:
            latest = await self._client.find(type(obj), obj.key)
            if latest is None or latest.metadata.uid != metadata.uid:
                return
            if latest.metadata.owner_references != metadata.owner_references:
                raise
            # Something else has changed, and may do so all the time.
            await self._client.delete(obj, propagation=propagation, uid=metadata.uid, missing_ok=True)

    async def _edit(self, obj: PartialObject, change: _Change) -> PartialObject | None:
        """Change the metadata of an object as it is by now; None when it does not exist any more."""
        edited = copy(obj)  # that of the graph is shared
        edited.metadata = copy(obj.metadata)
        change(edited.metadata)
        try:
            return await self._client.patch(edited)
        except NotFound:
            return None
        except Conflict:
            latest = await self._client.find(type(obj), obj.key)
            if latest is None or latest.metadata.uid != obj.metadata.uid:
                return None
            raise

    def _remember_absent(self, identity: ObjectIdentity) -> None:
        """Uids are never reused, so absent objects stay absent. The oldest are dropped first."""
        self._absent[identity] = None
        if len(self._absent) > _MAX_ABSENT:
            del self._absent[next(iter(self._absent))]


def _elsewhere(reference: OwnerReference, dependent: PartialObject) -> str:
    """Kubernetes' message for an owner in another namespace than its dependent."""
    namespace = dependent.metadata.namespace
    owner = (
        f"[{reference.api_version}/{reference.kind}, namespace: {namespace}, name: {reference.name}, "
        f"uid: {reference.uid}]"
    )
    return f'ownerRef {owner} does not exist in namespace "{namespace}"'


def _propagation(obj: PartialObject) -> Propagation:
    """The propagation policy of an object's finalizers, if any."""
    if ORPHAN in obj.metadata.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in obj.metadata.finalizers else "Background"


def _without_owners(uids: set[str]) -> _Change:
    def change(metadata: ObjectMeta) -> None:
        metadata.owner_references = [one for one in metadata.owner_references if one.uid not in uids]

    return change


def _without_finalizer(finalizer: str) -> _Change:
    def change(metadata: ObjectMeta) -> None:
        metadata.finalizers = [name for name in metadata.finalizers if name != finalizer]

    return change


def _not_blocking(metadata: ObjectMeta) -> None:
    metadata.owner_references = [
        msgspec.structs.replace(one, block_owner_deletion=False) if one.block_owner_deletion else one
        for one in metadata.owner_references
    ]
